from __future__ import annotations

from pathlib import Path

import pytest

from fastapi_core.storage.factory import make_storage
from fastapi_core.storage.interface import Code, StorageError
from fastapi_core.storage.memory import MemoryStorage
from fastapi_core.storage.sqlite.store import SqliteStorage


async def test_history_is_bounded() -> None:
    storage = MemoryStorage(history_limit=5)
    await storage.open()
    for number in range(20):
        await storage.create(f"/a/{number}", b"")
    assert storage.compacted == storage.revision - 5
    events = await storage.history("", after=storage.compacted, until=storage.revision)
    assert [e.revision for e in events] == list(range(storage.compacted + 1, storage.revision + 1))
    with pytest.raises(StorageError) as caught:
        await storage.list("", revision=storage.compacted - 1)
    assert caught.value.code is Code.COMPACTED


async def test_factory(tmp_path: Path) -> None:
    assert isinstance(make_storage(None), MemoryStorage)
    durable = make_storage(tmp_path / "new" / "dir")
    assert isinstance(durable, SqliteStorage)
    await durable.open()
    await durable.create("/a", b"")
    await durable.close()
    assert (tmp_path / "new" / "dir" / "store.db").exists()

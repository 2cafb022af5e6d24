"""A disk without space, and one that fails: nothing is acknowledged, and the store goes on when it can."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastapi_core.storage.interface import Code, Event, StorageError
from fastapi_core.storage.sqlite.settings import Settings
from fastapi_core.storage.sqlite.store import SqliteStorage

pytestmark = pytest.mark.adversity


async def failed(call: Awaitable[object]) -> StorageError:
    with pytest.raises(StorageError) as caught:
        await call
    assert caught.value.code is Code.UNAVAILABLE
    return caught.value


async def test_full_database(tmp_path: Path) -> None:
    storage = SqliteStorage(Settings(tmp_path, max_pages=200))
    await storage.open()
    events: list[Event] = []
    storage.listen(events.extend)
    acknowledged = await storage.create("/a", b"")

    async def fill() -> None:
        nonlocal acknowledged
        for _ in range(100):
            acknowledged = await storage.update("/a", os.urandom(50_000), expected=acknowledged)

    assert "no space left" in str(await failed(fill()))
    assert storage.revision == acknowledged == events[-1].revision
    assert "no space left" in str(await failed(storage.check()))
    # Everything asked for together fails together, refusals included: they may rest on what did not happen.
    big = os.urandom(50_000)
    results = await asyncio.gather(storage.create("/b", big), storage.create("/b", big), return_exceptions=True)
    assert [r.code for r in results if isinstance(r, StorageError)] == [Code.UNAVAILABLE] * 2
    assert storage.statistics().failures >= 3
    # Reads go on; giving up history makes room.
    found = await storage.get("/a")
    assert found is not None
    assert found.revision == acknowledged
    await storage.compact(acknowledged)
    await storage.check()
    assert await storage.create("/b", big) == acknowledged + 1
    assert [e.revision for e in events] == list(range(2, acknowledged + 2))
    await storage.close()


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Writes beyond `size` bytes fail with EFBIG, which SQLite reports as an I/O error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_failing_writes(tmp_path: Path) -> None:
    storage = SqliteStorage(Settings(tmp_path))
    await storage.open()
    first = await storage.create("/a", b"one")
    with largest_file((tmp_path / "store.db-wal").stat().st_size):
        error = await failed(storage.create("/b", os.urandom(100_000)))
        assert "failed" in str(error)
        assert str(tmp_path) in str(error)
        await failed(storage.update("/a", b"two", expected=first))
        await failed(storage.check())
    await storage.check()
    assert storage.revision == first
    assert await storage.get("/b") is None
    assert await storage.update("/a", b"two", expected=first) == first + 1
    await storage.close()
    again = SqliteStorage(Settings(tmp_path))
    await again.open()
    assert [(i.key, i.value) for i in (await again.list("")).items] == [("/a", b"two")]
    await again.close()

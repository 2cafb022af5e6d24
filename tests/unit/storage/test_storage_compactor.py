from __future__ import annotations

import asyncio

import pytest

from fastapi_core.storage.compactor import Compactor
from fastapi_core.storage.interface import Code, StorageError
from fastapi_core.storage.memory import MemoryStorage


@pytest.fixture
async def storage() -> MemoryStorage:
    storage = MemoryStorage()
    await storage.open()
    return storage


async def test_keeps_the_window(storage: MemoryStorage) -> None:
    compactor = Compactor(storage, window=300, samples=10)
    newest: dict[int, int] = {}
    for now in range(0, 1500, 30):
        await storage.create(f"/a/{now}", b"")
        newest[now] = storage.revision
        await compactor.tick(now)
        assert storage.compacted == (newest[now - 300] if now >= 300 else 0)


async def test_idle_store_is_left_alone(storage: MemoryStorage) -> None:
    compactor = Compactor(storage, window=10)
    await storage.create("/a", b"")
    for now in range(0, 20, 1):
        await compactor.tick(now)
    assert storage.compacted == storage.revision
    assert compactor.due(1000) == 0


async def test_late_tick_compacts_once_to_the_newest_due(storage: MemoryStorage) -> None:
    compactor = Compactor(storage, window=10)
    revisions = []
    for now in range(5):
        revisions.append(await storage.create(f"/{now}", b""))
        assert compactor.due(now) == 0
    assert compactor.due(13.5) == revisions[3]


async def test_failure_is_kept_and_tried_again(storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    compactor = Compactor(storage, window=10)

    async def fail(revision: int) -> None:
        raise StorageError(Code.UNAVAILABLE, message="disk on fire")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "compact", fail)
        await storage.create("/a", b"")
        await compactor.tick(0)
        await compactor.tick(11)
        assert compactor.last_error is not None
    await compactor.tick(22)
    assert compactor.last_error is None
    assert storage.compacted == storage.revision


async def test_background(storage: MemoryStorage) -> None:
    compacted = asyncio.Event()
    inner = storage.compact

    async def compact(revision: int) -> None:
        await inner(revision)
        compacted.set()

    storage.compact = compact  # type: ignore[method-assign]
    compactor = Compactor(storage, window=0.05)
    await storage.create("/a", b"")
    compactor.start()
    compactor.start()
    async with asyncio.timeout(10):
        await compacted.wait()
    await compactor.stop()
    await compactor.stop()
    assert storage.compacted == storage.revision


async def test_zero_window_never_compacts(storage: MemoryStorage) -> None:
    compactor = Compactor(storage, window=0)
    compactor.start()
    await compactor.stop()
    assert storage.compacted == 0

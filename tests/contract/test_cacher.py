"""The watch cache over every embedded back end: what is acknowledged is shown, watched once, and listed as it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random

import pytest

from fastapi_core._ext.objects import CachedObject
from fastapi_core.storage.cacher.cacher import Cacher
from fastapi_core.storage.cacher.changes import WatchEvent
from fastapi_core.storage.cacher.resource import Listing, ResourceCache
from fastapi_core.storage.cacher.watchers import Watcher
from fastapi_core.storage.interface import Code, Storage, StorageError
from fastapi_core.storage.memory import MemoryStorage
from fastapi_core.storage.sqlite.settings import Settings
from fastapi_core.storage.sqlite.store import SqliteStorage
from tests.oracles.cacher import Log
from tests.unit.storage_cacher.support import PODS, Recorder, encode, pod

KEYS = [f"{PODS}{namespace}/{name}" for namespace in ("x", "x-b", "y") for name in "abcd"]


@pytest.fixture(params=["memory", "sqlite"])
async def storage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Storage]:
    store: Storage = MemoryStorage() if request.param == "memory" else SqliteStorage(Settings(tmp_path / "store"))
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def cacher(storage: Storage) -> AsyncIterator[Cacher]:
    opened = Cacher(storage)
    await opened.open()
    yield opened
    await opened.close()


class Writer:
    """Writes that may run at the same time, and the log of those that were acknowledged."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.done: dict[int, tuple[str, dict[str, object] | None]] = {}
        self.n = 0

    async def write(self, key: str, *, delete: bool = False) -> int:
        while True:
            self.n += 1
            tree = pod(key, {"n": str(self.n)}, n=self.n)
            current = await self.storage.get(key)
            try:
                if current is None:
                    revision = await self.storage.create(key, encode(tree))
                elif delete:
                    revision = await self.storage.delete(key, expected=current.revision)
                else:
                    revision = await self.storage.update(key, encode(tree), expected=current.revision)
            except StorageError as error:
                if error.code in (Code.CONFLICT, Code.KEY_EXISTS, Code.KEY_NOT_FOUND):
                    continue
                raise
            self.done[revision] = key, None if delete and current is not None else tree
            return revision

    @property
    def log(self) -> Log:
        log = Log()
        for revision in sorted(self.done):
            log.add(revision, *self.done[revision])
        return log


async def watched(cache: ResourceCache, scope: str, since: int, deliver: Callable[[list[WatchEvent]], None]) -> Watcher:
    answer = cache.watch(scope, since=since, deliver=deliver)
    return answer if isinstance(answer, Watcher) else await answer


async def listed(cache: ResourceCache, revision: int, scope: str = "", limit: int = 0) -> list[bytes]:
    objects: list[CachedObject] = []
    start = ""
    while True:
        answer = cache.list_at(revision, scope, start=start, limit=limit)
        listing = answer if isinstance(answer, Listing) else await answer
        objects += listing.objects
        start = listing.next
        if not start:
            return [obj.json() for obj in objects]


def everything(tree: dict[str, object]) -> bool:
    return True


async def test_an_acknowledged_write_is_shown(storage: Storage, cacher: Cacher) -> None:
    pods = cacher.resource(PODS)
    writer = Writer(storage)
    for _ in range(3):
        revision = await writer.write(KEYS[0])
        obj = pods.get(KEYS[0])
        assert obj is not None
        assert (obj.revision, pods.revision, pods.fresh()) == (revision, revision, None)
    deleted = await writer.write(KEYS[0], delete=True)
    assert (pods.get(KEYS[0]), pods.revision) == (None, deleted)


async def test_concurrent_writes_are_watched_once_and_in_order(storage: Storage, cacher: Cacher) -> None:
    """Watches begun at any time from any revision, also from before the window and while writes go on."""
    random = Random(36)
    pods = cacher.resource(PODS)
    # A second cache whose window holds next to nothing, so that its watches begin in the history.
    small = Cacher(storage, window_count=3)
    await small.open()
    writer = Writer(storage)
    watches: list[tuple[int, str, Recorder]] = []
    for _ in range(20):
        writes = [writer.write(random.choice(KEYS), delete=random.random() < 0.3) for _ in range(10)]
        running = asyncio.gather(*writes)
        await asyncio.sleep(0)
        for cache in (pods, small.resource(PODS)):
            recorder = Recorder()
            since, scope = random.randint(1, max(1, cache.revision)), random.choice(["", "x/"])
            watches.append((since, scope, recorder))
            await watched(cache, scope, since, recorder)
        await running
    newest = storage.revision
    assert sorted(writer.done) == list(range(2, newest + 1))
    log = writer.log
    for since, scope, recorder in watches:
        assert recorder.events == log.events(since, PODS + scope, "", everything)
    for cache in (pods, small.resource(PODS)):
        for revision in random.sample(range(1, newest + 1), 20):
            scope, limit = random.choice(["", "x-b/"]), random.choice([0, 1, 3])
            assert await listed(cache, revision, scope, limit) == log.listed(revision, PODS + scope, everything)
    await small.close()


async def test_a_new_cache_goes_on_where_the_old_one_was(storage: Storage, cacher: Cacher) -> None:
    writer = Writer(storage)
    for key in KEYS * 2:
        await writer.write(key)
    await writer.write(KEYS[1], delete=True)
    again = Cacher(storage)
    pods = again.resource(PODS)
    await again.open()
    assert pods.revision == cacher.revision == storage.revision
    assert [o.json() for o in pods.list().objects] == [o.json() for o in cacher.resource(PODS).list().objects]
    seen = Recorder()
    await watched(pods, "", 5, seen)
    await writer.write(KEYS[1])
    assert seen.events == writer.log.events(5, PODS, "", everything)
    await again.close()


async def test_compacted_history(storage: Storage, cacher: Cacher) -> None:
    """What the window holds outlives the store's history; what it does not is refused."""
    pods = cacher.resource(PODS)
    writer = Writer(storage)
    for key in KEYS:
        await writer.write(key)
    await storage.compact(8)
    again = Cacher(storage)
    await again.open()
    late = again.resource(PODS)
    assert await listed(pods, 4) == writer.log.listed(4, PODS, everything)
    seen = Recorder()
    await watched(pods, "", 4, seen)
    assert seen.events == writer.log.events(4, PODS, "", everything)
    assert await listed(late, 8) == writer.log.listed(8, PODS, everything)
    for pending in (listed(late, 7), watched(late, "", 7, seen)):
        with pytest.raises(StorageError) as caught:
            await pending
        assert (caught.value.code, caught.value.revision) == (Code.COMPACTED, 8)
    assert late.statistics().watchers == 0
    await again.close()

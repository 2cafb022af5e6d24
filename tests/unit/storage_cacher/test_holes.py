"""A store that others write to: revisions without events, changes that cannot be told any more, refusals of a late cache."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.apis.resources import builtin
from fastapi_core.registry.store import ResourceStore, retrying
from fastapi_core.storage.cacher.cacher import Cacher
from fastapi_core.storage.interface import Code, Event, Listener, Page, StorageError
from fastapi_core.storage.memory import MemoryStorage

PREFIX = "/registry/configmaps/"


def body(name: str, number: int = 1) -> bytes:
    return b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"%s"},"data":{"n":"%d"}}' % (
        name.encode(),
        number,
    )


class Shared(MemoryStorage):
    """Another server's writes are told when the test says so, or never."""

    def __init__(self) -> None:
        super().__init__()
        self.told: Listener = lambda events: None
        self.lost: Callable[[], None] = lambda: None
        self.held: list[Event] = []
        self.seen = 1
        self.failures: list[StorageError] = []
        self.during: list[Callable[[], None]] = []

    def listen(self, listener: Listener, lost: Callable[[], None] | None = None) -> Callable[[], None]:
        assert lost is not None
        self.told, self.lost = listener, lost
        return super().listen(self.held.extend)

    def tell(self) -> None:
        events, self.held[:] = list(self.held), []
        self.seen = self._revision
        self.told(events)

    def drop(self) -> None:
        """A hole: what is held is never told."""
        self.held.clear()
        self.seen = self._revision
        self.lost()

    @property
    def revision(self) -> int:
        return self.seen

    async def sync(self) -> int:
        self.tell()
        return self.seen

    async def list(self, prefix: str, *, revision: int = 0, start: str = "", limit: int = 0) -> Page:
        if self.failures:
            raise self.failures.pop()
        page = await super().list(prefix, revision=revision, start=start, limit=limit)
        if self.during:
            self.during.pop()()
        return page


@pytest.fixture
async def storage() -> Shared:
    storage = Shared()
    await storage.open()
    return storage


async def test_the_revision_moves_without_events(storage: Shared) -> None:
    cacher = Cacher(storage, remote=True)
    await cacher.open()
    await MemoryStorage.create(storage, PREFIX + "a", body("a"))
    storage.held.clear()
    assert cacher.revision == 1
    await cacher.wait_for(1)
    storage.tell()
    assert cacher.revision == storage.revision == 2
    await cacher.close()


async def test_a_hole_while_loading(storage: Shared) -> None:
    await storage.create(PREFIX + "a", body("a"))

    async def writes() -> None:
        await storage.create(PREFIX + "b", body("b"))

    def drop() -> None:
        coroutine = writes()
        with pytest.raises(StopIteration):
            coroutine.send(None)
        storage.drop()

    storage.during.append(drop)
    cacher = Cacher(storage, remote=True)
    cache = cacher.resource(PREFIX)
    await cacher.open()
    assert [obj.name for obj in cache.list().objects] == ["a", "b"]
    await cacher.check()
    await cacher.close()


async def test_a_hole_is_listed_again_until_that_works(storage: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastapi_core.storage.cacher.cacher._AGAIN", 0.0)
    await storage.create(PREFIX + "a", body("a"))
    cacher = Cacher(storage, remote=True)
    cache = cacher.resource(PREFIX)
    await cacher.open()
    seen: list[tuple[str, str]] = []
    ended: list[int] = []
    cache.watch(since=cacher.revision, deliver=lambda es: seen.extend((e.type, e.change.object.name) for e in es))
    cache.watch(since=cacher.revision, deliver=lambda events: None, lost=ended.append)
    storage.failures = [StorageError(Code.COMPACTED), StorageError(Code.TIMEOUT)]
    found = await storage.get(PREFIX + "a")
    assert found is not None
    await storage.delete(PREFIX + "a", expected=found.revision)
    await storage.create(PREFIX + "broken", b"no object")
    await storage.create(PREFIX + "b", body("b"))
    storage.drop()
    storage.drop()
    with pytest.raises(StorageError):
        await cacher.check()
    assert cache.get(PREFIX + "a") is not None
    await cacher.wait_for(storage.revision)
    await cacher.check()
    assert ended == [storage.revision]
    assert sorted(seen) == [("ADDED", "b"), ("DELETED", "a")]
    assert cache.get(PREFIX + "a") is None
    with pytest.raises(StorageError):
        cache.list()
    await storage.create(PREFIX + "c", body("c"))
    storage.tell()
    assert seen[-1] == ("ADDED", "c")
    await cacher.close()


async def test_closing_ends_a_reload(storage: Shared) -> None:
    cacher = Cacher(storage, remote=True)
    await cacher.open()
    storage.drop()
    await cacher.close()
    with pytest.raises(StorageError):
        await cacher.check()


async def store_of(storage: Shared, cacher: Cacher) -> ResourceStore:
    definition = next(d for d in builtin() if d.plural == "configmaps")
    return ResourceStore(definition, storage, cacher.resource(definition.key_prefix))


async def test_a_refusal_of_a_late_cache_is_said_again_of_the_newest_state(storage: Shared) -> None:
    cacher = Cacher(storage, remote=True)
    store = await store_of(storage, cacher)
    await cacher.open()
    created = await storage.create(PREFIX + "n/a", body("a"))
    judged: list[int] = []

    async def attempt(current: CachedObject) -> str:
        judged.append(current.revision)
        if current.revision == created:
            await storage.update(PREFIX + "n/a", body("a", 2), expected=created)
            raise errors.conflict("configmaps", "", "a", "late")
        return "done"

    storage.tell()
    assert await retrying(store, "n", "a", attempt) == "done"
    assert judged == [created, created + 1]

    async def refuse(current: CachedObject) -> str:
        judged.append(current.revision)
        raise errors.conflict("configmaps", "", "a", "no")

    with pytest.raises(errors.APIError):
        await retrying(store, "n", "a", refuse)
    assert judged[2:] == [created + 1]
    await cacher.close()


async def test_an_object_that_the_cache_has_not_heard_of_is_found(storage: Shared) -> None:
    cacher = Cacher(storage, remote=True)
    store = await store_of(storage, cacher)
    await cacher.open()
    await storage.create(PREFIX + "n/a", body("a"))

    async def attempt(current: CachedObject) -> str:
        return current.name

    assert await retrying(store, "n", "a", attempt) == "a"
    with pytest.raises(errors.APIError, match="not found"):
        await retrying(store, "n", "b", attempt)
    await cacher.close()


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (StorageError(Code.TIMEOUT, message="x"), 504, "Timeout: request did not complete within requested timeout"),
        (StorageError(Code.UNAVAILABLE, message="etcdserver: no leader"), 500, "etcdserver: no leader"),
        (StorageError(Code.UNAVAILABLE, message="the disk is full"), 500, "Internal error occurred: the disk is full"),
    ],
)
async def test_a_write_that_failed_is_not_tried_again(
    storage: Shared, error: StorageError, code: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cacher = Cacher(storage, remote=True)
    store = await store_of(storage, cacher)
    await cacher.open()
    await storage.create(PREFIX + "n/a", body("a"))
    storage.tell()
    attempts: list[int] = []

    async def fail(*args: object, **options: object) -> int:
        attempts.append(1)
        # It has happened all the same.
        await MemoryStorage.update(storage, PREFIX + "n/a", body("a", 2), expected=store.get("n", "a").revision)
        raise error

    monkeypatch.setattr(storage, "update", fail)

    async def attempt(current: CachedObject) -> object:
        return await store.update(current, {**current.tree(), "data": {"n": "2"}})

    with pytest.raises(errors.APIError) as caught:
        await retrying(store, "n", "a", attempt)
    assert (caught.value.code, len(attempts)) == (code, 1)
    assert caught.value.message.startswith(text)
    await cacher.close()

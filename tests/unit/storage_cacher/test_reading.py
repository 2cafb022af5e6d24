"""Reads of the cache: order, pages, revisions, waiting, values that cannot be read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fastapi_core.storage.cacher import cacher as cacher_module
from fastapi_core.storage.cacher.cacher import Cacher
from fastapi_core.storage.cacher.resource import Listing
from fastapi_core.storage.interface import Code, StorageError
from fastapi_core.storage.memory import MemoryStorage
from tests.unit.storage_cacher.support import PODS, AwkwardStorage, Recorder, encode, node_of, pod


async def opened(*keys: str, **options: Any) -> tuple[MemoryStorage, Cacher]:
    storage = AwkwardStorage()
    await storage.open()
    for key in keys:
        await storage.create(key, encode(pod(key)))
    cacher = Cacher(storage, **options)
    await cacher.open()
    return storage, cacher


async def test_key_order_and_pages() -> None:
    keys = [PODS + name for name in ("x/a", "x-b/a", "x/b", "é/a", "a")]
    _, cacher = await opened(*keys)
    pods = cacher.resource(PODS)
    listing = pods.list()
    assert [obj.key.removeprefix(PODS) for obj in listing.objects] == ["a", "x-b/a", "x/a", "x/b", "é/a"]
    assert (listing.revision, listing.next, listing.remaining) == (cacher.revision, "", 0)
    page = pods.list(limit=2)
    assert (page.next, page.remaining) == (PODS + "x-b/a\0", 3)
    page = pods.list(start=page.next, limit=2)
    assert [obj.name for obj in page.objects] == ["a", "b"]
    assert [obj.namespace for obj in pods.list("x/").objects] == ["x", "x"]
    assert pods.list("none/") == Listing([], cacher.revision, "", 0)
    assert pods.list("x/", start=PODS + "z", limit=1) == Listing([], cacher.revision, "", 0)
    assert (pods.count(), pods.count("x/"), pods.count("none/")) == (5, 2, 0)


async def test_the_revision_is_the_stores() -> None:
    storage, cacher = await opened()
    pods = cacher.resource(PODS)
    revision = await storage.create("/registry/secrets/x/a", encode(pod("x/a")))
    assert pods.revision == pods.list().revision == revision
    outside = await storage.create("/elsewhere", b"not even JSON")
    assert pods.revision == outside


async def test_resources_claimed_late_and_deep() -> None:
    keys = ["/registry/services/specs/x/a", "/registry/services/endpoints/x/a", "/registry/g.io/widgets/x/w"]
    storage, cacher = await opened(*keys)
    await storage.create("/registry/g.io/widgets/x/v", encode(pod("x/v")))
    current = await storage.get(keys[0])
    assert current is not None
    await storage.delete(keys[0], expected=current.revision)
    specs = cacher.resource("/registry/services/specs/")
    assert specs.count() == 0
    assert cacher.resource("/registry/services/endpoints/").count() == 1
    widgets = cacher.resource("/registry/g.io/widgets/", node_of, ("spec.nodeName",))
    assert [obj.name for obj in widgets.list("x/").objects] == ["v", "w"]
    assert cacher.resource("/registry/g.io/widgets/") is widgets
    assert (widgets.extract, widgets.triggers) == (node_of, ("spec.nodeName",))
    assert set(cacher.statistics()) == {s.prefix for s in (specs, widgets)} | {"/registry/services/endpoints/"}


@pytest.mark.parametrize("prefix", ["/registry/", PODS + "x/", "/registry/pods", "/other/pods/"])
async def test_prefixes_that_overlap_or_lie_outside(prefix: str) -> None:
    _, cacher = await opened()
    cacher.resource(PODS)
    with pytest.raises(ValueError, match=prefix):
        cacher.resource(prefix)


async def test_values_that_cannot_be_read() -> None:
    """What is stored but no object is an error of who asks for it, never an absence."""
    storage, cacher = await opened(PODS + "x/a")
    broken = PODS + "y/b"
    await storage.create(broken, b"\x00k8s")
    loaded = Cacher(storage)
    await loaded.open()
    for pods in (cacher.resource(PODS), loaded.resource(PODS)):
        for read in (pods.list, lambda scope="", pods=pods: pods.list_at(pods.revision - 1, scope)):
            assert len((await _now(read("x/"))).objects) == 1
        with pytest.raises(StorageError) as caught:
            pods.list()
        assert (caught.value.code, caught.value.key) == (Code.UNAVAILABLE, broken)
        with pytest.raises(StorageError):
            pods.get(broken)
    pods = cacher.resource(PODS)
    seen = Recorder()
    pods.watch("", since=cacher.revision, deliver=seen)
    current = await storage.get(broken)
    assert current is not None
    await storage.update(broken, encode(pod(broken)), expected=current.revision)
    assert pods.count() == 2
    assert seen.short == [("ADDED", "b")]


async def _now(answer: Any) -> Any:
    return answer if isinstance(answer, Listing) else await answer


async def test_a_value_that_becomes_unreadable() -> None:
    storage, cacher = await opened(PODS + "x/a")
    errors: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context))
    pods = cacher.resource(PODS)
    before = cacher.revision
    await storage.update(PODS + "x/a", b"{}", expected=before)
    with pytest.raises(StorageError):
        pods.list("x/")
    with pytest.raises(StorageError):
        pods.get(PODS + "x/a")
    assert len(errors) == 1
    # The state before is read from storage, for here it is gone.
    assert [obj.name for obj in (await _now(pods.list_at(before))).objects] == ["a"]
    current = await storage.get(PODS + "x/a")
    assert current is not None
    await storage.delete(PODS + "x/a", expected=current.revision)
    assert pods.get(PODS + "x/a") is None
    assert pods.list().objects == []


async def test_wait_for_a_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    storage, cacher = await opened()
    pods = cacher.resource(PODS)
    newest = cacher.revision
    assert pods.wait(newest) is None
    pending = [asyncio.ensure_future(_wait(pods, newest + n)) for n in (2, 1, 2)]
    later = pods.list_at(newest + 2)
    assert not isinstance(later, Listing)
    listing = asyncio.ensure_future(later)
    await asyncio.sleep(0)
    await storage.create(PODS + "x/a", encode(pod(PODS + "x/a")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [task.done() for task in pending] == [False, True, False]
    await storage.create(PODS + "x/b", encode(pod(PODS + "x/b")))
    await storage.create(PODS + "x/c", encode(pod(PODS + "x/c")))
    await asyncio.gather(*pending)
    assert [obj.name for obj in (await listing).objects] == ["a", "b"]
    monkeypatch.setattr(cacher_module, "WAIT_SECONDS", 0)
    with pytest.raises(StorageError) as caught:
        await _wait(pods, 99)
    assert (caught.value.code, caught.value.revision) == (Code.FUTURE_REVISION, cacher.revision)


async def _wait(pods: Any, revision: int) -> None:
    pending = pods.wait(revision)
    assert pending is not None
    await pending


async def test_close_fails_who_waits() -> None:
    _, cacher = await opened()
    pods = cacher.resource(PODS)
    task = asyncio.ensure_future(_wait(pods, 99))
    await asyncio.sleep(0)
    await cacher.close()
    with pytest.raises(StorageError) as caught:
        await task
    assert caught.value.code is Code.UNAVAILABLE


async def test_embedded_stores_are_always_fresh() -> None:
    _, cacher = await opened()
    assert cacher.resource(PODS).fresh() is None


class RemoteStorage(MemoryStorage):
    """A store that answers `sync` when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[asyncio.Future[int]] = []

    async def sync(self) -> int:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.questions.append(future)
        return await future


async def test_readers_share_the_next_question() -> None:
    storage = RemoteStorage()
    await storage.open()
    cacher = Cacher(storage, remote=True)
    opening = asyncio.ensure_future(cacher.open())
    while not storage.questions:
        await asyncio.sleep(0)
    storage.questions.pop().set_result(storage.revision)
    await opening
    pods = cacher.resource(PODS)

    def ask() -> asyncio.Task[None]:
        pending = pods.fresh()
        assert pending is not None
        return asyncio.ensure_future(pending)

    async def turn() -> None:
        for _ in range(8):
            await asyncio.sleep(0)

    first = ask()
    await turn()
    second, third = ask(), ask()
    await turn()
    assert len(storage.questions) == 1
    storage.questions[0].set_result(1)
    await turn()
    assert (first.done(), second.done(), len(storage.questions)) == (True, False, 2)
    # The answer is ahead of the cache: readers wait for the events.
    storage.questions[1].set_result(2)
    await turn()
    assert not second.done()
    await storage.create(PODS + "x/a", encode(pod(PODS + "x/a")))
    await asyncio.gather(second, third)
    fourth, fifth = ask(), ask()
    await turn()
    fourth.cancel()
    storage.questions[2].set_exception(StorageError(Code.UNAVAILABLE))
    await turn()
    storage.questions[3].set_result(2)
    await fifth
    with pytest.raises(asyncio.CancelledError):
        await fourth
    await cacher.close()


async def test_the_window_is_bounded_in_bytes() -> None:
    storage, cacher = await opened(window_bytes=4000)
    pods = cacher.resource(PODS)
    key = PODS + "x/a"
    revision = await storage.create(key, encode(pod(key)))
    for n in range(100):
        revision = await storage.update(key, encode(pod(key, n=n)), expected=revision)
    statistics = pods.statistics()
    assert 0 < statistics.window_bytes <= 4000
    assert (statistics.events, statistics.objects, statistics.watchers) == (101, 1, 0)
    assert 10 < statistics.window < 100
    await storage.update(key, encode(pod(key, {"big": "x" * 4000})), expected=revision)
    assert pods.statistics().window == 0


async def test_a_failed_load_stops_listening() -> None:
    storage = AwkwardStorage()
    cacher = Cacher(storage)
    with pytest.raises(StorageError):
        await cacher.open()
    await storage.open()
    await storage.create(PODS + "x/a", encode(pod(PODS + "x/a")))
    assert cacher.revision == 0

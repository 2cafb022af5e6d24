"""Watches of the cache: what is delivered, when, and what a misbehaving watcher can do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from fastapi_core._ext.objects import CachedObject
from fastapi_core.meta.selectors import parse_fields, parse_labels
from fastapi_core.storage.cacher.cacher import Cacher
from fastapi_core.storage.cacher.changes import WatchEvent
from fastapi_core.storage.cacher.matching import Matchers
from fastapi_core.storage.cacher.resource import ResourceCache
from fastapi_core.storage.cacher.watchers import Watcher
from fastapi_core.storage.interface import Code, StorageError
from tests.unit.storage_cacher.support import PODS, AwkwardStorage, Recorder, encode, node_of, pod

MATCHERS = Matchers(node_of)
A, B, C = PODS + "x/a", PODS + "x/b", PODS + "y/c"


class Store:
    """A cache over a store, with short ways to write."""

    def __init__(self, storage: AwkwardStorage, cacher: Cacher, pods: ResourceCache) -> None:
        self.storage = storage
        self.cacher = cacher
        self.pods = pods
        self.errors: list[dict[str, Any]] = []

    async def put(self, key: str, labels: dict[str, str] | None = None, node: str = "") -> int:
        current = await self.storage.get(key)
        value = encode(pod(key, labels, node))
        if current is None:
            return await self.storage.create(key, value)
        return await self.storage.update(key, value, expected=current.revision)

    async def delete(self, key: str) -> int:
        current = await self.storage.get(key)
        assert current is not None
        return await self.storage.delete(key, expected=current.revision)

    def watch(self, scope: str = "", labels: str = "", fields: str = "", since: int = -1, **more: Any) -> Recorder:
        recorder = Recorder()
        chosen = MATCHERS.of(parse_labels(labels), parse_fields(fields))
        since = self.cacher.revision if since < 0 else since
        answer = self.pods.watch(scope, matcher=chosen, since=since, deliver=recorder, **more)
        assert isinstance(answer, Watcher)
        return recorder


async def open_store(window: int = 100, history: int = 1000, triggers: tuple[str, ...] = ()) -> Store:
    storage = AwkwardStorage(history_limit=history)
    await storage.open()
    cacher = Cacher(storage, window_count=window)
    pods = cacher.resource(PODS, node_of, triggers)
    await cacher.open()
    store = Store(storage, cacher, pods)
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: store.errors.append(context))
    return store


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = await open_store()
    yield opened
    await opened.cacher.close()
    assert not opened.errors


async def test_selector_transitions(store: Store) -> None:
    """A departing object is shown in its previous state under the new revision."""
    seen = store.watch(labels="k=yes")
    await store.put(A, {"k": "no"})
    entered = await store.put(A, {"k": "yes"})
    await store.put(A, {"k": "yes", "n": "1"})
    left = await store.put(A, {"k": "no"})
    await store.put(A, {"k": "other"})
    await store.put(A, {"k": "yes"})
    gone = await store.delete(A)
    await store.put(B, {"k": "yes"})
    await store.put(C, {"k": "no"})
    await store.delete(C)
    shown = [(kind, orjson.loads(text)["metadata"]) for kind, text in seen.events]
    assert [kind for kind, _ in shown] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED", "ADDED"]
    assert shown[0][1]["resourceVersion"] == str(entered)
    assert (shown[2][1]["labels"], shown[2][1]["resourceVersion"]) == ({"k": "yes", "n": "1"}, str(left))
    assert (shown[4][1]["labels"], shown[4][1]["resourceVersion"]) == ({"k": "yes"}, str(gone))


async def test_scopes_and_names(store: Store) -> None:
    everything, one, named = store.watch(), store.watch("x/"), store.watch("x/", name="a")
    anywhere, missing = store.watch(name="c"), store.watch("x/", name="zz")
    for key in (A, B, C):
        await store.put(key)
    assert everything.short == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
    assert one.short == [("ADDED", "a"), ("ADDED", "b")]
    assert named.short == [("ADDED", "a")]
    assert anywhere.short == [("ADDED", "c")]
    assert missing.calls == 0


async def test_backlog_from_the_window_comes_before_the_watcher(store: Store) -> None:
    start = store.cacher.revision
    await store.put(A)
    await store.put(B)
    await store.put(A)
    seen = store.watch("x/", name="a", since=start)
    assert seen.short == [("ADDED", "a"), ("MODIFIED", "a")]
    assert (seen.calls, store.storage.asked) == (1, 0)
    await store.delete(A)
    assert seen.short[2:] == [("DELETED", "a")]


async def test_future_revisions_are_waited_for(store: Store) -> None:
    seen = store.watch(since=store.cacher.revision + 2)
    await store.put(A)
    await store.put(B)
    assert seen.calls == 0
    await store.put(C)
    assert seen.short == [("ADDED", "c")]


async def test_events_of_one_delivery_come_in_one_call(store: Store) -> None:
    seen, other = store.watch(), store.watch("x/")
    past_the_first = store.watch(since=store.cacher.revision + 1)
    store.storage.grouped = True
    await store.put(A)
    await store.put(C)
    await store.put(B)
    assert store.pods.get(A) is None
    store.storage.flush()
    assert seen.short == [("ADDED", "a"), ("ADDED", "c"), ("ADDED", "b")]
    assert other.short == [("ADDED", "a"), ("ADDED", "b")]
    assert past_the_first.short == [("ADDED", "c"), ("ADDED", "b")]
    assert (seen.calls, other.calls, past_the_first.calls) == (1, 1, 1)


async def test_every_cache_shows_a_commit_before_anyone_is_told(store: Store) -> None:
    secrets = store.cacher.resource("/registry/secrets/")
    found: list[tuple[int, int]] = []

    def deliver(events: list[WatchEvent]) -> None:
        found.append((secrets.count(), secrets.revision))

    store.pods.watch("", since=store.cacher.revision, deliver=deliver)
    store.storage.grouped = True
    await store.put(A)
    newest = await store.storage.create("/registry/secrets/x/s", encode(pod("x/s")))
    store.storage.flush()
    assert found == [(1, newest)]


async def test_watchers_share_changes(store: Store) -> None:
    """A frame made by one watcher is found by the next, also by those who see a departure; nothing stays behind."""
    made: list[str] = []
    changes = []

    def deliver(events: list[WatchEvent]) -> None:
        for event in events:
            changes.append(event.change)
            if event.type not in event.change.memo:
                event.change.memo[event.type] = True
                made.append(event.type)

    chosen = MATCHERS.of(parse_labels("k"), ())
    assert chosen is MATCHERS.of(parse_labels("k"), ())
    for _ in range(3):
        store.pods.watch("", since=store.cacher.revision, deliver=deliver)
        store.pods.watch("", matcher=chosen, since=store.cacher.revision, deliver=deliver)
    await store.put(A, {"k": "1"})
    await store.put(A)
    assert sorted(made) == ["ADDED", "DELETED", "MODIFIED"]
    assert len(changes) == 12
    assert not any(change.memo for change in changes)


async def test_a_watcher_that_raises_is_stopped_alone() -> None:
    store = await open_store()

    def broken(events: list[WatchEvent]) -> None:
        raise RuntimeError("no")

    first = store.watch()
    answer = store.pods.watch("", since=store.cacher.revision, deliver=broken)
    last = store.watch()
    await store.put(A)
    await store.put(B)
    assert isinstance(answer, Watcher)
    assert answer.stopped
    assert first.short == last.short == [("ADDED", "a"), ("ADDED", "b")]
    assert [str(context["exception"]) for context in store.errors] == ["no"]
    with pytest.raises(RuntimeError):
        store.pods.watch("", since=1, deliver=broken)
    assert store.pods.statistics().watchers == 2


async def test_watchers_stop_themselves_and_each_other(store: Store) -> None:
    watchers: list[Watcher] = []
    calls: list[int] = []

    def stopper(index: int) -> Any:
        def deliver(events: list[WatchEvent]) -> None:
            calls.append(index)
            for victim in {0: (0, 2), 1: (), 2: (), 3: (0, 1, 3)}[index]:
                watchers[victim].stop()

        return deliver

    for index in range(4):
        answer = store.pods.watch("", since=store.cacher.revision, deliver=stopper(index))
        assert isinstance(answer, Watcher)
        watchers.append(answer)
    await store.put(A)
    await store.put(B)
    assert calls == [0, 1, 3]
    assert store.pods.statistics().watchers == 0


async def test_a_watch_begun_during_delivery_sees_nothing_twice(store: Store) -> None:
    begun: list[Recorder] = []
    start = store.cacher.revision

    def deliver(events: list[WatchEvent]) -> None:
        if not begun:
            begun.append(store.watch(since=start))
            begun.append(store.watch())

    store.pods.watch("", since=start, deliver=deliver)
    await store.put(A)
    await store.put(B)
    assert begun[0].short == [("ADDED", "a"), ("ADDED", "b")]
    assert begun[1].short == [("ADDED", "b")]


async def test_writes_during_delivery_come_after_it(store: Store) -> None:
    order: list[tuple[str, str]] = []

    def writes(events: list[WatchEvent]) -> None:
        order.append(("first", events[0].change.object.name))
        if len(order) == 1:
            # The memory back end commits without waiting, so its coroutine ends at the first step.
            with pytest.raises(StopIteration):
                store.storage.create(B, encode(pod(B))).send(None)

    store.pods.watch("", since=store.cacher.revision, deliver=writes)

    def reads(events: list[WatchEvent]) -> None:
        order.append(("second", events[0].change.object.name))

    store.pods.watch("", since=store.cacher.revision, deliver=reads)
    await store.put(A)
    assert order == [("first", "a"), ("second", "a"), ("first", "b"), ("second", "b")]


async def hold(store: Store, since: int, recorder: Recorder) -> asyncio.Task[Watcher]:
    """A watch from before the window, stuck in its reading of history."""
    store.storage.gate.clear()
    answer = store.pods.watch("x/", since=since, deliver=recorder)
    assert not isinstance(answer, Watcher)
    task = asyncio.ensure_future(answer)
    await asyncio.sleep(0)
    assert store.storage.asked
    return task


async def test_events_while_history_is_read() -> None:
    store = await open_store(window=0)
    start = store.cacher.revision
    await store.put(A)
    await store.put(C)
    seen = Recorder()
    task = await hold(store, start, seen)
    await store.put(B)
    await store.delete(A)
    assert seen.calls == 0
    store.storage.gate.set()
    await task
    assert seen.short == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    await store.put(A)
    assert seen.short[3:] == [("ADDED", "a")]


async def test_a_cancelled_watch_leaves_nothing() -> None:
    store = await open_store(window=0)
    await store.put(A)
    seen = Recorder()
    task = await hold(store, 1, seen)
    assert store.pods.statistics().watchers == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    answer = store.pods.watch("", since=1, deliver=seen)
    assert not isinstance(answer, Watcher)
    answer.close()  # type: ignore[attr-defined]
    await store.put(B)
    assert (store.pods.statistics().watchers, seen.calls) == (0, 0)


async def test_a_failing_delivery_of_history_comes_out_of_the_watch() -> None:
    store = await open_store(window=0)
    await store.put(A)

    def broken(events: list[WatchEvent]) -> None:
        raise RuntimeError("no")

    answer = store.pods.watch("", since=1, deliver=broken)
    assert not isinstance(answer, Watcher)
    with pytest.raises(RuntimeError):
        await answer
    assert store.pods.statistics().watchers == 0


async def test_close_ends_a_watch_that_reads_history() -> None:
    store = await open_store(window=0)
    await store.put(A)
    seen = Recorder()
    task = await hold(store, 1, seen)
    await store.cacher.close()
    store.storage.gate.set()
    assert (await task).stopped
    assert seen.calls == 0


async def test_too_old() -> None:
    store = await open_store(window=0, history=1)
    for _ in range(4):
        await store.put(A)
    answer = store.pods.watch("", since=2, deliver=Recorder())
    assert not isinstance(answer, Watcher)
    with pytest.raises(StorageError) as caught:
        await answer
    assert (caught.value.code, caught.value.revision) == (Code.COMPACTED, store.storage.compacted)
    assert store.pods.statistics().watchers == 0


async def test_triggers_ask_only_who_may_care() -> None:
    store = await open_store(triggers=("spec.nodeName",))
    asked: list[str] = []

    class Spy:
        """A selectable-fields function that tells who was judged."""

        def __init__(self, node: str) -> None:
            self.node = node

        def __call__(self, obj: CachedObject) -> dict[str, str]:
            asked.append(self.node)
            return node_of(obj)

    recorders = {}
    for node in ("n1", "n2", "n3"):
        recorders[node] = Recorder()
        chosen = Matchers(Spy(node)).of((), parse_fields(f"spec.nodeName={node}"))
        store.pods.watch("", matcher=chosen, since=store.cacher.revision, deliver=recorders[node])
    unset = store.watch(fields="spec.nodeName=")
    other = store.watch("y/", fields="spec.nodeName=n1")
    await store.put(A)
    await store.put(A, node="n1")
    assert asked == ["n1", "n1"]
    await store.put(A, node="n2")
    await store.delete(A)
    assert "n3" not in asked
    assert recorders["n1"].short == recorders["n2"].short == [("ADDED", "a"), ("DELETED", "a")]
    assert unset.short == [("ADDED", "a"), ("DELETED", "a")]
    assert (recorders["n3"].calls, other.calls) == (0, 0)


async def test_fields_that_cannot_be_read_stop_who_needs_them() -> None:
    store = await open_store(triggers=("spec.nodeName",))
    by_field, plain, elsewhere = store.watch(fields="spec.nodeName=n1"), store.watch(), store.watch("y/")
    value = encode({**pod(A), "spec": "text"})
    await store.storage.create(A, value)
    assert (by_field.calls, elsewhere.calls) == (0, 0)
    assert plain.short == [("ADDED", "a")]
    assert store.pods.statistics().watchers == 2
    assert len(store.errors) == 2

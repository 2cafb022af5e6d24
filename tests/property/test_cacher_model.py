"""The watch cache over random writes equals a naive reading of the log: every list, every watch, at every revision."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core._ext.selector import Matcher
from fastapi_core.storage.cacher.cacher import Cacher
from fastapi_core.storage.cacher.resource import Listing, ResourceCache
from fastapi_core.storage.cacher.watchers import Watcher
from fastapi_core.storage.interface import Code, StorageError
from tests.oracles import selector as selector_oracle
from tests.oracles.cacher import Log, Predicate
from tests.unit.storage_cacher.support import PODS, AwkwardStorage, Recorder, encode, node_of, pod

KEYS = [PODS + name for name in ("x/a", "x/b", "x-b/a", "x-b/c", "y/a")] + ["/registry/secrets/x/a"]
LABELS = [None, {"app": "a"}, {"app": "b", "n": "3"}, {"n": "7"}]
NODES = ["", "n1", "n2"]
SCOPES = ["", "x/", "x-b/", "y/"]

LABEL_SELECTORS: list[list[tuple[str, str, tuple[str, ...]]]] = [
    [],
    [("app", "in", ("a",))],
    [("app", "notin", ("a",)), ("n", "gt", ("3",))],
    [("app", "exists", ())],
]
FIELD_SELECTORS: list[list[tuple[str, str, str]]] = [
    [],
    [("spec.nodeName", "=", "n1")],
    [("spec.nodeName", "!=", "n1"), ("metadata.name", "=", "a")],
    [("spec.nodeName", "=", "")],
]
SELECTORS = [(labels, fields) for labels in LABEL_SELECTORS for fields in FIELD_SELECTORS]
# As the registry does it, one matcher per selector.
MATCHERS = [Matcher(labels, fields, node_of) if labels or fields else None for labels, fields in SELECTORS]


def predicate(index: int) -> Predicate:
    labels, fields = SELECTORS[index]

    def selects(tree: dict[str, Any]) -> bool:
        metadata = tree["metadata"]
        known = {"metadata.name": metadata["name"], "spec.nodeName": tree["spec"].get("nodeName", "")}
        return selector_oracle.matches(labels, fields, metadata.get("labels", {}), known)

    return selects


@dataclass
class Watch:
    since: int
    scope: str
    name: str
    selector: int
    recorder: Recorder = field(default_factory=Recorder)
    watcher: Watcher | None = None
    task: asyncio.Task[Watcher] | None = None
    stopped_at: int | None = None
    refused: bool = False


class World:
    """A store, the cache over it and the log of what was done."""

    def __init__(self, history: int, window: int, triggers: tuple[str, ...]) -> None:
        self.storage = AwkwardStorage(history_limit=history)
        self.cacher = Cacher(self.storage, window_count=window)
        self.pods = self.cacher.resource(PODS, node_of, triggers)
        self.log = Log()
        self.watches: list[Watch] = []
        self.n = 0

    async def write(self, key: str, tree: dict[str, Any] | None) -> None:
        current = await self.storage.get(key)
        if tree is None:
            if current is not None:
                self.log.add(await self.storage.delete(key, expected=current.revision), key, None)
        elif current is None:
            self.log.add(await self.storage.create(key, encode(tree)), key, tree)
        else:
            self.log.add(await self.storage.update(key, encode(tree), expected=current.revision), key, tree)

    async def do(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("put", key, labels, node):
                self.n += 1
                await self.write(key, pod(key, labels, node, self.n))
            case ("delete", key):
                await self.write(key, None)
            case ("watch", back, scope, name, selector):
                await self.watch(back, scope, name, selector)
            case ("stop", index):
                await self.stop(index)
            case ("group", grouped):
                self.storage.grouped = grouped
                if not grouped:
                    self.storage.flush()
            case ("hold", held):
                (self.storage.gate.clear if held else self.storage.gate.set)()
        await asyncio.sleep(0)

    async def watch(self, back: int, scope: str, name: str, selector: int) -> None:
        watch = Watch(max(1, self.cacher.revision - back), scope, name, selector)
        answer = self.pods.watch(
            scope, matcher=MATCHERS[selector], name=name, since=watch.since, deliver=watch.recorder
        )
        if isinstance(answer, Watcher):
            watch.watcher = answer
        else:
            compacted = self.storage.compacted
            watch.task = asyncio.ensure_future(answer)
            await asyncio.sleep(0)
            if watch.task.done() and watch.task.exception() is not None:
                error = watch.task.exception()
                assert isinstance(error, StorageError)
                assert error.code is Code.COMPACTED
                assert watch.since < compacted
                watch.refused = True
        self.watches.append(watch)

    async def stop(self, index: int) -> None:
        alive = [w for w in self.watches if w.watcher is not None and w.stopped_at is None]
        if alive:
            watch = alive[index % len(alive)]
            assert watch.watcher is not None
            watch.watcher.stop()
            watch.stopped_at = self.cacher.revision

    async def settle(self) -> None:
        self.storage.grouped = False
        self.storage.flush()
        self.storage.gate.set()
        await asyncio.gather(*(w.task for w in self.watches if w.task is not None), return_exceptions=True)

    def check_watches(self) -> None:
        for watch in self.watches:
            if watch.refused:
                continue
            want = self.log.events(watch.since, PODS + watch.scope, watch.name, predicate(watch.selector))
            if watch.stopped_at is not None:
                stop = watch.stopped_at
                before = Log()
                before.commits = [c for c in self.log.commits if c.revision <= stop]
                want = before.events(watch.since, PODS + watch.scope, watch.name, predicate(watch.selector))
            assert watch.recorder.events == want, watch

    async def check_list(self, cache: ResourceCache, revision: int, scope: str, selector: int, limit: int) -> None:
        want = self.log.listed(revision, PODS + scope, predicate(selector))
        total = len(self.log.listed(revision, PODS + scope, lambda tree: True))
        matcher = MATCHERS[selector]
        found: list[bytes] = []
        start = ""
        while True:
            try:
                page = cache.list_at(revision, scope, matcher=matcher, start=start, limit=limit)
                listing = page if isinstance(page, Listing) else await page
            except StorageError as error:
                if error.code is Code.COMPACTED and revision < self.storage.compacted:
                    return
                raise
            assert listing.revision == revision
            assert not limit or len(listing.objects) <= limit
            found += [obj.json() for obj in listing.objects]
            if matcher is None:
                assert listing.remaining == total - len(found)
            if not listing.next:
                break
            assert limit
            assert len(listing.objects) == limit
            assert listing.next > start
            start = listing.next
        assert found == want


def random_step(random: Random) -> tuple[Any, ...]:
    kind = random.choices(["put", "delete", "watch", "stop", "group", "hold"], [50, 14, 20, 3, 8, 5])[0]
    if kind == "put":
        return kind, random.choice(KEYS), random.choice(LABELS), random.choice(NODES)
    if kind == "delete":
        return kind, random.choice(KEYS)
    if kind == "watch":
        selector = random.randrange(len(SELECTORS))
        return kind, random.randint(-3, 20), random.choice(SCOPES), random.choice(["", "", "", "a"]), selector
    if kind == "stop":
        return kind, random.randrange(10)
    return kind, random.random() < 0.4


def random_query(random: Random) -> tuple[int, str, int, int]:
    selector = random.choice([0, 0, random.randrange(len(SELECTORS))])
    return random.randint(0, 30), random.choice(SCOPES), selector, random.randint(0, 3)


async def run_world(random: Random) -> None:
    """Random steps, then everything is asked and compared."""
    window, history = random.choice([0, 3, 12, 50]), random.choice([8, 1000])
    world = World(history, window, random.choice([(), ("spec.nodeName",)]))
    await world.storage.open()
    await world.cacher.open()
    for _ in range(random.randint(5, 80)):
        await world.do(random_step(random))
    await world.settle()
    assert world.pods.revision == world.storage.revision
    world.check_watches()
    again = Cacher(world.storage, window_count=window)
    await again.open()
    for back, scope, selector, limit in [(0, "", 0, 0), *(random_query(random) for _ in range(30))]:
        revision = max(1, world.storage.revision - back)
        await world.check_list(world.pods, revision, scope, selector, limit)
        # Claimed only now, after loading, and without a window.
        await world.check_list(again.resource(PODS, node_of), revision, scope, selector, limit)
    assert world.pods.count("x/") == len(world.log.listed(world.storage.revision, PODS + "x/", lambda tree: True))
    statistics = world.pods.statistics()
    newest = world.pods.list()
    assert statistics.objects == len(newest.objects)
    assert statistics.bytes == sum(len(obj.body) for obj in newest.objects)
    assert statistics.window <= window
    await world.cacher.close()
    assert world.pods.statistics().watchers == 0


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=True))
def test_cache_equals_the_log(random: Random) -> None:
    asyncio.run(run_world(random))


@pytest.mark.parametrize("size", [1, 2, 500])
async def test_writes_while_loading(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of one load are of different revisions; what is written in between appears once and in its last state."""
    monkeypatch.setattr("fastapi_core.storage.cacher.cacher._LOAD_PAGE", size)
    world = World(1000, 100, ())
    await world.storage.open()
    for key in KEYS[:4]:
        await world.write(key, pod(key))
    writes = [(key, n) for n in range(3) for key in KEYS]

    async def between() -> None:
        for _ in range(4):
            if writes:
                key, n = writes.pop()
                await world.write(key, pod(key, n=n) if n != 1 else None)

    world.storage.between = between
    await world.cacher.open()
    world.storage.between = None
    newest = world.storage.revision
    assert world.pods.revision == newest
    assert [o.json() for o in world.pods.list().objects] == world.log.listed(newest, PODS, lambda tree: True)
    seen = Recorder()
    world.pods.watch("", since=newest, deliver=seen)
    await world.write(KEYS[0], pod(KEYS[0], n=99))
    assert seen.events == world.log.events(newest, PODS, "", lambda tree: True)

"""Random operations: SQLite, memory and a model that keeps every state give the same answers."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.storage.interface import Code, Event, KeyValue, Storage, StorageError
from fastapi_core.storage.memory import MemoryStorage
from fastapi_core.storage.sqlite.settings import Settings
from fastapi_core.storage.sqlite.store import SqliteStorage

KEYS = ["/a/1", "/a/2", "/a/2/x", "/ab/1", "/b/1", "/b/é"]
PREFIXES = ["", "/", "/a", "/a/", "/a/2", "/ab/", "/b/", "/c/"]

write = st.tuples(
    st.sampled_from(["create", "update", "delete"]),
    st.sampled_from(KEYS),
    st.integers(0, 3),  # 0: the right revision, else one that is off by as much
    st.binary(max_size=3),
)
step = st.one_of(
    st.lists(write, min_size=1, max_size=5).map(lambda writes: ("writes", writes)),
    st.tuples(
        st.just("list"), st.sampled_from(PREFIXES), st.integers(0, 8), st.sampled_from(["", *KEYS]), st.integers(0, 3)
    ),
    st.tuples(st.just("history"), st.sampled_from(PREFIXES), st.integers(0, 8), st.integers(0, 8)),
    st.tuples(st.just("compact"), st.integers(-1, 6)),
    st.just(("restart",)),
)


class Model:
    """Slow and obvious: the state at each revision, and each event."""

    def __init__(self) -> None:
        self.states: dict[int, dict[str, KeyValue]] = {1: {}}
        self.events: list[Event] = []
        self.revision = 1
        self.compacted = 0

    def write(self, verb: str, key: str, value: bytes, expected: int) -> object:
        state = dict(self.states[self.revision])
        existing = state.get(key)
        if verb == "create" and existing is not None:
            return Code.KEY_EXISTS, key, existing.revision
        if verb != "create" and existing is None:
            return Code.KEY_NOT_FOUND, key, 0
        if verb != "create" and existing is not None and existing.revision != expected:
            return Code.CONFLICT, key, existing.revision
        self.revision += 1
        new = None
        if verb != "delete":
            new = KeyValue(key, value, existing.created if existing else self.revision, self.revision)
            state[key] = new
        else:
            del state[key]
        self.states[self.revision] = state
        self.events.append(Event(key, self.revision, new, existing))
        return self.revision

    def list(self, prefix: str, revision: int, start: str, limit: int) -> object:
        at = revision or self.revision
        if at > self.revision:
            return Code.FUTURE_REVISION, "", self.revision
        if at < self.compacted:
            return Code.COMPACTED, "", self.compacted
        keys = sorted(k for k in self.states[at] if k.startswith(prefix) and k >= start)
        page = keys[:limit] if limit else keys
        return [self.states[at][k] for k in page], at, len(keys) - len(page)

    def history(self, prefix: str, after: int, until: int) -> object:
        if after < self.compacted:
            return Code.COMPACTED, "", self.compacted
        return [e for e in self.events if after < e.revision <= until and e.key.startswith(prefix)]


async def outcome(call: Awaitable[Any]) -> object:
    try:
        return await call
    except StorageError as error:
        return error.code, error.key, error.revision


async def both(stores: list[Storage], call: Any, expected: object) -> None:
    for storage in stores:
        assert await outcome(call(storage)) == expected, storage


async def writes(stores: list[Storage], model: Model, batch: list[Any]) -> None:
    """All of a batch are issued at once, so that SQLite judges them as one group."""
    expected, revisions = [], []
    for verb, key, off, value in batch:
        existing = model.states[model.revision].get(key)
        revisions.append((existing.revision if existing else 1) - off)
        expected.append(model.write(verb, key, value, revisions[-1]))

    def call(storage: Storage, verb: str, key: str, value: bytes, revision: int) -> Awaitable[int]:
        if verb == "create":
            return storage.create(key, value)
        if verb == "update":
            return storage.update(key, value, expected=revision)
        return storage.delete(key, expected=revision)

    for storage in stores:
        calls = [call(storage, v, k, value, r) for (v, k, _, value), r in zip(batch, revisions, strict=True)]
        assert await asyncio.gather(*(outcome(c) for c in calls)) == expected, storage


async def apply(stores: list[Storage], model: Model, action: Any) -> None:
    match action:
        case ("writes", batch):
            await writes(stores, model, batch)
        case ("list", prefix, back, start, limit):
            # back 8 is the newest by 0, 0 a revision not reached.
            revision = 0 if back == 8 else max(1, model.revision + 1 - back)
            expected = model.list(prefix, revision, start, limit)

            async def page(storage: Storage) -> object:
                found = await storage.list(prefix, revision=revision, start=start, limit=limit)
                return found.items, found.revision, found.remaining

            await both(stores, page, expected)
        case ("history", prefix, back, span):
            after = max(0, model.revision - back)
            expected = model.history(prefix, after, after + span)
            await both(stores, lambda s: s.history(prefix, after=after, until=after + span), expected)
        case ("compact", back):
            revision = max(1, model.revision - back)
            if revision > model.revision:
                expected = (Code.FUTURE_REVISION, "", model.revision)
            else:
                expected = None
                model.compacted = max(model.compacted, revision)
            await both(stores, lambda s: s.compact(revision), expected)


async def scenario(directory: Path, actions: list[Any]) -> None:
    durable = SqliteStorage(Settings(directory))
    stores: list[Storage] = [durable, MemoryStorage()]
    model = Model()
    for storage in stores:
        await storage.open()
    try:
        for action in actions:
            if action == ("restart",):
                await durable.close()
                durable = SqliteStorage(Settings(directory))
                stores[0] = durable
                await durable.open()
            await apply(stores, model, action)
            for storage in stores:
                assert (storage.revision, storage.compacted) == (model.revision, model.compacted), storage
    finally:
        await durable.close()


@settings(max_examples=60, deadline=None)
@given(st.lists(step, max_size=25))
def test_back_ends_agree_with_the_model(actions: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(scenario(Path(directory), actions))

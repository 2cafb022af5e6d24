"""What a back end brings to the storage contract suite, and what the tests of the suite share."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Sequence
from typing import Protocol

import pytest

from fastapi_core.storage.interface import Code, Event, KeyValue, Storage, StorageError

#: No single step of a contract test takes longer, seconds.
PATIENCE = 10.0


class Harness(Protocol):
    """What a back end provides to run the suite."""

    durable: bool
    """Data survives `restart`; tests of that are skipped otherwise."""
    ordered: bool
    """Writes issued together are judged in the order they were issued in; else in any, one after the other."""
    ttl: float
    """The shortest time to live the back end keeps, seconds."""

    async def make(self) -> Storage:
        """A new, empty, opened store. The harness closes it."""

    async def restart(self, storage: Storage) -> Storage:
        """Close `storage` and open another one on the same data."""


def in_time(ttl: float) -> float:
    """A time to live within which a write is made that is to come before its end."""
    return min(10 * ttl, 1 + ttl)


class Recorder:
    """A listener that keeps what it hears and can be waited for."""

    def __init__(self, storage: Storage) -> None:
        self.events: list[Event] = []
        self.batches: list[list[Event]] = []
        self._news = asyncio.Event()
        self.stop = storage.listen(self._hear)

    def _hear(self, events: Sequence[Event]) -> None:
        self.batches.append(list(events))
        self.events.extend(events)
        self._news.set()

    async def wait(self, count: int) -> list[Event]:
        """At least `count` events, in the order they came."""
        async with asyncio.timeout(PATIENCE):
            while len(self.events) < count:
                self._news.clear()
                await self._news.wait()
        return self.events


async def refused(code: Code, call: Awaitable[object]) -> StorageError:
    """Await `call`, which must fail with `code`; returns the error."""
    with pytest.raises(StorageError) as caught:
        await call
    assert caught.value.code is code, caught.value
    return caught.value


async def accepted(call: Awaitable[object], *, otherwise: Code) -> bool:
    """Await `call`: True when it succeeds, False when it fails with the code `otherwise`."""
    try:
        await call
    except StorageError as error:
        if error.code is not otherwise:
            raise
        return False
    return True


class StorageTests:
    """Tests that begin with one empty store."""

    @pytest.fixture
    async def storage(self, harness: Harness) -> Storage:
        return await harness.make()


async def random_write(storage: Storage, state: dict[str, KeyValue], rng: random.Random, *, keys: int) -> None:
    """One valid random change, applied to `state` too."""
    key = f"/k/{rng.randrange(keys)}"
    value = rng.randbytes(rng.randrange(40))
    existing = state.get(key)
    if existing is None:
        revision = await storage.create(key, value)
        state[key] = KeyValue(key, value, revision, revision)
    elif rng.random() < 0.3:
        await storage.delete(key, expected=existing.revision)
        del state[key]
    else:
        revision = await storage.update(key, value, expected=existing.revision)
        state[key] = KeyValue(key, value, existing.created, revision)

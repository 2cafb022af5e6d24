"""A source that is told of changes: objects in memory that are only read through the API."""

from __future__ import annotations

import asyncio
import copy
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from itertools import takewhile
from typing import Any, Generic, TypeVar

from fastapi_core import errors
from fastapi_core.extension.kinds import Storage
from fastapi_core.extension.objects import ObjectMeta
from fastapi_core.extension.request import Event, EventType, Listing, Request
from fastapi_core.extension.sync import quick

T = TypeVar("T")
Key = tuple[str, str]


class Feed(Storage[T], Generic[T]):
    """Objects that come from elsewhere: `put` and `remove` what you hear of, clients get, list and watch it.

    ```python
    sensors: Feed[Sensor] = Feed()
    app.kind(Sensor, "sensors", storage=sensors)

    @app.background
    async def listen() -> None:
        async for reading in bus:
            sensors.put(Sensor(ObjectMeta(name=reading.id, namespace="home"), reading.value))
    ```

    For dataclasses and pydantic models. Versions are given here, objects are copied, the last `window` events are
    remembered for clients that come back. Call it on the event loop only (from a thread by
    `loop.call_soon_threadsafe(feed.put, obj)`).
    """

    def __init__(self, window: int = 1000) -> None:
        self._objects: dict[Key, T] = {}
        # Greater than any version of an earlier run: what clients remember of it must be too old, not yet to come.
        self._revision = int(time.time() * 1000)
        self._forgotten = self._revision
        self._events: deque[tuple[int, Event[T]]] = deque(maxlen=max(window, 1))
        self._changed = asyncio.Event()

    def put(self, obj: T) -> None:
        """The object is there now, or is otherwise than before."""
        kept = self._copy(obj)
        metadata = _metadata(kept)
        key = (metadata.namespace, metadata.name)
        previous = self._objects.get(key)
        self._objects[key] = kept
        self._tell("ADDED" if previous is None else "MODIFIED", kept, previous)

    def remove(self, name: str, namespace: str = "") -> None:
        """The object is gone; nothing happens when it was not there."""
        obj = self._objects.pop((namespace, name), None)
        if obj is None:
            return
        self._tell("DELETED", self._copy(obj), obj)

    def _copy(self, obj: T) -> T:
        """The object under the next version: what the author goes on to do with his own does not matter here."""
        made = copy.deepcopy(obj)
        self._revision += 1
        _metadata(made).resource_version = str(self._revision)
        return made

    def _tell(self, kind: EventType, obj: T, previous: T | None) -> None:
        if len(self._events) == self._events.maxlen:
            self._forgotten = self._events[0][0]
        self._events.append((self._revision, Event(kind, obj, previous)))
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    @quick
    def get(self, request: Request, name: str) -> T | None:
        return self._objects.get((request.namespace, name))

    @quick
    def list(self, request: Request) -> Listing[T]:
        chosen = [obj for key, obj in self._objects.items() if request.namespace in ("", key[0])]
        return Listing(chosen, str(self._revision))

    async def watch(self, request: Request) -> AsyncIterator[Event[T]]:
        seen = int(request.resource_version or self._revision)
        while True:
            if seen < self._forgotten:
                raise errors.expired(f"too old resource version: {seen} ({self._forgotten})")
            changed = self._changed
            fresh = self._behind(seen)
            for revision, event in fresh:
                yield event
                seen = revision
            if not fresh:
                await changed.wait()

    def _behind(self, seen: int) -> Sequence[tuple[int, Event[T]]]:
        """The events after a version: from the newest back, most watchers have all but the last."""
        return [*takewhile(lambda told: told[0] > seen, reversed(self._events))][::-1]


def _metadata(obj: Any) -> ObjectMeta:
    found: ObjectMeta = obj.metadata
    return found

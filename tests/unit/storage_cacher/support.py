"""Stores that behave awkwardly on demand, and small objects to put in them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import orjson

from fastapi_core._ext.objects import CachedObject
from fastapi_core.storage.cacher.changes import WatchEvent
from fastapi_core.storage.interface import Event, Page
from fastapi_core.storage.memory import MemoryStorage

PODS = "/registry/pods/"


def pod(key: str, labels: dict[str, str] | None = None, node: str = "", n: int = 0) -> dict[str, Any]:
    """A small pod tree for a key `/registry/pods/NAMESPACE/NAME`."""
    namespace, _, name = key.removeprefix(PODS).rpartition("/")
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": f"u-{name}", "generation": n}
    if labels:
        metadata["labels"] = labels
    spec = {"nodeName": node} if node else {}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec}


def encode(tree: dict[str, Any]) -> bytes:
    return orjson.dumps(tree)


def node_of(obj: CachedObject) -> dict[str, str]:
    return {"spec.nodeName": obj.tree()["spec"].get("nodeName", "")}


def plain(events: Sequence[WatchEvent]) -> list[tuple[str, bytes]]:
    return [(event.type, event.change.object.json()) for event in events]


class Recorder:
    """A `deliver` that keeps what it gets: all events, and the number of calls."""

    def __init__(self) -> None:
        self.events: list[tuple[str, bytes]] = []
        self.calls = 0

    def __call__(self, events: list[WatchEvent]) -> None:
        self.calls += 1
        self.events += plain(events)

    @property
    def short(self) -> list[tuple[str, str]]:
        """(type, name) of the events."""
        return [(kind, orjson.loads(text)["metadata"]["name"]) for kind, text in self.events]


class AwkwardStorage(MemoryStorage):
    """Memory, but history can be held up, commits can come in groups, and lists let others work in between."""

    def __init__(self, *, history_limit: int = 10_000) -> None:
        super().__init__(history_limit=history_limit)
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = 0
        self.grouped = False
        self.between: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._group: list[Event] = []
        self._deliver_now = self._listeners.deliver
        self._listeners.deliver = self._collect  # type: ignore[method-assign]

    def _collect(self, events: Sequence[Event]) -> None:
        self._group += events
        if not self.grouped:
            self.flush()

    def flush(self) -> None:
        """Give the listeners everything that was held back, in one call."""
        events, self._group = self._group, []
        if events:
            self._deliver_now(events)

    async def history(self, prefix: str, *, after: int, until: int) -> list[Event]:
        self.asked += 1
        events = await super().history(prefix, after=after, until=until)
        await self.gate.wait()
        return events

    async def list(self, prefix: str, *, revision: int = 0, start: str = "", limit: int = 0) -> Page:
        page = await super().list(prefix, revision=revision, start=start, limit=limit)
        if self.between is not None:
            await self.between()
        return page

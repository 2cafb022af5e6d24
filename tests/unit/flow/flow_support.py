"""A clock that is told the time, and queue sets and flows on it."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from fastapi_core.flow.queues import Entry, Estimate, Queue, QueueSet


class VirtualTime:
    """Seconds that pass when somebody says so; callbacks in order of their time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def clock(self) -> float:
        return self.now

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._due, (self.now + seconds, self._count, call))

    def advance(self, seconds: float) -> None:
        """Let time pass, running what falls due on the way."""
        self.until(self.now + seconds)

    def until(self, end: float) -> None:
        while self._due and self._due[0][0] <= end:
            self.now, _, call = heapq.heappop(self._due)
            call()
        self.now = end

    def step(self) -> bool:
        """Jump to the next callback; False when there is none."""
        if not self._due:
            return False
        self.until(self._due[0][0])
        return True


class Lane:
    unaccommodated = 0


def queue_set(time: VirtualTime, *, queues: int, length: int, limit: int, exempt: bool = False) -> QueueSet:
    made = QueueSet("test", time.clock, time.later)
    made.configure(exempt=exempt, wanted=queues, length=length)
    made.set_limit(limit)
    return made


def entry(queues: QueueSet, hand: tuple[Queue, ...] = (), estimate: Estimate | None = None, verb: str = "get") -> Entry:
    flow: Any = SimpleNamespace(queues=queues, hand=hand, lane=Lane())
    info: Any = SimpleNamespace(verb=verb)
    user: Any = None
    return Entry(flow, estimate or Estimate(), info, user)

"""Deadlines of requests that wait."""

from __future__ import annotations

import asyncio
from time import monotonic


class Watched:
    """One request that waits, until its deadline at the latest."""

    __slots__ = ("_book", "deadline", "task", "timer")

    def __init__(self, book: dict[Watched, None], deadline: float, task: asyncio.Task[object]) -> None:
        self._book = book
        self.deadline = deadline
        """Monotonic seconds; below 0 once it has passed."""
        self.task = task
        self.timer: asyncio.TimerHandle | None = None

    def expire(self) -> None:
        self.deadline = -1.0
        self.task.cancel()

    def overdue(self) -> bool:
        """Whether it is the deadline that has cancelled the task, and nobody else as well."""
        return self.deadline < 0 and self.task.uncancel() == 0

    def leave(self) -> None:
        self._book.pop(self, None)
        if self.timer is not None:
            self.timer.cancel()


class Overdue:
    """Cuts off requests that wait past their deadline.

    One timer looks after all of them every `PERIOD` seconds, so a request costs two dictionary operations; a deadline
    nearer than that gets a timer of its own.
    """

    PERIOD = 0.25

    def __init__(self) -> None:
        self._book: dict[Watched, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, deadline: float) -> Watched:
        """Cancel the running task at `deadline` (monotonic seconds) unless it has left before."""
        task = asyncio.current_task()
        assert task is not None
        watched = Watched(self._book, deadline, task)
        left = deadline - monotonic()
        if left < 2 * self.PERIOD:
            watched.timer = task.get_loop().call_later(max(left, 0.0), watched.expire)
            return watched
        self._book[watched] = None
        if self._timer is None:
            self._timer = task.get_loop().call_later(self.PERIOD, self._sweep, task.get_loop())
        return watched

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now = monotonic()
        for watched in self._book:
            if 0 <= watched.deadline <= now:
                watched.expire()
        self._timer = loop.call_later(self.PERIOD, self._sweep, loop) if self._book else None

"""Work that comes round: one task at a time for each key, again after a while, sooner when asked, more and more rarely
while it fails."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from fastapi_core.obs import logs
from fastapi_core.records import dataclass

log = logs.get("aggregation")

K = TypeVar("K", bound=Hashable)
NEVER = 0.0
"""Not before it is asked for."""


@dataclass(slots=True)
class _Round:
    retry: float
    timer: asyncio.TimerHandle | None = None
    task: asyncio.Task[None] | None = None
    again: bool = False

    def stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.task is not None:
            self.task.cancel()


class Rounds(Generic[K]):
    """`work` answers in how many seconds it is to be done again (`NEVER`), or None when it has failed: then, and when it
    raises, it is tried after `first` seconds, and each time after twice as many, up to `last`. `name` is for the log."""

    def __init__(self, name: str, work: Callable[[K], Awaitable[float | None]], *, first: float, last: float) -> None:
        self._name = name
        self._work = work
        self._first = first
        self._last = last
        self._rounds: dict[K, _Round] = {}
        self.running = False

    def start(self) -> None:
        """From now on what is asked for is done."""
        self.running = True

    async def stop(self) -> None:
        """End all of it and wait until it has ended."""
        self.running = False
        tasks = [found.task for found in self._rounds.values() if found.task is not None]
        for found in self._rounds.values():
            found.stop()
        if tasks:
            await asyncio.wait(tasks)

    def forget(self, key: K) -> None:
        found = self._rounds.pop(key, None)
        if found is not None:
            found.stop()

    def ask(self, key: K, *, fresh: bool = False) -> None:
        """Do it now, or once more when it is under way. `fresh`: what it failed for before may be over."""
        if not self.running:
            return
        found = self._rounds.get(key)
        if found is None:
            found = self._rounds[key] = _Round(self._first)
        if fresh:
            found.retry = self._first
        if found.task is not None:
            found.again = True
            return
        if found.timer is not None:
            found.timer.cancel()
            found.timer = None
        found.task = asyncio.get_running_loop().create_task(self._run(key, found))

    async def _run(self, key: K, found: _Round) -> None:
        delay: float | None = None
        try:
            delay = await self._work(key)
        except Exception as error:
            log.warning("Failed, and will be tried again", work=self._name, key=str(key), error=str(error))
        finally:
            found.task = None
        if delay is None:
            delay, found.retry = found.retry, min(found.retry * 2, self._last)
        else:
            found.retry = self._first
        if not self.running or self._rounds.get(key) is not found:
            return
        if found.again:
            found.again = False
            self.ask(key)
        elif delay:
            # Not all at once, whatever began together.
            later = delay * random.uniform(0.9, 1.1)
            found.timer = asyncio.get_running_loop().call_later(later, self.ask, key)

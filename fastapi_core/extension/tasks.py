"""Background tasks of an extension: controllers, pollers, listeners."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from fastapi_core.obs import logs

if TYPE_CHECKING:
    from fastapi_core.server.generic import GenericServer

log = logs.get("extension")

#: Seconds before a task that failed is begun again: the first time, and at most.
PAUSE, LONGEST = 1.0, 60.0
#: One that ran this long before it failed begins anew with the shortest pause.
STEADY = 60.0


class Tasks:
    """Runs them from the start of the server to the beginning of its end."""

    def __init__(self, tasks: Sequence[Callable[[], Awaitable[None]]]) -> None:
        self._tasks = tasks
        self._running: list[asyncio.Task[None]] = []

    def install(self, server: GenericServer) -> None:
        if self._tasks:
            server.add_hook("background-tasks", self.start)
            server.add_pre_shutdown_hook("background-tasks", self.stop)

    async def start(self) -> None:
        self._running = [asyncio.create_task(_kept_up(task), name=_name(task)) for task in self._tasks]

    async def stop(self) -> None:
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)


async def _kept_up(task: Callable[[], Awaitable[None]]) -> None:
    """Run a task until it returns, through its failures."""
    pause, loop = PAUSE, asyncio.get_running_loop()
    while True:
        began = loop.time()
        try:
            await task()
            return
        except (Exception, SystemExit, GeneratorExit) as error:
            # An exit would end the whole server, in the middle of its requests.
            if loop.time() - began > STEADY:
                pause = PAUSE
            log.error("A background task failed", error, task=_name(task), again=f"{pause:g}s")
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST)


def _name(task: Callable[[], Awaitable[None]]) -> str:
    return getattr(task, "__qualname__", repr(task))

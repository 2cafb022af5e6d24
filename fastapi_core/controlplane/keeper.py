"""Work that is done at the start and again every while, such as objects that have to be there whatever users do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fastapi_core.obs import logs

log = logs.get("keeper")


class Keeper:
    """Runs `work` once on `start` (a failure there is the caller's), then every `seconds` until `stop`."""

    def __init__(self, name: str, work: Callable[[], Awaitable[None]], seconds: float) -> None:
        self._name = name
        self._work = work
        self._seconds = seconds
        self._soon = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._work()
        self._task = asyncio.create_task(self._run(), name=self._name)

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._seconds):
                    await self._soon.wait()
            except TimeoutError:
                pass
            self._soon.clear()
            try:
                await self._work()
            except Exception as error:
                log.warning("Will be tried again", what=self._name, error=str(error))

    def nudge(self) -> None:
        """Do it now: what it rests on has changed."""
        self._soon.set()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

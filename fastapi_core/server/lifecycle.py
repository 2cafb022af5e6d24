"""Named signals of a server's life, hooks, and the order in which it goes down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import field

from fastapi_core.obs import logs
from fastapi_core.records import dataclass
from fastapi_core.server.health import Progress

log = logs.get("lifecycle")

Start = Callable[[], Awaitable[None]]
Closer = Callable[[], "Awaitable[None] | None"]


@dataclass(slots=True)
class Signals:
    """What has happened so far, for those who wait for it."""

    started: asyncio.Event = field(default_factory=asyncio.Event)
    """All hooks are through."""
    shutdown_initiated: asyncio.Event = field(default_factory=asyncio.Event)
    after_shutdown_delay: asyncio.Event = field(default_factory=asyncio.Event)
    not_accepting: asyncio.Event = field(default_factory=asyncio.Event)
    """New requests are refused."""
    drained: asyncio.Event = field(default_factory=asyncio.Event)
    """No request is under way any more (or the time for it is over)."""
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    def happened(self, name: str) -> None:
        """Set the event of this name, and say so (a server that never came up has an error to tell instead)."""
        event: asyncio.Event = getattr(self, name)
        event.set()
        if self.started.is_set():
            log.info("Lifecycle event", event=name)


@dataclass(slots=True)
class Hook:
    """A post-start hook: `start` returns when it is done; `progress` is its health check."""

    name: str
    start: Start
    progress: Progress


class HookError(Exception):
    """A post-start hook failed; the process has to end."""


async def run_hooks(hooks: list[Hook]) -> None:
    """All hooks at once. The first failure cancels the others and is raised as HookError."""

    async def run(hook: Hook) -> None:
        try:
            await hook.start()
        except Exception as error:
            raise HookError(f"post-start hook {hook.name} failed: {error}") from error
        hook.progress.done = True

    tasks = [asyncio.create_task(run(hook), name=f"poststarthook/{hook.name}") for hook in hooks]
    if not tasks:
        return
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_closers(closers: list[tuple[str, Closer]]) -> None:
    """One after the other; a failing one is logged and does not keep the rest from running."""
    for name, closer in closers:
        try:
            pending = closer()
            if pending is not None:
                await pending
        except Exception as error:
            log.error("Closing failed", error, what=name)

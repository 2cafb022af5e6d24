"""Waiting for an API server that is being started: its kubeconfig is not written yet, or nobody listens yet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fastapi_core.authn.outbound import OutboundError
from fastapi_core.extension.delegated.access import MissingError

T = TypeVar("T")

SECONDS = 30.0
"""How long."""
PAUSE = 0.25


async def patiently(attempt: Callable[[], Awaitable[T]], waiting: Callable[[str], None], seconds: float = -1.0) -> T:
    """What `attempt` answers, tried again for `seconds` (default: SECONDS) while there is no API server yet.

    `waiting` is told once, why. What `attempt` raised last is raised then, anything else at once."""
    loop = asyncio.get_running_loop()
    end = loop.time() + (SECONDS if seconds < 0 else seconds)
    told = False
    while True:
        try:
            return await attempt()
        except (MissingError, OutboundError) as error:
            if not _passes(error) or loop.time() >= end:
                raise
            if not told:
                waiting(str(error))
                told = True
        await asyncio.sleep(PAUSE)


def _passes(error: Exception) -> bool:
    return isinstance(error, MissingError) or "connection refused" in str(error)

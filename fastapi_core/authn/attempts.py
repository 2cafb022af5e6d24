"""A review is asked for again when the failure looks like passing: a few attempts, longer and longer pauses between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi_core.authn.outbound import OutboundError

BACKOFF = (0.5, 0.75, 1.125, 1.6875)
"""Pauses between attempts, in seconds."""


async def persistently(
    attempt: Callable[[], Awaitable[dict[str, Any]]],
    pause: Callable[[float], Awaitable[None]],
    within: float | None = None,
) -> dict[str, Any]:
    """What the first attempt that succeeds answers, all of them within so many seconds (None: as long as they take).

    Raises OutboundError: the last failure, since what went wrong says more than that the time is over.
    """
    last: OutboundError | None = None
    try:
        async with asyncio.timeout(within):
            for seconds in (*BACKOFF, None):
                try:
                    return await attempt()
                except OutboundError as error:
                    if seconds is None or not error.again:
                        raise
                    last = error
                await pause(seconds)
    except TimeoutError:
        raise last or OutboundError("context deadline exceeded") from None
    raise AssertionError("the last attempt ends the loop")

"""Reviews that are asked for again: how often, for how long, and what is said at the end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fastapi_core.authn.attempts import BACKOFF, persistently
from fastapi_core.authn.outbound import OutboundError


class Asked:
    """Fails as it is told to, then answers."""

    def __init__(self, *failures: OutboundError) -> None:
        self.failures = list(failures)
        self.pauses: list[float] = []
        self.count = 0

    async def attempt(self) -> dict[str, Any]:
        self.count += 1
        if self.failures:
            raise self.failures.pop(0)
        return {"allowed": True}

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


def passing(number: int = 1) -> list[OutboundError]:
    return [OutboundError(f"failure {index}", again=True) for index in range(number)]


async def test_what_passes_is_asked_again() -> None:
    asked = Asked(*passing(4))
    assert await persistently(asked.attempt, asked.pause) == {"allowed": True}
    assert asked.pauses == list(BACKOFF)


async def test_the_last_failure_is_told_and_what_does_not_pass_at_once() -> None:
    asked = Asked(*passing(9))
    with pytest.raises(OutboundError, match="failure 4"):
        await persistently(asked.attempt, asked.pause)
    assert asked.count == 5
    asked = Asked(OutboundError("for good"))
    with pytest.raises(OutboundError, match="for good"):
        await persistently(asked.attempt, asked.pause)
    assert asked.pauses == []


async def test_one_limit_for_all_attempts() -> None:
    async def ever(seconds: float = 0.0) -> Any:
        await asyncio.Event().wait()

    asked = Asked()
    with pytest.raises(OutboundError, match="context deadline exceeded"):
        await persistently(ever, asked.pause, 0.01)
    asked = Asked(*passing())
    with pytest.raises(OutboundError, match="failure 0"):
        await persistently(asked.attempt, ever, 0.01)
    assert asked.count == 1


async def test_who_is_cancelled_is_cancelled() -> None:
    async def ever() -> Any:
        await asyncio.Event().wait()

    asked = Asked()
    task = asyncio.ensure_future(persistently(ever, asked.pause, 30.0))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

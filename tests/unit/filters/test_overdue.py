"""Requests that wait past their deadline are cut off, others are left alone."""

from __future__ import annotations

import asyncio
from time import monotonic

import pytest

from fastapi_core.errors import APIError
from fastapi_core.filters.driver import Overdue
from fastapi_core.http.exchange import Answer, Response


async def never() -> Answer:
    await asyncio.get_running_loop().create_future()
    raise AssertionError("not reached")


@pytest.mark.parametrize("seconds", [0.01, 0.03])
async def test_cut_off(seconds: float) -> None:
    """By a timer of its own when near, by the shared one when further away."""
    overdue = Overdue()
    overdue.PERIOD = 0.01  # type: ignore[misc]
    with pytest.raises(APIError) as caught:
        await asyncio.create_task(overdue.within(monotonic() + seconds, never()))
    assert caught.value.code == 504
    assert overdue._due == {}


async def test_answer_in_time_and_timer_stops() -> None:
    overdue = Overdue()
    overdue.PERIOD = 0.01  # type: ignore[misc]
    answer = Response(200, [])

    async def soon() -> Answer:
        await asyncio.sleep(0)
        return answer

    assert await asyncio.create_task(overdue.within(monotonic() + 60, soon())) is answer
    loop = asyncio.get_running_loop()
    end = loop.time() + 5
    while overdue._timer is not None and loop.time() < end:
        await asyncio.sleep(0)
    assert overdue._timer is None


async def test_client_gone_is_no_timeout() -> None:
    overdue = Overdue()
    task = asyncio.create_task(overdue.within(monotonic() + 60, never()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

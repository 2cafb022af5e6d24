"""Requests that wait are cut off at their deadline, and only by it."""

from __future__ import annotations

import asyncio
from time import monotonic

import pytest

from fastapi_core.filters.overdue import Overdue


async def waiting(overdue: Overdue, seconds: float, pending: asyncio.Future[str]) -> str:
    """What the driver does: the answer, or "cut off"."""
    watched = overdue.enter(monotonic() + seconds)
    try:
        return await pending
    except asyncio.CancelledError:
        if watched.overdue():
            return "cut off"
        raise
    finally:
        watched.leave()


@pytest.mark.parametrize("seconds", [-1.0, 0.01, 0.6])
async def test_cut_off(seconds: float) -> None:
    overdue = Overdue()
    never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    began = monotonic()
    task = asyncio.create_task(waiting(overdue, seconds, never))
    assert await task == "cut off"
    assert monotonic() - began >= seconds
    assert task.cancelling() == 0


@pytest.mark.parametrize("seconds", [0.3, 60])
async def test_answer_in_time_and_timer_stops(seconds: float) -> None:
    overdue = Overdue()
    soon: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(waiting(overdue, seconds, soon))
    await asyncio.sleep(0)
    soon.set_result("answer")
    assert await task == "answer"
    async with asyncio.timeout(5):
        while overdue._timer is not None:
            await asyncio.sleep(0.01)


async def test_client_gone_is_no_timeout() -> None:
    overdue = Overdue()
    never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(waiting(overdue, 60, never))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_client_gone_at_the_deadline_is_gone() -> None:
    overdue = Overdue()
    never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    seen: list[bool] = []

    async def request() -> None:
        watched = overdue.enter(monotonic() + 60)
        task = asyncio.current_task()
        assert task is not None
        try:
            watched.expire()
            task.cancel()
            await never
        finally:
            seen.append(watched.overdue())
            watched.leave()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(request())
    assert seen == [False]

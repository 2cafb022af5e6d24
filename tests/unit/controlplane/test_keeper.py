"""Work that is done again and again."""

from __future__ import annotations

import asyncio

import pytest

from fastapi_core.controlplane.keeper import Keeper


async def test_once_at_the_start_then_again_whatever_happens() -> None:
    runs = 0
    enough = asyncio.Event()

    async def work() -> None:
        nonlocal runs
        runs += 1
        if runs == 2:
            raise OSError("away for a moment")
        if runs == 4:
            enough.set()

    keeper = Keeper("test", work, 0.001)
    await keeper.start()
    assert runs == 1
    await asyncio.wait_for(enough.wait(), 10)
    await keeper.stop()
    stopped_at = runs
    await asyncio.sleep(0)
    assert runs == stopped_at


async def test_a_failure_at_the_start_is_the_callers() -> None:
    async def work() -> None:
        raise OSError("no")

    keeper = Keeper("test", work, 1)
    with pytest.raises(OSError, match="no"):
        await keeper.start()
    await keeper.stop()


async def test_at_once_when_told() -> None:
    runs = 0
    told = asyncio.Event()

    async def work() -> None:
        nonlocal runs
        runs += 1
        told.set()

    keeper = Keeper("test", work, 3600)
    await keeper.start()
    told.clear()
    keeper.nudge()
    await asyncio.wait_for(told.wait(), 10)
    assert runs == 2
    await keeper.stop()

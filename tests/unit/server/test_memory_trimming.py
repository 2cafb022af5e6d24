"""When freed memory is given back to the system."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fastapi_core.server import memory
from fastapi_core.server.memory import Memory

MB = 1 << 20


async def looked(sizes: list[int], find: Callable[[], memory.Trim | None]) -> None:
    """Let it look at one size after the other; after a trim the next one is read at once."""
    left = list(sizes)
    done = asyncio.Event()

    def read() -> int:
        if len(left) == 1:
            done.set()
        return left.pop(0) if len(left) > 1 else left[0]

    watched = Memory(read, find, period=0.001)
    watched.start()
    await asyncio.wait_for(done.wait(), 10)
    await asyncio.sleep(0.01)
    watched.stop()


async def test_after_a_burst_and_once() -> None:
    calls: list[int] = []
    # Start, growing twice, steady: trimmed; what remains is the new floor.
    await looked([50 * MB, 150 * MB, 250 * MB, 250 * MB, 120 * MB, 121 * MB, 122 * MB], lambda: lambda: calls.append(1))
    assert calls == [1]


async def test_again_after_a_while() -> None:
    calls: list[int] = []
    await looked([50 * MB, 250 * MB] + [250 * MB] * (memory.AGAIN + 4), lambda: lambda: calls.append(1))
    assert calls == [1, 1]


async def test_not_for_little() -> None:
    calls: list[int] = []
    await looked([50 * MB, 60 * MB, 70 * MB, 70 * MB], lambda: lambda: calls.append(1))
    assert calls == []


async def test_not_while_it_grows() -> None:
    calls: list[int] = []
    await looked([50 * MB + n * 10 * MB for n in range(20)] + [50 * MB], lambda: lambda: calls.append(1))
    assert calls == []


async def test_nothing_to_trim_with_or_to_read() -> None:
    asked = asyncio.Event()
    without = Memory(iter([50 * MB, 150 * MB, 150 * MB]).__next__, lambda: asked.set(), period=0.001)  # type: ignore[func-returns-value]
    without.start()
    await asyncio.wait_for(asked.wait(), 10)
    without.stop()
    idle = Memory(lambda: 0)
    idle.start()
    idle.stop()


def test_the_system_has_both() -> None:
    assert memory.resident() > MB
    trim = memory.trimmer()
    assert trim is None or trim() in (0, 1)

"""Work that comes round: one at a time for each key, back-off, and nothing left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from fastapi_core.aggregation.rounds import NEVER, Rounds


class Work:
    """Answers what it is told to; None and exceptions are failures."""

    def __init__(self, *answers: float | Exception | None) -> None:
        self.answers = list(answers)
        self.done: list[str] = []
        self.running = 0
        self.hold: asyncio.Event | None = None
        self.rounds: Rounds[str] = Rounds("test", self, first=0.01, last=0.04)
        self.rounds.start()

    async def __call__(self, key: str) -> float | None:
        self.running += 1
        assert self.running == 1
        try:
            if self.hold is not None:
                await self.hold.wait()
            self.done.append(key)
            answer = self.answers.pop(0) if self.answers else NEVER
            if isinstance(answer, Exception):
                raise answer
            return answer
        finally:
            self.running -= 1

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not true():
                await asyncio.sleep(0.001)


async def test_again_until_it_is_never() -> None:
    work = Work(0.001, None, ValueError("x"), 0.001, NEVER, 5.0)
    work.rounds.ask("a")
    await work.until(lambda: len(work.done) == 5)
    await asyncio.sleep(0.06)
    assert len(work.done) == 5
    work.rounds.ask("a")
    await work.until(lambda: len(work.done) == 6)
    await work.rounds.stop()


async def test_failures_make_it_rarer_and_fresh_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: 1.0)
    delays: list[float] = []
    loop = asyncio.get_running_loop()
    plain = loop.call_later
    monkeypatch.setattr(loop, "call_later", lambda d, *rest, **more: (delays.append(d), plain(min(d, 0.001), *rest))[1])
    work = Work(*[None] * 4, NEVER, None, None, NEVER)
    work.rounds.ask("a")
    await work.until(lambda: len(work.done) == 5)
    assert [delay for delay in delays if delay in (0.01, 0.02, 0.04)] == [0.01, 0.02, 0.04, 0.04]
    delays.clear()
    work.rounds.ask("a", fresh=True)
    await work.until(lambda: len(work.done) == 8)
    assert [delay for delay in delays if delay in (0.01, 0.02, 0.04)] == [0.01, 0.02]
    await work.rounds.stop()


async def test_asked_while_it_runs_means_once_more() -> None:
    work = Work()
    work.hold = asyncio.Event()
    for _ in range(5):
        work.rounds.ask("a")
        await asyncio.sleep(0)
    work.hold.set()
    await work.until(lambda: len(work.done) == 2)
    await asyncio.sleep(0.02)
    assert work.done == ["a", "a"]
    await work.rounds.stop()


async def test_what_is_forgotten_or_stopped_does_not_come_round() -> None:
    work = Work(0.001, 0.001, 0.001)
    work.hold = asyncio.Event()
    work.rounds.ask("a")
    await asyncio.sleep(0)
    work.rounds.forget("a")
    work.hold.set()
    await asyncio.sleep(0.02)
    assert work.done == []
    work.rounds.ask("b")
    await work.until(lambda: len(work.done) >= 1)
    await work.rounds.stop()
    count = len(work.done)
    work.rounds.ask("c")
    await asyncio.sleep(0.02)
    assert len(work.done) == count

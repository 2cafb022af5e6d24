"""Runs the ordered filters over a request: synchronous until somebody has to wait, then in one coroutine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from fastapi_core.errors import APIError
from fastapi_core.http.exchange import Answer, Response, Stream
from fastapi_core.request.context import RequestContext

if TYPE_CHECKING:
    from fastapi_core._ext.http1 import Request

Step = Callable[[RequestContext], "Answer | Awaitable[Answer | None] | None"]
Finish = Callable[[RequestContext, Answer], None]

TOO_LONG = "Timeout: request did not complete within the allotted timeout"


class Overtime(APIError):  # noqa: N818 - what happened to the request, not a failure of its endpoint
    """A request that was cut off at its deadline."""

    def __init__(self) -> None:
        super().__init__("Timeout", TOO_LONG, details={})


@dataclass(frozen=True, slots=True)
class Filter:
    """One position of the chain.

    `before` runs on the way in: None passes the request on, an answer ends it, an awaitable of either makes it wait.
    `after` runs on the way out, innermost first, whoever answered; it may add to `answer.headers`. It also runs when
    its `before` never did, because a filter further out refused the request.
    `caught` turns an exception of any position into the answer; one filter of the chain has it.
    `bounds`: requests that wait are cut off at `ctx.deadline` here; one filter of the chain has it.
    `aborted` is told of requests whose client went away while they waited.
    """

    name: str
    before: Step | None = None
    after: Finish | None = None
    caught: Callable[[RequestContext, Exception], Answer] | None = None
    aborted: Callable[[RequestContext], None] | None = None
    bounds: bool = False


class Chain:
    """The composed chain: `http.exchange.Handler`."""

    def __init__(self, filters: Sequence[Filter]) -> None:
        self.names = [f.name for f in filters]
        self._steps = tuple(enumerate(f.before for f in filters if f.before is not None))
        self._afters = tuple(f.after for f in reversed(filters) if f.after is not None)
        self._aborted = tuple(f.aborted for f in filters if f.aborted is not None)
        (self._caught,) = (f.caught for f in filters if f.caught is not None)
        self._bounded = any(f.bounds for f in filters)
        self._overdue = Overdue()

    def __call__(self, request: Request) -> Answer | Awaitable[Answer]:
        ctx = RequestContext(request)
        position = 0
        try:
            for position, step in self._steps:  # noqa: B007 - read after the loop
                answer = step(ctx)
                if answer is not None:
                    break
            else:
                raise LookupError("no filter answered the request")
        except Exception as error:
            answer = self._caught(ctx, error)
        if isinstance(answer, Response | Stream):
            return self._finish(ctx, answer)
        return self._wait(ctx, answer, position)

    def _finish(self, ctx: RequestContext, answer: Answer) -> Answer:
        """Give back what the request occupied and complete the headers. The endpoint's own list is left alone."""
        if ctx.release is not None:
            ctx.release()
        answer.headers = [*answer.headers, *ctx.headers]
        for after in self._afters:
            after(ctx, answer)
        return answer

    async def _wait(self, ctx: RequestContext, pending: Awaitable[Answer | None], position: int) -> Answer:
        try:
            if ctx.deadline and self._bounded:
                answer = await self._overdue.within(ctx.deadline, self._resume(ctx, pending, position))
            else:
                answer = await self._resume(ctx, pending, position)
        except Exception as error:
            answer = self._caught(ctx, error)
        except asyncio.CancelledError:
            if ctx.release is not None:
                ctx.release()
            for aborted in self._aborted:
                aborted(ctx)
            raise
        return self._finish(ctx, answer)

    async def _resume(self, ctx: RequestContext, pending: Awaitable[Answer | None], position: int) -> Answer:
        """Wait for the filter or endpoint at `position`, then go on with the positions after it."""
        while True:
            answer = await pending
            if answer is not None:
                return answer
            for position, step in self._steps[position + 1 :]:  # noqa: B007, B020 - both are read after the loop
                following = step(ctx)
                if following is not None:
                    break
            else:
                raise LookupError("no filter answered the request")
            if isinstance(following, Response | Stream):
                return following
            pending = following


class Overdue:
    """Cuts off requests that wait past their deadline.

    One timer looks after all of them every `PERIOD` seconds, so a request costs two dictionary operations; a deadline
    nearer than that gets a timer of its own.
    """

    PERIOD = 0.25

    def __init__(self) -> None:
        self._due: dict[asyncio.Task[object], float] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def within(self, deadline: float, pending: Awaitable[Answer]) -> Answer:
        """The answer, or 504 at `deadline` (monotonic seconds). A TimeoutError from inside is not mistaken for it."""
        left = deadline - monotonic()
        if left < 2 * self.PERIOD:
            return await _exactly(left, pending)
        task = asyncio.current_task()
        assert task is not None
        self._due[task] = deadline
        if self._timer is None:
            self._timer = task.get_loop().call_later(self.PERIOD, self._sweep, task.get_loop())
        try:
            return await pending
        except asyncio.CancelledError:
            if self._due.get(task, 0.0) < 0:
                task.uncancel()
                raise Overtime from None
            raise
        finally:
            self._due.pop(task, None)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now = monotonic()
        for task, deadline in self._due.items():
            if 0 <= deadline <= now:
                self._due[task] = -1.0
                task.cancel()
        self._timer = loop.call_later(self.PERIOD, self._sweep, loop) if self._due else None


async def _exactly(seconds: float, pending: Awaitable[Answer]) -> Answer:
    try:
        async with asyncio.timeout(seconds) as scope:
            return await pending
    except TimeoutError:
        if scope.expired():
            raise Overtime from None
        raise

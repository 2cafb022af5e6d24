"""Runs the ordered filters over a request: synchronous until somebody has to wait, then in one coroutine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import CoroutineType
from typing import TYPE_CHECKING

from fastapi_core.filters.overdue import Overdue
from fastapi_core.http.exchange import Answer, Response, Stream
from fastapi_core.records import dataclass
from fastapi_core.request.aside import Deferred
from fastapi_core.request.context import RequestContext
from fastapi_core.request.status import Overtime

if TYPE_CHECKING:
    from fastapi_core._ext.http1 import Request

Step = Callable[[RequestContext], "Answer | Awaitable[Answer | None] | None"]
Finish = Callable[[RequestContext, Answer], None]


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
        if isinstance(answer, Response | Stream) and type(answer) is not Deferred:
            return self._finish(ctx, answer)
        return self._wait(ctx, answer, position, Guard(ctx, answer))

    def _finish(self, ctx: RequestContext, answer: Answer) -> Answer:
        """Complete the headers and give back what the request occupied. The endpoint's own list is left alone."""
        answer.headers = [*answer.headers, *ctx.headers]
        try:
            for after in self._afters:
                after(ctx, answer)
        finally:
            # Last: a filter may keep it for the beginning of a stream.
            release = ctx.release
            if release is not None:
                ctx.release = None
                release()
        return answer

    async def _wait(
        self, ctx: RequestContext, pending: Awaitable[Answer | None], position: int, guard: Guard
    ) -> Answer:
        watched = self._overdue.enter(ctx.deadline) if ctx.deadline and self._bounded else None
        try:
            answer = await pending
            if answer is None:
                answer = await self._resume(ctx, position)
            if isinstance(answer, Deferred):
                answer = await answer
        except Exception as error:
            answer = self._caught(ctx, error)
        except asyncio.CancelledError:
            if watched is None or not watched.overdue():
                guard.release()
                for aborted in self._aborted:
                    aborted(ctx)
                raise
            answer = self._caught(ctx, Overtime())
        finally:
            if watched is not None:
                watched.leave()
        return self._finish(ctx, answer)

    async def _resume(self, ctx: RequestContext, position: int) -> Answer:
        """The filter at `position` has let the request pass after a wait; go on with those after it."""
        while True:
            for position, step in self._steps[position + 1 :]:  # noqa: B007, B020 - both are read after the loop
                answer = step(ctx)
                if answer is not None:
                    break
            else:
                raise LookupError("no filter answered the request")
            if not isinstance(answer, Response | Stream) or isinstance(answer, Deferred):
                answer = await answer
            if answer is not None:
                return answer


class Guard:
    """Gives back what a waiting request occupies when it is given up, at the latest with the last reference.

    The latter is for a task that is cancelled before its first step: nothing of its coroutine ever runs then, nor of
    the one it was to wait for.
    """

    __slots__ = ("_ctx", "_pending")

    def __init__(self, ctx: RequestContext, pending: Awaitable[Answer | None]) -> None:
        self._ctx = ctx
        self._pending = pending

    def release(self) -> None:
        release = self._ctx.release
        if release is not None:
            self._ctx.release = None
            release()

    def __del__(self) -> None:
        if isinstance(self._pending, CoroutineType):
            self._pending.close()
        self.release()

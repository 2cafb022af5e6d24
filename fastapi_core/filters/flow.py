"""Priority and fairness in the chain: every request takes seats of its priority level, or waits for them, or gets 429.

A request that is answered at once takes its seat and gives it back within one call; only one that finds no seat makes
a task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from time import monotonic
from typing import TYPE_CHECKING

from fastapi_core.flow.queues import ONE, REFUSED, RUNNING, WAITING, Entry, Reason
from fastapi_core.flow.rules import Digest
from fastapi_core.http.exchange import Answer, Stream
from fastapi_core.obs.catalog import Metrics
from fastapi_core.request.context import User
from fastapi_core.request.status import TOO_MANY, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi_core._ext.reqinfo import RequestInfo
    from fastapi_core.flow.control import Control, Flow
    from fastapi_core.flow.estimate import Estimator
    from fastapi_core.http.exchange import StreamWriter
    from fastapi_core.request.context import RequestContext

#: Classifications remembered; all are dropped when the memory is full or the configuration changed.
_MEMORY = 8192
#: Longest request target whose classification is remembered.
_LONGEST = 512
#: Nobody waits longer for a seat, in seconds.
_LONGEST_WAIT = 60.0
_READS = frozenset({"get", "list", "watch"})

Key = tuple[User, str, str, str, str, str, str, bool]


class Guard:
    """Calls `release` once: when called, or with the last reference, for a stream that is never started."""

    __slots__ = ("_release",)

    def __init__(self, release: Callable[[], None]) -> None:
        self._release: Callable[[], None] | None = release

    def __call__(self) -> None:
        release, self._release = self._release, None
        if release is not None:
            release()

    __del__ = __call__


class PriorityAndFairness:
    """The filter. `wait_limit` seconds is how long a request without a deadline may wait for a seat."""

    def __init__(self, control: Control, estimator: Estimator, wait_limit: float, metrics: Metrics) -> None:
        self._control = control
        self._estimate = estimator
        self._wait_limit = min(wait_limit, _LONGEST_WAIT)
        self._memory: dict[Key | tuple[User, RequestInfo], Flow] = {}
        self._generation = control.generation
        self._terminations = metrics.terminations
        running, waiting = metrics.inflight, control.metrics.inqueue

        def collect() -> None:
            for kind in ("readOnly", "mutating"):
                running.labels(kind).set(0)
                waiting.labels(kind).set(0)
            for level in control.levels.values():
                for entry in level.queues.running:
                    running.labels(_kind(entry)).inc()
                for queue in level.queues.queues:
                    for entry in queue.waiting:
                        waiting.labels(_kind(entry)).inc()

        metrics.registry.collector(collect)

    def before(self, ctx: RequestContext) -> Answer | Awaitable[Answer | None] | None:
        info = ctx.info
        verb = info.verb
        if ctx.long_running and verb != "watch":
            return None
        memory = self._memory
        if self._generation != self._control.generation or len(memory) >= _MEMORY:
            memory = self._memory = {}
            self._generation = self._control.generation
        user = ctx.user
        # What is asked again and again comes with the same info.
        flow = memory.get((user, info)) if verb in _READS else None
        if flow is None:
            flow = self._classify(ctx, memory)
        ctx.headers += flow.headers
        estimate = ONE if verb == "get" else self._estimate(info, flow)
        entry = Entry(flow, estimate, info, user)
        reason = flow.queues.admit(entry)
        if entry.state is RUNNING:
            ctx.release = entry
            if estimate is ONE:
                flow.lane.immediate += 1
            else:
                flow.lane.started(estimate.width, 0.0, 0)
            return None
        if reason is not None:
            return self._refuse(ctx, entry, reason)
        ctx.release = entry
        return self._wait(ctx, entry)

    def _classify(self, ctx: RequestContext, memory: dict[Key | tuple[User, RequestInfo], Flow]) -> Flow:
        info, user = ctx.info, ctx.user
        resource = info.is_resource_request
        key: Key = (
            user, info.verb, info.api_group, info.resource, info.subresource, info.namespace,
            "" if resource else info.path, resource,
        )  # fmt: skip
        flow = memory.get(key)
        short = len(ctx.request.target) <= _LONGEST
        if flow is None:
            flow = self._control.classify(user, Digest(*key[1:]))
            if short:
                memory[key] = flow
        if short and ctx.request.method == "GET":
            memory[user, info] = flow
        return flow

    def after(self, ctx: RequestContext, answer: Answer) -> None:
        """A watch keeps its seats until its first events are out, and is one that writes are charged for."""
        if ctx.long_running and isinstance(answer, Stream):
            release = ctx.release
            if isinstance(release, Entry):
                ctx.release = None
                answer.start = self._follow(ctx, Guard(release), answer.start)

    def _follow(
        self, ctx: RequestContext, guard: Guard, start: Callable[[StreamWriter], None]
    ) -> Callable[[StreamWriter], None]:
        def followed(writer: StreamWriter) -> None:
            forget = self._control.watches.add(ctx.info)
            if forget is not None:
                writer.on_close(forget)
            try:
                start(writer)
            finally:
                guard()

        return followed

    async def _wait(self, ctx: RequestContext, entry: Entry) -> Answer | None:
        """Wait for the seats. Whoever cancels this (client gone, deadline) also calls `ctx.release`."""
        if entry.state is WAITING:
            loop = asyncio.get_running_loop()
            decision: asyncio.Future[None] = loop.create_future()

            def decide() -> None:
                if not decision.done():
                    decision.set_result(None)

            def expire() -> None:
                entry.flow.queues.expire(entry)
                decide()

            entry.wake = decide
            timer = loop.call_later(ctx.started + self._limit_of(ctx) - monotonic(), expire)
            try:
                await decision
            finally:
                timer.cancel()
        if entry.state is REFUSED:
            return self._refuse(ctx, entry, Reason.TIME)
        entry.flow.lane.started(entry.estimate.width, entry.started - entry.arrived, entry.length)
        return None

    def _limit_of(self, ctx: RequestContext) -> float:
        """A quarter of the time there is for the request."""
        if ctx.deadline:
            return min((ctx.deadline - ctx.started) / 4, _LONGEST_WAIT)
        return self._wait_limit

    def _refuse(self, ctx: RequestContext, entry: Entry, reason: Reason) -> Answer:
        flow = entry.flow
        now = self._control.clock()
        flow.lane.refused(reason, now - entry.arrived)
        self._terminations.labels(ctx.info.verb.upper(), "", "", "", "", "", "apiserver", "429").inc()
        ctx.headers.append((b"Retry-After", b"%d" % flow.level.retry.refused(int(now))))
        return text(429, TOO_MANY)


def _kind(entry: Entry) -> str:
    return "readOnly" if entry.info.verb in _READS else "mutating"

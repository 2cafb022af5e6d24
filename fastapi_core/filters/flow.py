"""Priority and fairness in the chain: every request takes seats of its priority level, or waits for them, or gets 429.

A request that is answered at once takes its seat and gives it back within one call; only one that finds no seat makes
a task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from fastapi_core.filters.limits import Pool
from fastapi_core.flow.queues import ONE, REFUSED, RUNNING, WAITING, Entry, Reason
from fastapi_core.flow.rules import Digest
from fastapi_core.http.exchange import Answer, Stream
from fastapi_core.obs.catalog import Metrics
from fastapi_core.request.context import User
from fastapi_core.request.status import TOO_MANY, text

if TYPE_CHECKING:
    from collections.abc import Callable

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


class Hold:
    """What one request occupies, given back once: by a call, or with the last reference.

    The latter is for a task that is cancelled before its first step: nothing of its coroutine ever runs then.
    """

    __slots__ = ("_entry", "_pool")

    def __init__(self, entry: Entry, pool: Pool) -> None:
        self._entry: Entry | None = entry
        self._pool: Pool | None = None
        if entry.state is RUNNING:
            pool.current += 1
            self._pool = pool

    def run(self, pool: Pool) -> None:
        """The request has waited and now runs."""
        pool.current += 1
        self._pool = pool

    def __call__(self) -> None:
        entry = self._entry
        if entry is None:
            return
        self._entry = None
        if self._pool is not None:
            self._pool.current -= 1
        flow = entry.flow
        cancelled = entry.state is WAITING
        seconds = flow.queues.leave(entry)
        if cancelled:
            flow.lane.refused(Reason.CANCELLED, flow.queues.now - entry.arrived)
        elif entry.started:
            info = entry.info
            lane = flow.lane
            (lane.watch_execution if info is not None and info.verb == "watch" else lane.execution).observe(seconds)

    __del__ = __call__


class PriorityAndFairness:
    """The filter. `wait_limit` seconds is how long a request without a deadline may wait for a seat."""

    def __init__(self, control: Control, estimator: Estimator, wait_limit: float, metrics: Metrics) -> None:
        self.reads = Pool(0)
        self.writes = Pool(0)
        self._control = control
        self._estimate = estimator
        self._wait_limit = min(wait_limit, _LONGEST_WAIT)
        self._memory: dict[Key, Flow] = {}
        self._generation = control.generation
        self._terminations = metrics.terminations
        self._waiting_reads = self._waiting_writes = 0
        read_gauge, write_gauge = metrics.inflight.labels("readOnly"), metrics.inflight.labels("mutating")
        inqueue = control.metrics.inqueue
        read_queue, write_queue = inqueue.labels("readOnly"), inqueue.labels("mutating")

        def collect() -> None:
            read_gauge.set(self.reads.current)
            write_gauge.set(self.writes.current)
            read_queue.set(self._waiting_reads)
            write_queue.set(self._waiting_writes)

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
        resource = info.is_resource_request
        key: Key = (
            ctx.user, verb, info.api_group, info.resource, info.subresource, info.namespace,
            "" if resource else info.path, resource,
        )  # fmt: skip
        flow = memory.get(key)
        if flow is None:
            flow = self._control.classify(ctx.user, Digest(*key[1:]))
            if len(ctx.request.target) <= _LONGEST:
                memory[key] = flow
        ctx.headers += flow.headers
        estimate = ONE if verb == "get" else self._estimate(info, flow)
        entry = Entry(flow, estimate, info, ctx.user)
        reason = flow.queues.admit(entry)
        if entry.state is RUNNING:
            if entry.width == 1 and not entry.waited:
                flow.lane.immediate += 1
            else:
                self._note_start(entry)
            ctx.release = Hold(entry, self.reads if verb in _READS else self.writes)
            return None
        if reason is not None:
            return self._refuse(ctx, entry, reason)
        hold = ctx.release = Hold(entry, self.reads)
        return self._wait(ctx, entry, hold)

    def after(self, ctx: RequestContext, answer: Answer) -> None:
        """A watch keeps its seats until its first events are out, and is one that writes are charged for."""
        hold = ctx.release
        if isinstance(answer, Stream) and ctx.long_running and isinstance(hold, Hold):
            ctx.release = None
            answer.start = self._follow(ctx, hold, answer.start)

    def _follow(
        self, ctx: RequestContext, hold: Hold, start: Callable[[StreamWriter], None]
    ) -> Callable[[StreamWriter], None]:
        def followed(writer: StreamWriter) -> None:
            forget = self._control.watches.add(ctx.info)
            if forget is not None:
                writer.on_close(forget)
            try:
                start(writer)
            finally:
                hold()

        return followed

    async def _wait(self, ctx: RequestContext, entry: Entry, hold: Hold) -> Answer | None:
        """Wait for the seat. Whoever cancels this (client gone, deadline) also calls `hold`."""
        reading = ctx.info.verb in _READS
        pool = self.reads if reading else self.writes
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
            timer = loop.call_later(ctx.started + self._limit_of(ctx) - loop.time(), expire)
            self._count_waiting(reading, 1)
            try:
                await decision
            finally:
                self._count_waiting(reading, -1)
                timer.cancel()
        if entry.state is REFUSED:
            return self._refuse(ctx, entry, Reason.TIME)
        hold.run(pool)
        self._note_start(entry)
        return None

    def _limit_of(self, ctx: RequestContext) -> float:
        """A quarter of the time there is for the request."""
        if ctx.deadline:
            return min((ctx.deadline - ctx.started) / 4, _LONGEST_WAIT)
        return self._wait_limit

    def _count_waiting(self, reading: bool, change: int) -> None:
        if reading:
            self._waiting_reads += change
        else:
            self._waiting_writes += change

    def _note_start(self, entry: Entry) -> None:
        entry.flow.lane.started(entry.width, entry.started - entry.arrived, entry.waited)

    def _refuse(self, ctx: RequestContext, entry: Entry, reason: Reason) -> Answer:
        flow = entry.flow
        now = self._control.clock()
        flow.lane.refused(reason, now - entry.arrived)
        self._terminations.labels(ctx.info.verb.upper(), "", "", "", "", "", "apiserver", "429").inc()
        ctx.headers.append((b"Retry-After", b"%d" % flow.level.retry.refused(int(now))))
        return text(429, TOO_MANY)

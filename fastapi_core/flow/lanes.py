"""Counters of one flow schema at one priority level, cheap to keep and spread over the metrics when somebody looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi_core.flow.queues import Reason

if TYPE_CHECKING:
    from fastapi_core.obs.flow_catalog import FlowMetrics


class Lane:
    """`immediate` counts requests of one seat that ran without waiting: nearly all, so they cost one addition."""

    __slots__ = (
        "_folded", "_level", "_limited", "_metrics", "_queued", "_schema", "_stuck", "_unseen", "execution", "immediate",
        "unaccommodated", "unseen", "watch_execution",
    )  # fmt: skip

    def __init__(self, metrics: FlowMetrics, level: str, schema: str, *, limited: bool, queued: bool) -> None:
        self.immediate = 0
        self.unaccommodated = 0
        self.unseen = 0
        """Writes that no watch sees."""
        self.execution = metrics.execution.labels(level, schema, "regular")
        self.watch_execution = metrics.execution.labels(level, schema, "watch")
        self._metrics = metrics
        self._level = level
        self._schema = schema
        self._limited = limited
        self._queued = queued
        self._folded = 0
        self._stuck = 0
        self._unseen = 0

    def started(self, width: int, waited: float, queue_length: int) -> None:
        """A request got to run; `queue_length` 0 when it was in no queue."""
        m, level, schema = self._metrics, self._level, self._schema
        m.dispatched.labels(level, schema).inc()
        m.width.labels(level, schema).observe(width)
        if self._limited:
            m.waited.labels(level, schema, "true").observe(waited)
        if queue_length:
            m.queue_length.labels(level, schema).observe(queue_length)

    def refused(self, reason: Reason, waited: float) -> None:
        m, level, schema = self._metrics, self._level, self._schema
        m.rejected.labels(level, schema, reason.value).inc()
        m.waited.labels(level, schema, "false").observe(waited)

    def watched(self, count: int) -> None:
        """A write that `count` watches see."""
        self._metrics.watch_count.labels(self._level, self._schema).observe(count)

    def fold(self) -> None:
        """Bring the metrics up to date."""
        new = self.immediate - self._folded
        self._folded = self.immediate
        m, level, schema = self._metrics, self._level, self._schema
        if new:
            m.dispatched.labels(level, schema).inc(new)
            m.width.labels(level, schema).observe(1, new)
            if self._limited:
                # No time at all is what nobody can measure: they took some of the first bucket that has any.
                m.waited.labels(level, schema, "true").counts[1] += new
            if self._queued:
                # Each was alone in its queue for that moment.
                m.queue_length.labels(level, schema).observe(1, new)
        stuck, self._stuck = self.unaccommodated - self._stuck, self.unaccommodated
        if stuck:
            m.unaccommodated.labels(level, schema).inc(stuck)
        unseen, self._unseen = self.unseen - self._unseen, self.unseen
        if unseen:
            m.watch_count.labels(level, schema).observe(0, unseen)

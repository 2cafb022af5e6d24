"""The debug dumps of flow control: tables of priority levels, queues and requests in plain text."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from fastapi_core.flow.control import Control
from fastapi_core.flow.queues import RUNNING, Entry
from fastapi_core.meta.time import format_duration

_LEAST_WIDTH, _PADDING = 8, 1

_LEVELS = (
    "PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests",
    "DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests",
)  # fmt: skip
_QUEUES = (
    "PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR",
    "InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum",
)  # fmt: skip
_REQUESTS = (
    "PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher", "ArriveTime",
    "InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime",
)  # fmt: skip
_DETAILS = ("UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource")


def priority_levels(control: Control) -> str:
    """A line for each priority level."""
    rows: list[Sequence[object]] = [_LEVELS]
    for name, level in sorted(control.levels.items()):
        queues = level.queues
        active = sum(1 for queue in queues.queues if queue.waiting)
        rows.append(
            (
                name,
                active,
                _bool(queues.idle),
                _bool(level.leaving),
                queues.waiting,
                len(queues.running),
                queues.dispatched,
                queues.refused,
                queues.timed_out,
                queues.cancelled,
            )
        )
    return table(rows)


def queues(control: Control) -> str:
    """A line for each queue."""
    rows: list[Sequence[object]] = [_QUEUES]
    for name, level in sorted(control.levels.items()):
        for queue in level.queues.queues:
            waiting = queue.waiting
            rows.append(
                (
                    name,
                    queue.index,
                    len(waiting),
                    queue.running,
                    queue.seats,
                    seat_seconds(queue.next_start),
                    sum(entry.estimate.seats for entry in waiting),
                    sum(entry.estimate.width for entry in waiting),
                    seat_seconds(queue.work),
                )
            )
    return table(rows)


def requests(control: Control, details: bool) -> str:
    """A line for each request; those that run have -1 for their place in the queue."""
    rows: list[Sequence[object]] = [_REQUESTS + _DETAILS if details else _REQUESTS]
    # The clock of requests has an origin of its own.
    origin = time.time() - control.clock()
    for name, level in sorted(control.levels.items()):
        running = sorted(level.queues.running, key=lambda entry: entry.started)
        for queue in level.queues.queues:
            rows.extend(_request(name, queue.index, place, e, origin, details) for place, e in enumerate(queue.waiting))
            rows.extend(_request(name, queue.index, -1, e, origin, details) for e in running if e.queue is queue)
        rows.extend(_request(name, -1, -1, entry, origin, details) for entry in running if entry.queue is None)
    return table(rows)


def _request(level: str, queue: int, place: int, entry: Entry, origin: float, details: bool) -> tuple[object, ...]:
    flow, estimate = entry.flow, entry.estimate
    row: tuple[object, ...] = (
        level, flow.schema.name, queue, place, flow.distinguisher, _instant(origin + entry.arrived), estimate.seats,
        estimate.final, format_duration(round(estimate.linger * 1e9)),
        _instant(origin + entry.started) if entry.state is RUNNING else "0001-01-01T00:00:00Z",
    )  # fmt: skip
    info = entry.info
    if details:
        version = f"{info.api_group}/{info.api_version}" if info.api_group else info.api_version
        row += (
            entry.user.name,
            info.verb,
            info.path,
            info.namespace,
            info.name,
            version,
            info.resource,
            info.subresource,
        )
    return row


def table(rows: Iterable[Sequence[object]]) -> str:
    """Columns at least eight wide, each but the last ended by a comma."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [
        max(_LEAST_WIDTH, *(len(row[column]) + 1 + _PADDING for row in cells)) for column in range(len(cells[0]) - 1)
    ]
    lines = []
    for row in cells:
        padded = [f"{cell},".ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append("".join(padded) + row[-1] + "\n")
    return "".join(lines)


def seat_seconds(value: float) -> str:
    """Work as the reference prints it."""
    whole, part = divmod(round(value * 10**8), 10**8)
    return f"{whole}.{part:08d}ss"


def _instant(seconds: float) -> str:
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")
    return text + "Z"


def _bool(value: bool) -> str:
    return "true" if value else "false"

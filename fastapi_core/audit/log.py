"""The log backend: events as lines of a file, written by a thread in batches so that no request waits for a disk.

Modes: `batch` loses (and counts) events beyond its buffer; `blocking` loses none, requests wait instead while too much is unwritten;
`blocking-strict` lets every request wait until its first event is written, and refuses it when that fails.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from fastapi_core.audit.backend import BATCH, STRICT, Throttle
from fastapi_core.audit.event import Event, legacy, limited, render, size_of
from fastapi_core.obs import logs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi_core.obs.metrics import Counter, Family

log = logs.get("audit")

#: Bytes of events that may wait for the disk: beyond it requests wait (or events are lost), beyond twice it all is lost.
BACKLOG = 32 << 20
#: Seconds in which events gather before the thread is woken: short for whoever follows the file, long for the processor
#: (each time it takes the interpreter lock from the loop).
GATHER = 0.025
#: Seconds between two reports of the same trouble.
_REPORT = 10.0


class Output(Protocol):
    """Where lines go."""

    def write(self, lines: Sequence[bytes]) -> None: ...
    def close(self) -> None: ...


class _Batch(NamedTuple):
    """Events for the thread, who waits for them to be written, and their bytes."""

    events: list[Event]
    stores: list[asyncio.Future[bool]]
    size: int


class LogBackend:
    """`Backend` over an output.

    `form` is `json` or `legacy`; `event_limit` is the largest event in bytes, 0 for none. `buffer` (events), `batch`
    (events that are written at once when so many have come), `wait` (seconds to gather) and `throttle` are for the
    mode `batch`. `errors` counts lost events by the part that lost them.
    """

    def __init__(
        self,
        output: Output,
        errors: Family[Counter],
        *,
        mode: str = "blocking",
        form: str = "json",
        event_limit: int = 0,
        buffer: int = 0,
        batch: int = 0,
        wait: float = 0.0,
        throttle: Throttle | None = None,
        backlog: int = BACKLOG,
    ) -> None:
        self._output = output
        self._mode = mode
        self.strict = self.waits = mode == STRICT
        self._form = form
        self._render: Callable[[Event], bytes | None] = limited(event_limit) if event_limit else render
        self._plain = form == "json" and not event_limit
        batched = mode == BATCH
        self._buffer = buffer if batched else 0
        self._batch = batch if batched and batch > 1 else 0
        self._gather = (wait if batched else 0.0) or GATHER
        self._throttle = throttle if batched else None
        self._backlog = backlog
        self._limit = backlog if batched else 2 * backlog
        """Bytes unwritten beyond which events are lost; -1 once closed."""
        self._lost_buffered = errors.labels("buffered")
        self._lost_writing = errors.labels("log")
        self._lost_large = errors.labels("truncate")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._queue: queue.SimpleQueue[_Batch | None] = queue.SimpleQueue()
        self._pending: list[Event] = []
        self._stores: list[asyncio.Future[bool]] = []
        self._timer: asyncio.Handle | None = None
        self._taken = self._taken_bytes = self._handed_bytes = 0  # written by the loop
        self._done = self._done_bytes = 0  # written by the thread
        self._waiters: list[asyncio.Future[None]] = []
        self._reported = 0.0
        self._closed = False

    # On the loop

    @property
    def congested(self) -> bool:
        return self._mode != BATCH and self._taken_bytes - self._done_bytes > self._backlog

    def put(self, event: Event) -> None:
        taken = self._taken_bytes + (len(event) if type(event) is bytes else size_of(event))
        if taken - self._done_bytes > self._limit or (self._buffer and self._taken - self._done >= self._buffer):
            self._lost_buffered.inc()
            self._report("Audit events are lost", "more come than can be written")
            return
        self._taken += 1
        self._taken_bytes = taken
        self._pending.append(event)
        if self._timer is None:
            self._timer = self._running().call_later(self._gather, self._hand_over)
        elif self._batch and len(self._pending) >= self._batch:
            self._hand_over()

    def store(self, event: Event) -> asyncio.Future[bool]:
        loop = self._running()
        future: asyncio.Future[bool] = loop.create_future()
        taken = self._taken
        self.put(event)
        if self._taken == taken:
            future.set_result(False)
            return future
        self._stores.append(future)
        if len(self._stores) == 1:
            # Whoever else asks in this turn of the loop shares the write.
            loop.call_soon(self._hand_over)
        return future

    async def room(self) -> None:
        while self.congested and not self._closed:
            waiter: asyncio.Future[None] = self._running().create_future()
            self._waiters.append(waiter)
            self._hand_over()
            await waiter

    async def close(self) -> None:
        if self._closed:
            return
        self._hand_over()
        self._closed = True
        self._limit = -1
        if self._thread is not None:
            self._queue.put(None)
            await asyncio.to_thread(self._thread.join)
        self._output.close()
        self._wake()

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._run, args=(self._loop,), name="audit-log", daemon=True)
            self._thread.start()
        return self._loop

    def _hand_over(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pending:
            self._queue.put(_Batch(self._pending, self._stores, self._taken_bytes - self._handed_bytes))
            self._handed_bytes = self._taken_bytes
            self._pending, self._stores = [], []

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _report(self, text: str, problem: object) -> None:
        now = time.monotonic()
        if now - self._reported > _REPORT:
            self._reported = now
            log.error(text, problem if isinstance(problem, Exception) else None, mode=self._mode, reason=str(problem))

    # In the thread

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while (batch := self._queue.get()) is not None:
            events, stores, size = batch
            if self._throttle is not None:
                time.sleep(self._throttle.delay(time.monotonic()))
            kept = self._write(events)
            self._done += len(events)
            self._done_bytes += size
            try:
                if stores:
                    loop.call_soon_threadsafe(_resolve, stores, kept)
                if self._waiters:
                    loop.call_soon_threadsafe(self._wake)
            except RuntimeError:  # the loop is gone; nobody waits any more
                return

    def _write(self, events: list[Event]) -> bool:
        lines = [line for event in events if (line := self._line(event))]
        try:
            self._output.write(lines)
        except (OSError, ValueError) as error:
            self._lost_writing.inc(len(lines))
            self._report("Audit events cannot be written", error)
            return False
        return len(lines) == len(events)

    def _line(self, event: Event) -> bytes:
        """What is written of an event; empty when it is lost."""
        if self._plain and type(event) is bytes:
            return event
        try:
            line = self._render(event)
            if line is None:
                self._lost_large.inc()
                return b""
            return line if self._form == "json" else legacy(line)
        except Exception as error:
            self._lost_writing.inc()
            self._report("An audit event cannot be encoded", error)
            return b""


def _resolve(stores: list[asyncio.Future[bool]], kept: bool) -> None:
    for future in stores:
        if not future.done():
            future.set_result(kept)

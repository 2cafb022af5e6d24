"""The webhook backend: events as EventLists to a server, in batches, throttled, with retries, in bounded memory."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from fastapi_core.audit.backend import BATCH, BLOCKING, STRICT, Throttle
from fastapi_core.audit.event import PREFIX, Event, limited, render, size_of
from fastapi_core.authn.outbound import OutboundError, Remote, ask
from fastapi_core.obs import logs

if TYPE_CHECKING:
    from fastapi_core.obs.metrics import Counter, Family

log = logs.get("audit")

#: Batches on their way at once; more wait in the buffer.
CONCURRENT = 8
#: Bytes of events in the buffer and on their way, beyond which events are lost.
BACKLOG = 32 << 20
ATTEMPTS = 5
FACTOR, JITTER = 1.5, 0.2
#: Seconds for one request, and for all that is left when the server stops.
TIMEOUT = 30.0
GRACE = 10.0
_REPORT = 10.0

_OPEN = b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":['
_CLOSE = b"]}\n"


class Batching(NamedTuple):
    """How events gather in the mode `batch`: events kept, events in a batch, seconds until a smaller one goes."""

    buffer: int = 10_000
    size: int = 400
    wait: float = 30.0


class Refused(Exception):  # noqa: N818 - what the other side says
    """An answer that is not a success; `again`: it may take the same events later."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the webhook answered {status}")
        self.again = status == 429 or status >= 500


class WebhookBackend:
    """`Backend` over a server.

    In the blocking modes the first event of a request is sent at once and the request waits for it; with
    `blocking-strict` it is refused when that fails. `batch_limit`: bytes of a list above which it is split.
    """

    def __init__(
        self,
        remote: Remote,
        errors: Family[Counter],
        *,
        mode: str = BATCH,
        event_limit: int = 0,
        batch_limit: int = 0,
        batching: Batching = Batching(),  # noqa: B008 - immutable
        throttle: Throttle | None = None,
        backoff: float = 10.0,
        grace: float = GRACE,
    ) -> None:
        self._remote = remote
        self.strict = mode == STRICT
        self.waits = mode in (BLOCKING, STRICT)
        self.congested = False
        self._render: Callable[[Event], bytes | None] = limited(event_limit) if event_limit else render
        self._batch_limit = batch_limit
        self._batching = batching if mode == BATCH else batching._replace(wait=0.0)
        self._throttle = throttle if mode == BATCH else None
        self._backoff = backoff
        self._grace = grace
        self._lost_buffered = errors.labels("buffered")
        self._lost_sending = errors.labels("webhook")
        self._lost_large = errors.labels("truncate")
        self._pending: list[Event] = []
        self._bytes = 0
        self._timer: asyncio.Handle | None = None
        self._sending: set[asyncio.Task[bool]] = set()
        self._due = False
        self._closing = asyncio.Event()
        self._reported = 0.0

    def put(self, event: Event) -> None:
        size = size_of(event)
        if self._closing.is_set() or len(self._pending) >= self._batching.buffer or self._bytes + size > BACKLOG:
            self._lost_buffered.inc()
            self._report("Audit events are lost", "more come than the webhook takes")
            return
        self._bytes += size
        self._pending.append(event)
        if len(self._pending) >= self._batching.size:
            self._send_due()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._batching.wait, self._on_time)

    async def store(self, event: Event) -> bool:
        if self._closing.is_set():
            return False
        self._bytes += size_of(event)
        return await self._start([event])

    async def room(self) -> None:
        """Never congested: what is too much is lost."""

    async def close(self) -> None:
        if self._closing.is_set():
            return
        self._closing.set()
        if self._timer is not None:
            self._timer.cancel()
        end = time.monotonic() + self._grace
        while (self._pending or self._sending) and (left := end - time.monotonic()) > 0:
            self._due = True
            self._send_due()
            await asyncio.wait(self._sending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        self._lost_buffered.inc(len(self._pending))
        self._pending.clear()
        late = list(self._sending)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _on_time(self) -> None:
        self._timer = None
        self._due = True
        self._send_due()

    def _send_due(self) -> None:
        """Send full batches, and what there is when its time has come, as far as there is room for more requests."""
        size = self._batching.size
        while self._pending and len(self._sending) < CONCURRENT and (self._due or len(self._pending) >= size):
            batch, self._pending = self._pending[:size], self._pending[size:]
            self._start(batch)
        if not self._pending:
            self._due = False
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _start(self, batch: list[Event]) -> asyncio.Task[bool]:
        task = asyncio.get_running_loop().create_task(self._deliver(batch), name="audit-webhook")
        self._sending.add(task)

        def done(task: asyncio.Task[bool]) -> None:
            self._sending.discard(task)
            self._bytes -= sum(map(size_of, batch))
            self._send_due()

        task.add_done_callback(done)
        return task

    async def _deliver(self, batch: list[Event]) -> bool:
        """Whether all of a batch has been taken by the webhook."""
        left = len(batch)
        try:
            # Encoding bodies takes its time; the loop has better things to do.
            plain = all(isinstance(event, bytes) for event in batch)
            bodies = self._bodies(batch) if plain else await asyncio.to_thread(self._bodies, batch)
            if self._throttle is not None:
                await self._pause(self._throttle.delay(time.monotonic()))
            left = sum(count for count, _ in bodies)
            for count, body in bodies:
                await self._post(body)
                left -= count
            return sum(count for count, _ in bodies) == len(batch)
        except Exception as error:
            self._lost_sending.inc(left)
            self._report("Audit events cannot be sent", error)
            return False
        except asyncio.CancelledError:
            self._lost_sending.inc(left)
            raise

    def _bodies(self, batch: list[Event]) -> list[tuple[int, bytes]]:
        """EventLists of at most so many bytes, with the number of events in each."""
        lists: list[list[bytes]] = [[]]
        size = 0
        for event in batch:
            line = self._render(event)
            if line is None:
                self._lost_large.inc()
                continue
            # In a list the kind of an item goes without saying.
            item = b"{" + line[len(PREFIX) : -1]
            if self._batch_limit and size + len(item) > self._batch_limit and lists[-1]:
                lists.append([])
                size = 0
            lists[-1].append(item)
            size += len(item)
        return [(len(items), _OPEN + b",".join(items) + _CLOSE) for items in lists if items]

    async def _post(self, body: bytes) -> None:
        """One list, tried again with growing pauses; the last failure is raised."""
        pause = self._backoff
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._once(body)
                return
            except Refused as error:
                if not error.again or attempt == ATTEMPTS or self._closing.is_set():
                    raise
            except OutboundError:
                if attempt == ATTEMPTS or self._closing.is_set():
                    raise
            await self._pause(pause * (1 + random.random() * JITTER))
            pause *= FACTOR

    async def _pause(self, seconds: float) -> None:
        """Wait, but not while the server stops."""
        if seconds > 0 and not self._closing.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), seconds)

    async def _once(self, body: bytes) -> None:
        answer = await ask(self._remote, "POST", body, timeout=TIMEOUT)
        if not 200 <= answer.status < 300:
            raise Refused(answer.status)

    def _report(self, text: str, problem: object) -> None:
        now = time.monotonic()
        if now - self._reported > _REPORT:
            self._reported = now
            log.warning(text, webhook=self._remote.url, reason=str(problem))

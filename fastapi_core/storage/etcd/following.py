"""The one watch that tells a store of every commit, through lost connections and compactions.

It covers the store's prefix and asks how far etcd is where somebody waits for a revision that changed nothing there.
Etcd before 3.5.8 may answer that ahead of the events (etcd-io/etcd#15220); with such a one all keys are watched, so
that every revision is seen to come.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import grpc.aio

from fastapi_core.obs import logs
from fastapi_core.storage.etcd import messages
from fastapi_core.storage.etcd.connection import FIRST_PAUSE, LAST_PAUSE, STATUS, Connection, cancelled
from fastapi_core.storage.etcd.names import Names
from fastapi_core.storage.interface import Code, Events, StorageError

T = TypeVar("T")

log = logs.get("etcd")

#: Seconds that events have to come before the question is asked, and until it is asked again.
ASK_AFTER, ASK_AGAIN = 0.005, 0.1
ASK_CATCHING_UP = 0.02
#: Seconds in which a member has to say of which version it is.
STATUS_SECONDS = 3.0

_SOUND = ((3, 4, 25), (3, 5, 8))


class StreamEndedError(Exception):
    """A watch stream is over; `compacted` when it was for history that is gone."""

    def __init__(self, reason: str, compacted: int = 0) -> None:
        super().__init__(reason)
        self.compacted = compacted


def tells_progress(version: str) -> bool:
    """Whether word of progress on request comes behind the events it speaks of."""
    numbers = []
    for part in version.split("-")[0].split("."):
        if not part.isdecimal():
            return False
        numbers.append(int(part))
    known = tuple(numbers)
    return known >= _SOUND[1] or (known[:2] == (3, 4) and known >= _SOUND[0])


class Stream:
    """One watch from a revision on: batches of events, each with the revision up to which nothing is missing."""

    def __init__(self, connection: Connection, names: Names, prefix: str) -> None:
        self._connection = connection
        self._names = names
        self._prefix = prefix
        self._call: Any = None
        self._held: Events = []
        self.channel: object = None
        self.asks = False

    async def open(self, start: int) -> None:
        """Raises StorageError, StreamEndedError."""
        self.channel = self._connection.channel
        status = messages.decode(
            messages.STATUS_RESPONSE, await self._connection.call(STATUS, b"", patience=STATUS_SECONDS)
        )
        self.asks = tells_progress(status.get("version", ""))
        key, end = self._names.span(self._prefix) if self.asks else (b"\0", b"\0")
        self._call = self._connection.stream()
        await self._sound(self._call.write(messages.watch(key, end, start)))

    async def ask(self) -> None:
        """Have word of progress sent. Raises like `next`."""
        if self.asks:
            await self._sound(self._call.write(messages.PROGRESS))

    async def _sound(self, step: Awaitable[T]) -> T:
        """The result of a step of the call, whose failures are ours then."""
        try:
            return await step
        except grpc.aio.AioRpcError as error:
            raise StreamEndedError(error.details() or str(error.code())) from None
        except (grpc.aio.UsageError, asyncio.InvalidStateError) as error:
            raise StreamEndedError(str(error)) from None
        except asyncio.CancelledError:
            if cancelled():
                raise
            raise StreamEndedError("its channel was left for another") from None

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """Ask again and again meanwhile: a stream that is catching up does not answer."""

        async def ask() -> None:
            with suppress(StreamEndedError):
                while self.asks:
                    await self.ask()
                    await asyncio.sleep(ASK_CATCHING_UP)

        task = asyncio.get_running_loop().create_task(ask(), name="etcd-progress")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def next(self) -> tuple[Events, int]:
        """What has come, with 0 for a revision where more of it is to come. Raises StreamEndedError, or ValueError for
        an answer that is none."""
        data = await self._sound(self._call.read())
        if data is grpc.aio.EOF:
            raise StreamEndedError(await self._sound(self._call.details()) or "the stream has ended")
        try:
            return self._read(messages.decode(messages.WATCH_RESPONSE, data))
        except KeyError as error:
            raise ValueError(f"etcd's answer lacks {error}") from None

    def _read(self, answer: messages.Tree) -> tuple[Events, int]:
        if answer.get("canceled"):
            raise StreamEndedError(answer.get("cancel_reason", ""), answer.get("compact_revision", 0))
        if answer.get("compact_revision"):
            raise StreamEndedError("compacted", answer["compact_revision"])
        if answer.get("created"):
            return [], 0
        found = answer.get("events")
        if not found:
            # With pieces of a commit in hand the revision is not complete yet.
            return [], 0 if self._held else messages.revision_of(answer)
        events = self._held
        self._held = []
        newest = found[-1]["kv"]["mod_revision"]
        event = self._names.event
        start = self._prefix
        for raw in found:
            made = event(raw)
            if made is not None and made.key.startswith(start):
                events.append(made)
        if answer.get("fragment"):
            # The last revision may go on in the next piece.
            cut = len(events)
            while cut and events[cut - 1].revision == newest:
                cut -= 1
            events, self._held = events[:cut], events[cut:]
            newest -= 1
        return events, newest

    def cancel(self) -> None:
        """End it; harmless when it never began."""
        if self._call is not None:
            self._call.cancel()


class Following:
    """Follows the store from `revision` on; `deliver` gets the events in order, `lost` is told of a hole."""

    def __init__(
        self,
        connection: Connection,
        names: Names,
        revision: int,
        deliver: Callable[[Events], None],
        lost: Callable[[int], None],
        baseline: Callable[[], Any],
    ) -> None:
        self.revision = revision
        self._connection = connection
        self._names = names
        self._deliver = deliver
        self._lost = lost
        self._baseline = baseline
        self._loop = asyncio.get_running_loop()
        self._waiters: list[tuple[int, int, float, asyncio.Future[None]]] = []
        self._count = 0
        self._stream: Stream | None = None
        self._reason = ""
        """Why the watch had to be begun again, as was said last."""
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[None] | None = None
        self._task = self._loop.create_task(self._run(), name="etcd-watch")

    async def close(self) -> None:
        """Stop; who waits hears that the store is closed."""
        if self._timer is not None:
            self._timer.cancel()
        tasks = [task for task in (self._task, self._asking) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for _, _, _, future in self._waiters:
            if not future.done():
                future.set_exception(StorageError(Code.UNAVAILABLE, message="the store is closed"))
        self._waiters.clear()

    async def reach(self, revision: int, patience: float) -> None:
        """Return when listeners have seen `revision`. TimeoutError."""
        if revision <= self.revision:
            return
        future: asyncio.Future[None] = self._loop.create_future()
        self._count += 1
        heapq.heappush(self._waiters, (revision, self._count, self._loop.time() + patience, future))
        if self._timer is None:
            self._timer = self._loop.call_later(ASK_AFTER, self._ask)
        await future

    # --- the watch ------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            before = self.revision
            stream = Stream(self._connection, self._names, self._names.root)
            try:
                await stream.open(self.revision + 1)
                self._stream = stream
                while True:
                    events, revision = await stream.next()
                    if revision > self.revision:
                        self._reason = ""
                        self._advance(events, revision)
            except StreamEndedError as error:
                if error.compacted:
                    await self._begin_anew(error.compacted)
                    continue
                self._broken(stream, str(error))
            except (StorageError, ValueError) as error:
                self._broken(stream, str(error))
            except Exception as error:
                # Whatever it is, without the watch nothing is told to anybody.
                log.error("The watch of etcd has failed", error)
                self._broken(stream, type(error).__name__)
            finally:
                self._stream = None
                stream.cancel()
            pause = FIRST_PAUSE if self.revision > before else min(2 * pause, LAST_PAUSE)
            await asyncio.sleep(pause)

    def _broken(self, stream: Stream, reason: str) -> None:
        if reason != self._reason:
            self._reason = reason
            log.info("The watch of etcd is begun again", revision=self.revision, reason=reason)
        self._connection.leave(stream.channel)

    async def _begin_anew(self, compacted: int) -> None:
        """What was missed cannot be told any more: listeners have to list."""
        while True:
            try:
                revision: int = await self._baseline()
                break
            except StorageError as error:
                log.warning("etcd does not answer after a compaction", reason=str(error))
                await asyncio.sleep(LAST_PAUSE)
        log.warning(
            "etcd has given up changes that were not seen", seen=self.revision, compacted=compacted, now=revision
        )
        self.revision = max(self.revision, revision)
        self._lost(compacted)
        self._wake()

    def _advance(self, events: Events, revision: int) -> None:
        known = self.revision
        # A stream that was begun again may repeat nothing, but a member may.
        fresh = events if not events or events[0].revision > known else [e for e in events if e.revision > known]
        self.revision = revision
        self._deliver(fresh)
        self._wake()

    def _wake(self) -> None:
        waiters, revision = self._waiters, self.revision
        while waiters and waiters[0][0] <= revision:
            future = heapq.heappop(waiters)[3]
            if not future.done():
                future.set_result(None)

    # --- progress -------------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        """Somebody has waited: a revision without a change of ours shows itself only to who asks."""
        self._timer = None
        now = self._loop.time()
        for _, _, until, future in self._waiters:
            if until < now and not future.done():
                future.set_exception(TimeoutError())
        if any(waiter[3].done() for waiter in self._waiters):
            self._waiters = [waiter for waiter in self._waiters if not waiter[3].done()]
            heapq.heapify(self._waiters)
        if not self._waiters:
            return
        self._timer = self._loop.call_later(ASK_AGAIN, self._ask)
        stream = self._stream
        if stream is not None and stream.asks and (self._asking is None or self._asking.done()):
            self._asking = self._loop.create_task(self._asked(stream), name="etcd-progress")

    async def _asked(self, stream: Stream) -> None:
        try:
            await stream.ask()
        except StreamEndedError:
            # Whoever reads it knows.
            pass

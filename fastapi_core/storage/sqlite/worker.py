"""The thread that owns the writing connection.

It takes everything that has arrived, commits it as one group, hands the outcome to the event loop in one call, and only
then looks for more: what arrives during a commit is the next group. Upkeep (keys past their time to live, compaction,
the write-ahead log) is done between groups, in steps that leave most of the time to writes.

Nothing here raises to the top: a failed group answers its writers with UNAVAILABLE, is remembered for health checks,
and the next group is tried again.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fastapi_core.records import dataclass
from fastapi_core.storage.interface import Code, Event, StorageError
from fastapi_core.storage.sqlite import clock, group, schema, turns
from fastapi_core.storage.sqlite.group import Write
from fastapi_core.storage.sqlite.lock import DirectoryLock
from fastapi_core.storage.sqlite.settings import Settings
from fastapi_core.storage.sqlite.sweep import Sweeper
from fastapi_core.storage.statistics import Counters

#: A group ends at this many writes or bytes: it bounds the wait of the first one and the size of the log.
GROUP_WRITES = 512
GROUP_BYTES = 8 << 20

#: Keys past their time to live deleted by one group.
EXPIRE_KEYS = 256

#: Space a health check wants after a failure before it calls the store well.
PROBE_BYTES = 256 << 10

#: After a step of upkeep, writes (when there are any) have the thread for this many times its duration.
UPKEEP_SHARE = 4


class Commit(NamedTuple):
    """A group as the loop gets it."""

    events: Sequence[Event]
    writes: Sequence[Write]
    answers: Sequence[int | StorageError]


class Job(NamedTuple):
    """Something to run on the thread between groups."""

    run: Callable[[], None]
    future: asyncio.Future[None]


@dataclass(slots=True)
class _Compaction:
    target: int
    future: asyncio.Future[None]


class Worker:
    """Owns the thread. `deliver` is called on the loop, in commit order."""

    def __init__(self, settings: Settings, deliver: Callable[[Commit], None]) -> None:
        self._settings = settings
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self._lock = DirectoryLock(settings.directory)
        self._queue: queue.SimpleQueue[list[Write] | Job | None] = queue.SimpleQueue()
        self._backlog: deque[Write] = deque()
        self._thread = threading.Thread(target=self._run, name="storage", daemon=True)
        self._stopping = False
        self._compactions: list[_Compaction] = []
        self._next_expiry = float("inf")
        self._expiry_checked = 0.0
        self._sweep_at = 0.0
        self._swept_at = 0.0
        self._paused_until = 0.0
        self._log_used = False
        self._last_write = 0.0
        self._recent = group.Recent()
        self._connection: sqlite3.Connection
        self._sweeper: Sweeper
        self.counters = Counters()
        self.failure: StorageError | None = None
        self.revision = 0
        """Newest committed revision; owned by the thread."""

    # On the loop ---------------------------------------------------------------------------------------------------

    async def start(self) -> schema.Counts:
        """Open the database on the thread; what fails there is raised here."""
        opened: asyncio.Future[schema.Counts] = self._loop.create_future()
        self._opened = opened
        turns.share_interpreter(self._settings.switch_seconds)
        self._thread.start()
        return await opened

    def submit(self, item: list[Write] | Job) -> None:
        self._queue.put(item)

    async def stop(self) -> None:
        """Commit what was submitted, then end the thread."""
        self._queue.put(None)
        await self._loop.run_in_executor(None, self._thread.join)

    @property
    def swept(self) -> int:
        """Compaction has deleted up to this revision."""
        return self._sweeper.swept

    # On the thread -------------------------------------------------------------------------------------------------

    def compact(self, revision: int, future: asyncio.Future[None]) -> None:
        """Job: begin a compaction; `future` is resolved when its last step is done."""
        self._sweeper.compact(revision)
        self._compactions.append(_Compaction(revision, future))

    def probe(self) -> None:
        """Job: find out whether writes work again after a failure. A store in use tells without being asked."""
        if self.failure is not None:
            # Takes new pages in the database and in the log: a change in place can succeed on a full disk.
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('probe', zeroblob(?))", (PROBE_BYTES,))
            self._connection.execute("DELETE FROM meta WHERE name = 'probe'")
            self.failure = None

    def _run(self) -> None:
        turns.wait_precisely()
        try:
            counts = self._open()
        except Exception as error:
            self._lock.release()
            self._post(_settle, self._opened, error)
            return
        self._post(_settle, self._opened, counts)
        try:
            while not self._stopping or self._backlog:
                self._collect()
                if self._backlog:
                    self._commit(self._take())
                if not self._stopping:
                    self._upkeep()
        finally:
            self._close()

    def _open(self) -> schema.Counts:
        directory = self._settings.directory
        path = self._settings.path
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock.acquire()
            connection = schema.open_writer(path)
        except OSError as error:
            raise StorageError(Code.UNAVAILABLE, message=f"cannot open the store in {directory}: {error}") from error
        try:
            if self._settings.max_pages:
                connection.execute(f"PRAGMA max_page_count = {self._settings.max_pages}")
            counts = schema.read_counts(connection)
            self._connection = connection
            self._sweeper = Sweeper(connection, swept=counts.swept, target=counts.compacted)
            self._find_expiry()
        except sqlite3.Error as error:
            connection.close()
            raise schema.unusable(path, error) from error
        self.revision = counts.revision
        return counts

    def _close(self) -> None:
        error = StorageError(Code.UNAVAILABLE, message="the store was closed")
        for compaction in self._compactions:
            self._post(_settle, compaction.future, error)
        try:
            self._connection.close()
        finally:
            self._lock.release()

    def _collect(self) -> None:
        """Wait until there is something to do; move what has arrived to the backlog."""
        timeout: float | None = 0.0 if self._backlog or self._stopping else self._quiet()
        try:
            while True:
                if timeout == 0.0:
                    item = self._queue.get_nowait()
                else:
                    item = self._queue.get(timeout=timeout)
                timeout = 0.0
                self._accept(item)
        except queue.Empty:
            pass

    def _accept(self, item: list[Write] | Job | None) -> None:
        if item is None:
            self._stopping = True
        elif isinstance(item, Job):
            self._do(item)
        else:
            self._backlog.extend(item)

    def _take(self) -> list[Write]:
        backlog = self._backlog
        writes: list[Write] = []
        size = 0
        while backlog and len(writes) < GROUP_WRITES and size < GROUP_BYTES:
            write = backlog.popleft()
            size += len(write.value or b"")
            writes.append(write)
        return writes

    def _commit(self, writes: list[Write]) -> None:
        began = time.perf_counter()
        try:
            outcome = group.judge(self._connection, self._recent, writes, self.revision)
            if outcome.events:
                group.commit(self._connection, outcome)
        except Exception as error:
            text = str(self._fail(error))
            # Refusals may rest on changes of this group that did not happen, so they fail with it.
            self._post(
                self._deliver, Commit((), writes, [StorageError(Code.UNAVAILABLE, w.key, message=text) for w in writes])
            )
            return
        if outcome.events:
            self.failure = None
            self.revision = outcome.events[-1].revision
            self._recent.note(outcome.events)
            self._last_write = time.monotonic()
            self._log_used = True
            self.counters.commit(len(outcome.events), time.perf_counter() - began)
        self._post(self._deliver, Commit(outcome.events, writes, outcome.answers))
        if outcome.events:
            for write in writes:
                if write.expiry is not None and write.expiry < self._next_expiry:
                    self._next_expiry = write.expiry

    def _do(self, job: Job) -> None:
        try:
            job.run()
        except Exception as error:
            self._post(_settle, job.future, self._fail(error))
        else:
            self._post(_settle, job.future, None)

    def _fail(self, error: Exception) -> StorageError:
        self.counters.failures += 1
        if isinstance(error, sqlite3.Error):
            self.failure = schema.unusable(self._settings.path, error)
        else:
            self.failure = StorageError(Code.UNAVAILABLE, message=f"the store failed: {error!r}")
        return self.failure

    def _quiet(self) -> float | None:
        """Seconds until upkeep is due, None when there is none."""
        due = []
        now = time.monotonic()
        if self._sweeper.active:
            due.append(self._sweep_at - now)
        elif self._log_used:
            due.append(self._last_write + self._settings.quiet_seconds - now)
        if self._next_expiry != float("inf"):
            due.append(max(self._next_expiry - clock.now(), self._expiry_checked + self._settings.expire_seconds - now))
        return max(0.0, min(due), self._paused_until - now) if due else None

    def _upkeep(self) -> None:
        now = time.monotonic()
        if now < self._paused_until:
            return
        try:
            if self._next_expiry <= clock.now() and now >= self._expiry_checked + self._settings.expire_seconds:
                self._expire(now)
            if self._sweeper.active:
                if now >= self._sweep_at:
                    self._sweep()
            elif self._log_used and now >= self._last_write + self._settings.quiet_seconds:
                self._log_used = False
                # Answers "busy" without waiting when a reader is in the middle of something.
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except Exception as error:
            self._fail(error)
            self._paused_until = now + self._settings.retry_seconds

    def _sweep(self) -> None:
        began = time.monotonic()
        contended = self._last_write >= self._swept_at
        self._sweeper.step()
        self._log_used = True
        now = self._swept_at = time.monotonic()
        self._sweep_at = now + UPKEEP_SHARE * (now - began) if contended else now
        done = [c for c in self._compactions if c.target <= self._sweeper.swept]
        for compaction in done:
            self._compactions.remove(compaction)
            self._post(_settle, compaction.future, None)

    def _expire(self, now: float) -> None:
        """Delete keys past their time as ordinary changes."""
        rows = self._connection.execute(
            "SELECT key, revision FROM current WHERE expiry <= ? ORDER BY expiry LIMIT ?", (clock.now(), EXPIRE_KEYS)
        ).fetchall()
        before = self.revision
        if rows:
            self._commit([Write(key, None, revision, None, None) for key, revision in rows])
            self.counters.expired += self.revision - before
        if len(rows) < EXPIRE_KEYS or self.revision == before:
            self._expiry_checked = now
        self._find_expiry()

    def _find_expiry(self) -> None:
        (first,) = self._connection.execute("SELECT min(expiry) FROM current WHERE expiry IS NOT NULL").fetchone()
        self._next_expiry = float("inf") if first is None else first

    def _post(self, call: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            # The loop is gone, and with it everyone who waits.
            self._stopping = True


def _settle(future: asyncio.Future[Any], result: Any) -> None:
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)

"""Storage in memory, for tests and for a server without a data directory.

Nothing waits and there is no thread: a write gives its event to every listener before it returns. History is bounded
by a number of events; older ones are compacted as new ones come. Nothing survives the process.
"""

from __future__ import annotations

import asyncio
import heapq
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Sequence

from fastapi_core.storage.interface import Code, Event, Events, KeyValue, Listener, Page, StorageError
from fastapi_core.storage.keys import FIRST_REVISION, check_revision, check_write, prefix_end
from fastapi_core.storage.listeners import Listeners


class MemoryStorage:
    """A `Storage` whose whole state is a dict and a bounded list of events.

    `history_limit` is the number of newest events kept for `history` and historic lists.
    """

    def __init__(self, *, history_limit: int = 10_000) -> None:
        self._limit = history_limit
        self._current: dict[str, KeyValue] = {}
        self._keys: list[str] = []
        self._log: deque[Event] = deque()
        self._revision = FIRST_REVISION
        self._compacted = 0
        self._listeners = Listeners()
        self._open = False
        self._expiries: list[tuple[float, int, str]] = []
        self._timer: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        self._open = True
        self._arm()

    async def close(self) -> None:
        self._open = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def revision(self) -> int:
        return self._revision

    @property
    def compacted(self) -> int:
        return self._compacted

    async def create(self, key: str, value: bytes, *, ttl: float = 0) -> int:
        self._serving()
        check_write(key, value)
        existing = self._current.get(key)
        if existing is not None:
            raise StorageError(Code.KEY_EXISTS, key, existing.revision)
        revision = self._revision + 1
        insort(self._keys, key)
        self._commit(Event(key, revision, KeyValue(key, value, revision, revision), None), ttl)
        return revision

    async def update(self, key: str, value: bytes, *, expected: int, ttl: float = 0) -> int:
        self._serving()
        check_write(key, value)
        existing = self._match(key, expected)
        revision = self._revision + 1
        self._commit(Event(key, revision, KeyValue(key, value, existing.created, revision), existing), ttl)
        return revision

    async def delete(self, key: str, *, expected: int) -> int:
        self._serving()
        check_write(key, b"")
        return self._delete(self._match(key, expected))

    async def get(self, key: str) -> KeyValue | None:
        self._serving()
        return self._current.get(key)

    async def list(self, prefix: str, *, revision: int = 0, start: str = "", limit: int = 0) -> Page:
        self._serving()
        check_revision(revision or self._revision, newest=self._revision, compacted=self._compacted)
        current, keys = self._state(revision or self._revision)
        low = bisect_left(keys, max(prefix, start))
        high = bisect_left(keys, prefix_end(prefix))
        stop = min(high, low + limit) if limit else high
        items = [current[key] for key in keys[low:stop]]
        return Page(items, revision or self._revision, max(0, high - max(low, stop)))

    async def history(self, prefix: str, *, after: int, until: int) -> Events:
        self._serving()
        if after < self._compacted:
            raise StorageError(Code.COMPACTED, revision=self._compacted)
        return [e for e in self._log if after < e.revision <= until and e.key.startswith(prefix)]

    def listen(self, listener: Listener, lost: Callable[[], None] | None = None) -> Callable[[], None]:
        # Nothing is ever lost here.
        return self._listeners.add(listener)

    async def compact(self, revision: int) -> None:
        self._serving()
        if revision > self._revision:
            raise StorageError(Code.FUTURE_REVISION, revision=self._revision)
        while self._log and self._log[0].revision <= revision:
            self._log.popleft()
        self._compacted = max(self._compacted, revision)

    async def sync(self) -> int:
        self._serving()
        return self._revision

    async def check(self) -> None:
        self._serving()

    def _serving(self) -> None:
        if not self._open:
            raise StorageError(Code.UNAVAILABLE, message="the store is not open")

    def _match(self, key: str, expected: int) -> KeyValue:
        existing = self._current.get(key)
        if existing is None:
            raise StorageError(Code.KEY_NOT_FOUND, key)
        if existing.revision != expected:
            raise StorageError(Code.CONFLICT, key, existing.revision)
        return existing

    def _delete(self, existing: KeyValue) -> int:
        revision = self._revision + 1
        del self._keys[bisect_left(self._keys, existing.key)]
        self._commit(Event(existing.key, revision, None, existing), 0)
        return revision

    def _commit(self, event: Event, ttl: float) -> None:
        if event.value is None:
            del self._current[event.key]
        else:
            self._current[event.key] = event.value
        self._revision = event.revision
        self._log.append(event)
        if len(self._log) > self._limit:
            self._compacted = self._log.popleft().revision
        if ttl > 0:
            heapq.heappush(self._expiries, (asyncio.get_running_loop().time() + ttl, event.revision, event.key))
            self._arm()
        self._listeners.deliver([event])

    def _state(self, revision: int) -> tuple[dict[str, KeyValue], Sequence[str]]:
        """Objects and sorted keys as of `revision`: the present with the newer events undone."""
        if revision == self._revision:
            return self._current, self._keys
        state = dict(self._current)
        for event in reversed(self._log):
            if event.revision <= revision:
                break
            if event.previous is None:
                state.pop(event.key, None)
            else:
                state[event.key] = event.previous
        return state, sorted(state)

    def _arm(self) -> None:
        """Wake when the next key expires; nothing runs while no key has a time to live."""
        if not self._expiries or not self._open:
            return
        due = self._expiries[0][0]
        if self._timer is not None:
            if self._timer.when() <= due and not self._timer.cancelled():
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(due, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        while self._expiries and self._expiries[0][0] <= now:
            _, revision, key = heapq.heappop(self._expiries)
            existing = self._current.get(key)
            # A later write replaced the time to live together with the revision.
            if existing is not None and existing.revision == revision:
                self._delete(existing)
        self._arm()

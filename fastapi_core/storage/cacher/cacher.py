"""The watch cache of a store: loads everything once, follows the commits, owns the caches of the resources.

All caches show one revision, the newest of the store that has been seen: a commit is applied to every cache before
anybody is told of it. Resources may be asked for before the store is loaded or after (custom resources); what nobody
has asked for is kept as it is stored.
"""

from __future__ import annotations

import asyncio
import heapq
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from operator import attrgetter

from fastapi_core.storage.cacher.changes import Change
from fastapi_core.storage.cacher.matching import Extract
from fastapi_core.storage.cacher.resource import ResourceCache, ResourceStatistics
from fastapi_core.storage.cacher.window import WINDOW_BYTES, WINDOW_COUNT
from fastapi_core.storage.interface import Code, Event, KeyValue, Storage, StorageError
from fastapi_core.storage.keys import prefix_end

#: Seconds a read waits for a revision that has not come yet, as in the reference.
WAIT_SECONDS = 3.0

#: Keys read at a time while loading, so that values and cached objects are not in memory twice.
_LOAD_PAGE = 1000

#: Seconds until a store that did not answer is listed again after a hole.
_AGAIN = 0.5


_key_of = attrgetter("key")


class Cacher:
    """A watch cache over an open `storage`.

    `remote` says that other processes write to the store as well, so that a consistent read has to ask how far it is.
    `window_count` and `window_bytes` bound the recent changes kept for each resource.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        root: str = "/registry/",
        remote: bool = False,
        window_count: int = WINDOW_COUNT,
        window_bytes: int = WINDOW_BYTES,
    ) -> None:
        self.storage = storage
        self.revision = 0
        self._root = root
        self._remote = remote
        self._window = window_count, window_bytes
        self._caches: dict[str, ResourceCache] = {}
        self._unclaimed: dict[str, dict[str, KeyValue]] = {}
        """What no resource has asked for, by the first folder on its way: a resource that comes looks into one."""
        self._unlisten: Callable[[], None] | None = None
        self._loading: list[Event] | None = None
        self._dispatching = False
        self._queue: deque[Sequence[Event]] = deque()
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._waited = 0
        self._question: asyncio.Task[int] | None = None
        self._next_question: asyncio.Task[int] | None = None
        self._reloading: asyncio.Task[None] | None = None
        self._holes = 0

    # --- life -----------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Load everything below the root and follow the store from there on."""
        self._loading = []
        self._unlisten = self.storage.listen(self._receive, self._lost)
        try:
            await self._read()
            if self._holes:
                # Between the pages something was missed.
                self._loading = []
                self._reloading = asyncio.get_running_loop().create_task(self._reload(), name="cacher-reload")
                await self._reloading
        except BaseException:
            await self.close()
            raise

    async def _read(self) -> None:
        """Load everything, while the events that come are kept in `_loading`, and go on from there."""
        starts: list[str] = []
        revisions: list[int] = []
        start = ""
        while True:
            page = await self.storage.list(self._root, start=start, limit=_LOAD_PAGE)
            starts.append(start)
            revisions.append(page.revision)
            self._load(page.items)
            if not page.remaining or not page.items:
                break
            start = page.items[-1].key + "\0"
        # Listeners have now been told of everything the pages may show.
        newest = await self.storage.sync()
        events, self._loading = self._loading or [], None
        for event in events:
            if event.revision > revisions[bisect_right(starts, event.key) - 1]:
                self._take(event)
        self.revision = max(newest, *revisions, *(event.revision for event in events[-1:]))
        for cache in self._caches.values():
            cache.loaded(self.revision)

    async def check(self) -> None:
        """Raise StorageError(UNAVAILABLE) while the caches are not those of a state of the store."""
        if self._loading is not None or self._unlisten is None:
            raise StorageError(Code.UNAVAILABLE, message="the cache is being loaded")

    async def close(self) -> None:
        """Stop following the store, end the watches, fail who waits for a revision."""
        if self._unlisten is not None:
            self._unlisten()
            self._unlisten = None
        if self._reloading is not None:
            self._reloading.cancel()
        for cache in self._caches.values():
            cache.stop()
        for _, _, future in self._waiters:
            if not future.done():
                future.set_exception(StorageError(Code.UNAVAILABLE, message="the cache is closed"))
        self._waiters.clear()
        for task in (self._question, self._next_question):
            if task is not None:
                task.cancel()

    def resource(self, prefix: str, extract: Extract | None = None, triggers: tuple[str, ...] = ()) -> ResourceCache:
        """The cache of the keys below `prefix` (`/registry/pods/`), made on the first call.

        `extract` yields the selectable fields of an object; `triggers` are those by which watchers are indexed, and are
        understood by `extract`. Given again they replace those of the first call. Raises ValueError for a prefix inside
        another resource's.
        """
        cache = self._caches.get(prefix)
        if cache is None:
            if not prefix.startswith(self._root) or not prefix.endswith("/"):
                raise ValueError(f"{prefix} is not a folder below {self._root}")
            if any(prefix.startswith(other) or other.startswith(prefix) for other in self._caches):
                raise ValueError(f"{prefix} overlaps with another resource")
            count, limit = self._window
            cache = self._caches[prefix] = ResourceCache(self, prefix, count=count, limit=limit)
            waiting = self._unclaimed.get(self._folder(prefix), {})
            cache.load([waiting.pop(key) for key in sorted(key for key in waiting if key.startswith(prefix))])
        if extract is not None:
            cache.extract = extract
            cache.triggers = triggers
        return cache

    def statistics(self) -> dict[str, ResourceStatistics]:
        """Counters and sizes by resource prefix."""
        return {prefix: cache.statistics() for prefix, cache in self._caches.items()}

    # --- following the store --------------------------------------------------------------------------------------

    def _load(self, items: list[KeyValue]) -> None:
        # They come in key order: each resource has one stretch of them.
        at = 0
        while at < len(items):
            item = items[at]
            cache = self._owner(item.key)
            if cache is None:
                self._unclaimed.setdefault(self._folder(item.key), {})[item.key] = item
                at += 1
            else:
                end = bisect_left(items, prefix_end(cache.prefix), at, key=_key_of)
                cache.load(items[at:end])
                at = end

    def _folder(self, key: str) -> str:
        return key[: key.find("/", len(self._root)) + 1]

    def _owner(self, key: str) -> ResourceCache | None:
        """The resource a key belongs to: that of the one folder on its way that is a resource."""
        caches = self._caches
        end = key.find("/", len(self._root)) + 1
        while end > 0:
            cache = caches.get(key[:end])
            if cache is not None:
                return cache
            end = key.find("/", end) + 1
        return None

    def _take(self, event: Event) -> tuple[ResourceCache, Change] | None:
        """Apply one event; what watchers are to be told, if any."""
        cache = self._owner(event.key)
        if cache is not None:
            change = cache.apply(event)
            return None if change is None else (cache, change)
        if event.value is None:
            self._unclaimed.get(self._folder(event.key), {}).pop(event.key, None)
        elif event.key.startswith(self._root):
            self._unclaimed.setdefault(self._folder(event.key), {})[event.key] = event.value
        return None

    def _receive(self, events: Sequence[Event]) -> None:
        """The listener: events of one or more commits, in order."""
        if self._loading is not None:
            self._loading.extend(events)
            return
        if not events:
            # The store has moved on without us. What is still to be told here comes before that.
            if not self._dispatching:
                self._advance(self.storage.revision)
            return
        self._queue.append(events)
        if self._dispatching:
            # A watcher's code has written to the store; its turn comes when everybody knows of the commit before.
            return
        self._dispatching = True
        try:
            while self._queue:
                self._commit(self._queue.popleft())
        finally:
            self._dispatching = False

    def _commit(self, events: Sequence[Event]) -> None:
        touched: dict[ResourceCache, list[Change]] = {}
        for event in events:
            if event.revision <= self.revision:
                # Seen while loading.
                continue
            taken = self._take(event)
            if taken is not None:
                touched.setdefault(taken[0], []).append(taken[1])
        self.revision = max(self.revision, events[-1].revision)
        for cache, changes in touched.items():
            cache.dispatch(changes)
        self._advance(self.revision)

    def _advance(self, revision: int) -> None:
        """The caches show `revision`."""
        self.revision = max(self.revision, revision)
        while self._waiters and self._waiters[0][0] <= self.revision:
            _, _, future = heapq.heappop(self._waiters)
            if not future.done():
                future.set_result(None)

    # --- after a hole ---------------------------------------------------------------------------------------------

    def _lost(self) -> None:
        """What others have written meanwhile cannot be told any more. Reads go on with what there is until it is."""
        self._holes += 1
        if self._loading is not None and self._reloading is None:
            # The first loading is under way, and looks at this when it is done.
            return
        self._loading = []
        if self._reloading is None:
            self._reloading = asyncio.get_running_loop().create_task(self._reload(), name="cacher-reload")

    async def _reload(self) -> None:
        """List everything anew and tell the difference."""
        while True:
            holes = self._holes
            try:
                state, revision = await self._state()
            except StorageError:
                await asyncio.sleep(_AGAIN)
                continue
            if holes == self._holes:
                break
        events, self._loading = self._loading or [], None
        self._reloading = None
        later = [event for event in events if event.revision > revision]
        self._replace(state, revision)
        if later:
            self._receive(later)
        self._advance(self.storage.revision)

    async def _state(self) -> tuple[dict[str, KeyValue], int]:
        """All keys at one revision."""
        state: dict[str, KeyValue] = {}
        start, revision = "", 0
        while True:
            page = await self.storage.list(self._root, revision=revision, start=start, limit=_LOAD_PAGE)
            state.update((item.key, item) for item in page.items)
            revision = page.revision
            if not page.remaining or not page.items:
                return state, revision
            start = page.items[-1].key + "\0"

    def _replace(self, state: dict[str, KeyValue], revision: int) -> None:
        """Show `state`. Watches of clients end: they may not miss what lies between; those of this process are told of
        the difference."""
        owned: dict[ResourceCache, dict[str, KeyValue]] = {cache: {} for cache in self._caches.values()}
        self._unclaimed.clear()
        for key, item in state.items():
            cache = self._owner(key)
            if cache is None:
                self._unclaimed.setdefault(self._folder(key), {})[key] = item
            else:
                owned[cache][key] = item
        changed = {cache: cache.replace(items, revision) for cache, items in owned.items()}
        self.revision = revision
        for cache, changes in changed.items():
            cache.dispatch(changes)

    # --- waiting --------------------------------------------------------------------------------------------------

    async def wait_for(self, revision: int) -> None:
        """Return when the caches show `revision`; FUTURE_REVISION (with the current one) after three seconds."""
        if self.revision >= revision:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waited += 1
        entry = (revision, self._waited, future)
        heapq.heappush(self._waiters, entry)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await future
        except TimeoutError:
            raise StorageError(Code.FUTURE_REVISION, revision=self.revision) from None
        finally:
            if entry in self._waiters:
                self._waiters.remove(entry)
                heapq.heapify(self._waiters)

    def fresh(self) -> Awaitable[None] | None:
        """None when no other process writes; else wait for the answer to a question asked from now on.

        Readers that come while a question is under way share the next one: the answer to the first may be older than
        they are.
        """
        return self._ask() if self._remote else None

    async def _ask(self) -> None:
        if self._question is None:
            self._question = asyncio.create_task(self.storage.sync())
            self._question.add_done_callback(self._answered)
            task = self._question
        else:
            if self._next_question is None:
                self._next_question = asyncio.create_task(self._after(self._question))
            task = self._next_question
        revision = await asyncio.shield(task)
        await self.wait_for(revision)

    async def _after(self, earlier: asyncio.Task[int]) -> int:
        await asyncio.wait([earlier])
        return await self.storage.sync()

    def _answered(self, task: asyncio.Task[int]) -> None:
        self._question = self._next_question
        self._next_question = None
        if self._question is not None:
            self._question.add_done_callback(self._answered)
        if not task.cancelled():
            # Whoever asked gets the exception; with nobody left it must not be reported as lost.
            task.exception()

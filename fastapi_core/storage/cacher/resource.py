"""The watch cache of one resource: gets, lists at any revision, watches."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from operator import attrgetter
from sys import intern
from typing import TYPE_CHECKING

from fastapi_core._ext.objects import CachedObject
from fastapi_core._ext.selector import Matcher
from fastapi_core.later import later
from fastapi_core.records import dataclass
from fastapi_core.storage.cacher.changes import Change, WatchEvent
from fastapi_core.storage.cacher.matching import Extract
from fastapi_core.storage.cacher.store import ObjectStore
from fastapi_core.storage.cacher.watchers import Deliver, Group, GroupKey, Lost, Watcher, WatcherIndex, report
from fastapi_core.storage.cacher.window import WINDOW_BYTES, WINDOW_COUNT, Window
from fastapi_core.storage.interface import Code, Event, KeyValue, StorageError
from fastapi_core.storage.keys import prefix_end

if TYPE_CHECKING:
    from fastapi_core.storage.cacher import foreign
    from fastapi_core.storage.cacher.cacher import Cacher
else:
    foreign = later("fastapi_core.storage.cacher.foreign")

# Inside the class below `list` is a method.
Changes = list[Change]
Events = list[WatchEvent]
Groups = list[Group]

_revision_of = attrgetter("revision")

#: Objects read at a time when a historic list with a matcher comes from storage.
_STORAGE_PAGE = 500


@dataclass(frozen=True, slots=True)
class Listing:
    """Objects in key order at one revision.

    `next` is the key to go on from ("" at the end); `remaining` the number of objects beyond this page, -1 when a
    matcher leaves it unknown.
    """

    objects: list[CachedObject]
    revision: int
    next: str
    remaining: int


@dataclass(frozen=True, slots=True)
class ResourceStatistics:
    """Counters and sizes of one resource, for metrics; sizes in bytes."""

    objects: int
    bytes: int
    watchers: int
    events: int
    """Changes since the cache was made."""
    window: int
    """Changes that a watch can start from without asking storage."""
    window_bytes: int


class ResourceCache:
    """One resource; every method runs on the event loop and none of them blocks.

    `scope` is a prefix of keys below the resource: "" or `namespace/`. `start` is a full key.
    """

    def __init__(self, cacher: Cacher, prefix: str, *, count: int = WINDOW_COUNT, limit: int = WINDOW_BYTES) -> None:
        self.prefix = prefix
        self.extract: Extract | None = None
        self.triggers: tuple[str, ...] = ()
        self._cacher = cacher
        self._store = ObjectStore()
        self._window = Window(cacher.revision, count, limit)
        self._index = WatcherIndex()
        self._broken: dict[str, StorageError] = {}
        self._events = 0
        self._find = self._store.by_key.get

    # --- reading --------------------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """Newest revision of the store that this cache reflects."""
        return self._cacher.revision

    @property
    def changes(self) -> int:
        """How many changes this cache has seen: what was derived from its objects holds while this stays the same."""
        return self._events

    def get(self, key: str) -> CachedObject | None:
        """The current object at a full key. Raises StorageError for a stored value that is no object."""
        obj = self._find(key)
        if obj is None and key in self._broken:
            raise self._broken[key]
        return obj

    def count(self, scope: str = "") -> int:
        low, high = self._store.bounds(self.prefix + scope)
        return high - low

    def list(self, scope: str = "", *, matcher: Matcher | None = None, start: str = "", limit: int = 0) -> Listing:
        """The newest state; at most `limit` objects (0: all) from the key `start` on."""
        store = self._store
        low, high = store.bounds(self.prefix + scope, start)
        if self._broken:
            self._check(max(self.prefix + scope, start), prefix_end(self.prefix + scope))
        if matcher is not None:
            return _selected(store.objects[low:high], matcher, limit, self._cacher.revision)
        stop = min(high, low + limit) if limit > 0 else high
        more = stop < high
        return Listing(
            store.objects[low:stop],
            self._cacher.revision,
            store.keys[stop - 1] + "\0" if more else "",
            high - stop,
        )

    def list_at(
        self, revision: int, scope: str = "", *, matcher: Matcher | None = None, start: str = "", limit: int = 0
    ) -> Listing | Awaitable[Listing]:
        """The state at exactly `revision`. COMPACTED when it is too old; waits like `wait` when it is yet to come."""
        newest = self._cacher.revision
        if revision == newest:
            return self.list(scope, matcher=matcher, start=start, limit=limit)
        if revision > newest:
            return self._list_later(revision, scope, matcher, start, limit)
        if revision < self._window.low:
            return self._list_storage(revision, scope, matcher, start, limit)
        return self._list_undone(revision, scope, matcher, start, limit)

    def _list_undone(self, revision: int, scope: str, matcher: Matcher | None, start: str, limit: int) -> Listing:
        store = self._store
        first = max(self.prefix + scope, start)
        end = prefix_end(self.prefix + scope)
        undo = {key: state for key, state in self._window.undo(revision).items() if first <= key < end}
        low, high = store.bounds(self.prefix + scope, start)
        if self._broken:
            self._check(first, end)
        total = high - low + sum((state is not None) - (key in store.by_key) for key, state in undo.items())
        # A page needs no more of the present than its size and one for each object that is undone.
        stop = min(high, low + limit + len(undo)) if limit > 0 and matcher is None else high
        states: dict[str, CachedObject | None] = dict(zip(store.keys[low:stop], store.objects[low:stop], strict=True))
        states.update(undo)
        keys = sorted(states) if undo else states
        objects = [state for key in keys if (state := states[key]) is not None]
        if matcher is not None:
            return _selected(objects, matcher, limit, revision)
        if limit > 0 and limit < total:
            objects = objects[:limit]
            return Listing(objects, revision, objects[-1].key + "\0", total - limit)
        return Listing(objects, revision, "", 0)

    async def _list_later(self, revision: int, scope: str, matcher: Matcher | None, start: str, limit: int) -> Listing:
        await self._cacher.wait_for(revision)
        answer = self.list_at(revision, scope, matcher=matcher, start=start, limit=limit)
        return answer if isinstance(answer, Listing) else await answer

    async def _list_storage(
        self, revision: int, scope: str, matcher: Matcher | None, start: str, limit: int
    ) -> Listing:
        """A list from before the window: storage still has it, or says COMPACTED."""
        prefix = self.prefix + scope
        storage = self._cacher.storage
        if matcher is None:
            page = await storage.list(prefix, revision=revision, start=start, limit=limit)
            objects = [self.make(item) for item in page.items]
            more = page.remaining > 0 and bool(objects)
            return Listing(objects, revision, objects[-1].key + "\0" if more else "", page.remaining)
        chosen: list[CachedObject] = []
        while True:
            page = await storage.list(prefix, revision=revision, start=start, limit=_STORAGE_PAGE)
            objects = [self.make(item) for item in page.items]
            picked, seen = matcher.select_page(objects, max(0, limit - len(chosen)) if limit > 0 else 0)
            chosen += picked
            beyond = page.remaining > 0 or seen < len(objects)
            if limit > 0 and len(chosen) >= limit:
                return Listing(chosen, revision, chosen[-1].key + "\0" if beyond else "", -1 if beyond else 0)
            if not beyond:
                return Listing(chosen, revision, "", 0)
            start = objects[-1].key + "\0"

    def wait(self, revision: int) -> Awaitable[None] | None:
        """None when the cache is there already. FUTURE_REVISION after three seconds."""
        return None if self._cacher.revision >= revision else self._cacher.wait_for(revision)

    def fresh(self) -> Awaitable[None] | None:
        """None when the cache is known to be current; else wait until it shows what any writer has committed."""
        return self._cacher.fresh()

    # --- watching -------------------------------------------------------------------------------------------------

    def watch(
        self,
        scope: str = "",
        *,
        matcher: Matcher | None = None,
        name: str = "",
        since: int,
        deliver: Deliver,
        lost: Lost | None = None,
    ) -> Watcher | Awaitable[Watcher]:
        """Watch changes above `since` in `scope`, of one object when `name` is given.

        What has happened since then is delivered before the watcher is returned; an exception of `deliver` there comes
        out of this call. StorageError(COMPACTED) when `since` is too old. With `since` in the future nothing is
        delivered until the store passes it. `lost` is called when the watch ends because changes cannot be told (only
        a store others write to has such); without it, the difference is told and the watch goes on.
        """
        newest = self._cacher.revision
        key = (scope, name, matcher)
        if since < newest and since < self._window.low:
            return self._catch_up(key, since, deliver, lost)
        watcher = self._index.add(key, self.triggers, max(since, newest), deliver)
        watcher.lost = lost
        if since < newest:
            try:
                events = self._seen(watcher.group, self._window.since(since))
                if events:
                    deliver(events)
            except BaseException:
                watcher.stop()
                raise
        return watcher

    async def _catch_up(self, key: GroupKey, since: int, deliver: Deliver, lost: Lost | None) -> Watcher:
        """Backlog from the storage's history, then what happened while it was read."""
        until = self._cacher.revision
        watcher = self._index.add(key, self.triggers, until, deliver)
        watcher.lost = lost
        watcher.hold()
        try:
            history = await self._cacher.storage.history(self.prefix + key[0], after=since, until=until)
            events = self._seen(watcher.group, [self._recall(event) for event in history])
            if events and not watcher.stopped:
                deliver(events)
            watcher.release()
        except BaseException:
            watcher.stop()
            raise
        return watcher

    def _seen(self, group: Group, changes: Changes) -> Events:
        size = len(self.prefix)
        return [
            event
            for change in changes
            if group.covers(change.object.key[size:], change.object.name) and (event := group.sees(change)) is not None
        ]

    def _recall(self, event: Event) -> Change:
        """A change from the storage's history."""
        previous = self.make(event.previous) if event.previous is not None else None
        if event.value is not None:
            return Change(self.make(event.value), previous, event.revision, deleted=False)
        if previous is None:
            raise StorageError(Code.UNAVAILABLE, event.key, event.revision, "a delete without a state before it")
        return Change(previous.at_revision(event.revision), previous, event.revision, deleted=True)

    # --- for the cacher -------------------------------------------------------------------------------------------

    def make(self, item: KeyValue) -> CachedObject:
        """A stored value as an object; StorageError(UNAVAILABLE) when it is none."""
        key, value = item.key, item.value
        namespace, _, name = key[len(self.prefix) :].rpartition("/")
        try:
            if value.startswith(b"k8s\0"):
                value = foreign.as_json(value)
            return CachedObject(key, intern(namespace), name, value, item.revision, item.created)
        except ValueError as error:
            message = f"the stored value of {key} cannot be read"
            raise StorageError(Code.UNAVAILABLE, key, item.revision, message) from error

    def load(self, items: Iterable[KeyValue]) -> None:
        """Take stored values at start; they come in key order, and there may be very many."""
        cut, append = len(self.prefix), self._store.append
        for item in items:
            key, value, created, revision = item
            namespace, _, name = key[cut:].rpartition("/")
            try:
                append(CachedObject(key, intern(namespace), name, value, revision, created))
            except ValueError:
                try:
                    append(self.make(item))
                except StorageError as error:
                    self._broken[key] = error

    def loaded(self, revision: int) -> None:
        """The loaded state is that of `revision`."""
        self._window.reset(revision)

    def apply(self, event: Event) -> Change | None:
        """Take a committed event; None when there is nothing to tell watchers."""
        key, revision = event.key, event.revision
        if self._broken and self._broken.pop(key, None) is not None:
            # What a list before this revision showed cannot be rebuilt from here.
            self._window.reset(revision)
        if event.value is None:
            previous = self._store.remove(key)
            if previous is None:
                return None
            change = Change(previous.at_revision(revision), previous, revision, deleted=True)
        else:
            try:
                obj = self.make(event.value)
            except StorageError as error:
                report("a stored value cannot be read", error)
                self._store.remove(key)
                self._broken[key] = error
                self._window.reset(revision)
                self._events += 1
                return None
            change = Change(obj, self._store.put(obj), revision, deleted=False)
        self._window.append(change)
        self._events += 1
        return change

    def replace(self, items: dict[str, KeyValue], revision: int) -> Changes:
        """Show what stands at `revision` after changes that cannot be told; what differs, for who is content with that."""
        for watcher in self._index.watchers():
            if watcher.lost is not None:
                watcher.stop()
                watcher.lost(revision)
        changes = []
        for key in [key for key in self._store.by_key if key not in items]:
            gone = self._store.remove(key)
            if gone is not None:
                changes.append(Change(gone.at_revision(revision), gone, revision, deleted=True))
        self._broken.clear()
        for key, item in items.items():
            known = self._find(key)
            if known is not None and known.revision == item.revision:
                continue
            try:
                changes.append(Change(obj := self.make(item), self._store.put(obj), item.revision, deleted=False))
            except StorageError as error:
                self._store.remove(key)
                self._broken[key] = error
        changes.sort(key=_revision_of)
        self._window.reset(revision)
        self._events += len(changes) + 1
        return changes

    def dispatch(self, changes: Changes) -> None:
        """Give the changes of one commit to the watchers: one call each."""
        if self._index.count:
            for group in self._route(changes):
                events, group.pending = group.pending, []
                first = events[0].change.revision
                for watcher in tuple(group.watchers):
                    if not watcher.live or watcher.since >= first:
                        watcher.push(events)
                        continue
                    try:
                        watcher.deliver(events)
                    except Exception as error:
                        watcher.fail(error)
        for change in changes:
            change.forget()

    def _route(self, changes: Changes) -> Groups:
        """Groups that see some of the changes, with the events in `pending`."""
        size = len(self.prefix)
        active: Groups = []
        for change in changes:
            relative = change.object.key[size:]
            try:
                groups = self._index.route(change, relative, self.extract)
            except Exception as error:
                # Without selectable fields nobody can say who is not concerned.
                report(f"selectable fields of {change.object.key} cannot be read", error)
                name = change.object.name
                groups = [w.group for w in self._index.watchers() if w.group.covers(relative, name)]
            for group in dict.fromkeys(groups):
                try:
                    event = group.sees(change)
                except Exception as error:
                    for watcher in tuple(group.watchers):
                        watcher.fail(error)
                    continue
                if event is not None:
                    if not group.pending:
                        active.append(group)
                    group.pending.append(event)
        return active

    def stop(self) -> None:
        """End every watch."""
        for watcher in self._index.watchers():
            watcher.stop()

    def statistics(self) -> ResourceStatistics:
        return ResourceStatistics(
            objects=len(self._store.by_key),
            bytes=self._store.size,
            watchers=self._index.count,
            events=self._events,
            window=len(self._window),
            window_bytes=self._window.size,
        )

    def _check(self, first: str, end: str) -> None:
        """Refuse a list over a range in which a stored value cannot be read."""
        for key, error in self._broken.items():
            if first <= key < end:
                raise error


def _selected(objects: list[CachedObject], matcher: Matcher, limit: int, revision: int) -> Listing:
    chosen, seen = matcher.select_page(objects, max(0, limit))
    if seen < len(objects):
        return Listing(chosen, revision, chosen[-1].key + "\0", -1)
    return Listing(chosen, revision, "", 0)

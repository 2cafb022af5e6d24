"""Watches of a kind whose events come from the author's generator, one generator a client.

`rest.watch` sees to initial events, frames, bookmarks and the end in time; it is given the events of the generator in
the place of those of a cache, after namespaces, names and selectors have been applied to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from fastapi_core._ext.objects import CachedObject
from fastapi_core.extension.failures import Turns, being_cancelled, called, heard
from fastapi_core.extension.source import RequestCache, RequestStore, revision_of
from fastapi_core.extension.sync import events_of
from fastapi_core.storage.cacher.changes import ADDED, DELETED, MODIFIED, Change, WatchEvent
from fastapi_core.storage.cacher.resource import Listing

if TYPE_CHECKING:
    from fastapi_core._ext.selector import Matcher
    from fastapi_core.extension.request import Event
    from fastapi_core.storage.cacher.watchers import Lost, Watcher

Deliver = Callable[[list[WatchEvent]], None]

BOOKMARK: Final = "BOOKMARK"
FAILED: Final = "the source of events failed"
_KINDS: Final = frozenset({ADDED, MODIFIED, DELETED})


class WatchCache(RequestCache):
    """What a watch needs of a `ResourceCache`."""

    def __init__(self, store: RequestStore) -> None:
        super().__init__()
        self._store = store
        self.begun = False
        """The client has been given the initial state."""

    def list(self, scope: str = "", *, matcher: Matcher | None = None) -> Listing:
        """The initial state, which has been fetched."""
        self.begun = True
        objects = list(self.objects.values())
        return Listing(matcher.select(objects) if matcher is not None else objects, self.revision, "", 0)

    def watch(
        self,
        scope: str = "",
        *,
        matcher: Matcher | None = None,
        name: str = "",
        since: int,
        deliver: Deliver,
        lost: Lost | None = None,
    ) -> Awaitable[Watcher | None]:
        """Waits as long as there are events, then answers None. Raises APIError for a source that fails."""
        self.revision = max(since, self.revision)
        return _Flow(self, self._store, matcher, name, deliver).run(since)


class _Flow:
    """The events of one watch on their way."""

    def __init__(
        self,
        cache: WatchCache,
        store: RequestStore,
        matcher: Matcher | None,
        name: str,
        deliver: Deliver,
    ) -> None:
        self._cache = cache
        self._store = store
        self._matcher = matcher
        self._name = name
        self._deliver = deliver
        self._shown: dict[str, CachedObject] = {}
        """What the client has, as far as this watch knows. Only with a matcher, as the two that follow."""
        self._unselected: set[str] = set()
        """What it does not have, where that is not simply all the rest."""
        self._complete = False
        """The client has nothing else."""

    async def run(self, since: int) -> None:
        origin = self._store.origin
        handler = origin.handlers.watch
        assert handler is not None
        request = replace(self._store.request, verb="watch", resource_version=str(since) if since else "")
        self._begin(since)
        try:
            source = called(handler, request)
            events = events_of(await source if isinstance(source, Awaitable) else source)
            try:
                await self._drain(events)
            finally:
                close = getattr(events, "aclose", None)
                if close is not None:
                    await close()
        except asyncio.CancelledError as error:
            if being_cancelled():
                raise
            raise heard(error, handler, FAILED) from None
        except (Exception, SystemExit, GeneratorExit) as error:
            raise heard(error, handler, FAILED) from None
        finally:
            if self._complete and self._cache.revision:
                origin.remember(self._store.watched_view, self._cache.revision, list(self._shown.values()))

    async def _drain(self, events: AsyncIterator[Event[Any]]) -> None:
        """Take the events as they come; a source that never waits lets others run now and then."""
        task, turns = asyncio.current_task(), Turns()
        async for event in events:
            self._take(event)
            if turns.due:
                await turns.over()
            if task is not None and task.cancelling():
                # The client is gone, and the source has caught what it was told so by.
                raise asyncio.CancelledError

    def _begin(self, since: int) -> None:
        """What the client has: the initial events, or what it was told last, if it goes on from just there."""
        if self._matcher is None:
            return
        if self._cache.begun:
            known = self._matcher.select(list(self._cache.objects.values()))
        else:
            revision, known = self._store.origin.states.get(self._store.watched_view, (0, []))
            if not since or revision != since:
                return
        self._complete = True
        self._shown = {obj.key: obj for obj in known}

    def _take(self, event: Event[Any]) -> None:
        origin, request = self._store.origin, self._store.request
        if event.type == BOOKMARK:
            metadata = origin.declaration.model.dump(event.object).get("metadata") or {}
            self._reached(revision_of(metadata.get("resourceVersion"), "a bookmark"))
            return
        if event.type not in _KINDS:
            raise TypeError(f"an event of type {event.type!r}")
        obj = origin.make(event.object, request.namespace)
        self._reached(obj.revision)
        if (request.namespace and obj.namespace != request.namespace) or (self._name and obj.name != self._name):
            return
        if self._matcher is None:
            self._tell(event.type, obj)
            return
        previous = None
        if event.previous is not None and not self._complete and obj.key not in self._shown:
            previous = origin.make(event.previous, request.namespace)
        self._judge(event.type, obj, previous, self._matcher)

    def _judge(self, kind: str, obj: CachedObject, previous: CachedObject | None, matcher: Matcher) -> None:
        """Tell what the event is to this client, if it is anything.

        When nobody knows whether the client has the object, it is told of its end: a delete of what is not there does
        no harm, an object that stays for ever does."""
        before = self._shown.pop(obj.key, None)
        unknown = before is None and not self._complete and obj.key not in self._unselected
        if unknown and previous is not None:
            unknown = False
            before = previous if matcher.matches(previous) else None
        self._unselected.discard(obj.key)
        if kind != DELETED and matcher.matches(obj):
            self._shown[obj.key] = obj
            self._tell(kind if before is not None or unknown else ADDED, obj)
            return
        if not self._complete:
            self._unselected.add(obj.key)
        if before is not None:
            # As it was when the client could see it, under the version of its end.
            self._tell(DELETED, before.at_revision(obj.revision) if obj.revision else before)
        elif unknown and (matcher.matches(obj) if kind == DELETED else kind != ADDED):
            self._tell(DELETED, obj)

    def _tell(self, kind: str, obj: CachedObject) -> None:
        self._deliver([WatchEvent(kind, Change(obj, None, obj.revision, deleted=kind == DELETED))])

    def _reached(self, revision: int) -> None:
        self._cache.revision = max(self._cache.revision, revision)


def watched(store: RequestStore) -> RequestStore:
    """The store with a cache that can be watched."""
    found = WatchCache(store)
    found.objects, found.revision = store.found.objects, store.found.revision
    store.found = found
    store.cache = cast("Any", found)
    return store

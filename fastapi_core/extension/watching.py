"""Watches of a kind whose events come from the author's generator, one generator a client.

`rest.watch` sees to initial events, frames, bookmarks and the end in time; it is given the events of the generator in
the place of those of a cache, after namespaces, names and selectors have been applied to them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.extension.source import RequestCache, RequestStore
from fastapi_core.extension.sync import events_of
from fastapi_core.obs import logs
from fastapi_core.storage.cacher.changes import ADDED, DELETED, MODIFIED, Change, WatchEvent
from fastapi_core.storage.cacher.resource import Listing

if TYPE_CHECKING:
    from fastapi_core._ext.selector import Matcher
    from fastapi_core.extension.request import Event
    from fastapi_core.storage.cacher.watchers import Watcher

Deliver = Callable[[list[WatchEvent]], None]

log = logs.get("extension")
BOOKMARK: Final = "BOOKMARK"
_KINDS: Final = frozenset({ADDED, MODIFIED, DELETED})


class WatchCache(RequestCache):
    """What a watch needs of a `ResourceCache`."""

    def __init__(self, store: RequestStore) -> None:
        super().__init__()
        self._store = store

    def list(self, scope: str = "", *, matcher: Matcher | None = None) -> Listing:
        """The initial state, which has been fetched."""
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
        self._selected: dict[str, bool] = {}
        """Whether the client has an object, as far as this watch knows."""
        if matcher is not None:
            self._selected = {key: matcher.matches(obj) for key, obj in cache.objects.items()}

    async def run(self, since: int) -> None:
        origin = self._store.origin
        handler = origin.handlers.watch
        assert handler is not None
        request = replace(self._store.request, verb="watch", resource_version=str(since) if since else "")
        try:
            source = handler(request)
            events = events_of(await source if isinstance(source, Awaitable) else source)
            try:
                async for event in events:
                    self._take(event)
            finally:
                close = getattr(events, "aclose", None)
                if close is not None:
                    await close()
        except errors.APIError:
            raise
        except Exception as error:
            log.error("The source of a watch failed", error, resource=origin.definition.plural)
            raise errors.internal("the source of events failed") from None

    def _take(self, event: Event[Any]) -> None:
        origin, request = self._store.origin, self._store.request
        if event.type == BOOKMARK:
            metadata = origin.declaration.model.dump(event.object).get("metadata") or {}
            self._reached(int(metadata.get("resourceVersion") or 0))
            return
        if event.type not in _KINDS:
            raise TypeError(f"an event of type {event.type!r}")
        obj = origin.make(event.object, request.namespace)
        self._reached(obj.revision)
        known = origin.history.changed(obj, deleted=event.type == DELETED)
        if event.previous is not None:
            known = origin.make(event.previous, request.namespace)
        if (request.namespace and obj.namespace != request.namespace) or (self._name and obj.name != self._name):
            return
        kind = self._seen(event.type, obj, known)
        if kind:
            self._deliver([WatchEvent(kind, Change(obj, known, obj.revision, deleted=kind == DELETED))])

    def _seen(self, kind: str, obj: CachedObject, known: CachedObject | None) -> str:
        """What the event is to this client; empty for nothing.

        When nobody knows whether the client has the object, it is told of its end: a delete of what is not there does
        no harm, an object that stays for ever does."""
        matcher = self._matcher
        if matcher is None:
            return kind
        had: bool | None = self._selected.get(obj.key)
        if had is None and known is not None:
            had = matcher.matches(known)
        if kind == DELETED:
            self._selected.pop(obj.key, None)
            return DELETED if had or (had is None and matcher.matches(obj)) else ""
        has = self._selected[obj.key] = matcher.matches(obj)
        if has:
            return ADDED if had is False else kind
        return DELETED if had or (had is None and kind != ADDED) else ""

    def _reached(self, revision: int) -> None:
        self._cache.revision = max(self._cache.revision, revision)


def watched(store: RequestStore) -> RequestStore:
    """The store with a cache that can be watched."""
    found = WatchCache(store)
    found.objects, found.revision = store.found.objects, store.found.revision
    store.found = found
    store.cache = cast("Any", found)
    return store

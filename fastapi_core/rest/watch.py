"""WATCH: initial events, live events, bookmarks, the end in time.

A client that does not read is cut once `MAX_BUFFERED` bytes wait for it, and before that when all streams together owe
too much (`http`): nobody else is held up and memory stays bounded. Initial events are framed as the client takes them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.http.exchange import Answer, Stream, StreamWriter
from fastapi_core.later import later
from fastapi_core.request.context import RequestContext
from fastapi_core.rest.frames import Framed, Frames
from fastapi_core.storage.cacher.changes import Change
from fastapi_core.storage.interface import Code, StorageError

if TYPE_CHECKING:
    from fastapi_core._ext.selector import Matcher
    from fastapi_core.codec import negotiate
    from fastapi_core.codec.negotiate import MediaType
    from fastapi_core.rest import options as rest_options
    from fastapi_core.rest import render
    from fastapi_core.rest.options import ListOptions
    from fastapi_core.rest.scope import Scope
    from fastapi_core.storage.cacher.changes import WatchEvent
    from fastapi_core.storage.cacher.watchers import Watcher
else:
    negotiate = later("fastapi_core.codec.negotiate")
    rest_options = later("fastapi_core.rest.options")
    render = later("fastapi_core.rest.render")

MAX_BUFFERED = 16 << 20
BOOKMARK_PERIOD = 60.0
BOOKMARK_BEFORE_END = 2.0
CONVERSION_PATIENCE = 30.0
"""Seconds for which a failing conversion webhook holds events up before the watch ends with its error."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class WatchServer:
    """All watches of the process. `min_timeout` seconds is the least a watch without timeoutSeconds lasts (up to twice).

    `gone`: no client can have been told this revision or an older one, so a watch from there is too old.
    """

    def __init__(
        self,
        min_timeout: float,
        observe: Callable[[Scope, int, int], None] | None = None,
        terminated: Callable[[Scope], None] | None = None,
        gone: int = 0,
    ) -> None:
        self.min_timeout = min_timeout
        self.gone = gone
        self.observe = observe
        self.terminated = terminated
        self._open: set[Watch] = set()

    def start(self, ctx: RequestContext, scope: Scope, options: ListOptions) -> Answer | Awaitable[Answer]:
        """The stream of a watch request; errors before it starts are ordinary Status answers."""
        media = render.media_type(ctx, scope, negotiate.LIST_TYPES)
        if media.format == "yaml":
            raise errors.not_acceptable(WATCH_ACCEPTED)
        if media.as_kind and (
            media.as_kind not in ("Table", "PartialObjectMetadata")
            or media.as_group != "meta.k8s.io"
            or media.as_version not in render.META_VERSIONS
        ):
            raise errors.not_acceptable(WATCH_ACCEPTED)
        if media.as_kind == "Table":
            # Rows are made when the stream has begun, which is too late to refuse what they shall hold.
            render.include_object(ctx)
        matcher = scope.matcher(options)
        revision = rest_options.revision_of(options.resource_version)
        watch = Watch(self, ctx, scope, options, media, matcher)
        initial = options.send_initial
        if initial is None:
            initial = revision == 0
            if options.bookmarks and initial:
                watch.mark_initial_end = True
        elif initial:
            watch.mark_initial_end = options.bookmarks
        pending = scope.store.fresh() if not options.resource_version else None
        if initial and revision:
            pending = scope.store.wait(revision)
        if pending is not None:
            return self._after(pending, watch, initial, revision)
        return watch.stream(initial, revision)

    async def _after(self, pending: Awaitable[None], watch: Watch, initial: bool, revision: int) -> Answer:
        await pending
        return watch.stream(initial, revision)

    def opened(self, watch: Watch) -> None:
        self._open.add(watch)

    def closed(self, watch: Watch) -> None:
        self._open.discard(watch)

    def end_resource(self, group: str, plural: str) -> None:
        """End the watches of a resource that is served otherwise from now on, or no longer."""
        for watch in tuple(self._open):
            definition = watch.scope.definition
            if definition.group == group and definition.plural == plural:
                watch.end()

    @property
    def count(self) -> int:
        return len(self._open)

    async def shutdown(self, grace: float = 0.0) -> None:
        """End every watch cleanly: clients see a complete response and come back elsewhere.

        Over `grace` seconds, evenly, so that they do not all come back at once.
        """
        remaining = tuple(self._open)
        pause = grace / len(remaining) if remaining else 0.0
        for watch in remaining:
            watch.end()
            if pause:
                await asyncio.sleep(pause)


WATCH_ACCEPTED = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")


class Watch:
    """One client's watch."""

    def __init__(
        self,
        server: WatchServer,
        ctx: RequestContext,
        scope: Scope,
        options: ListOptions,
        media: MediaType,
        matcher: Matcher | None,
    ) -> None:
        self.server = server
        self.ctx = ctx
        self.scope = scope
        self.options = options
        self.media = media
        self.matcher = matcher
        self._judged_late = scope.judges_views(matcher)
        """Objects are selected once they have been converted, here and not by the cache."""
        self.mark_initial_end = False
        self._writer: StreamWriter | None = None
        self._watcher: Watcher | None = None
        self._catching_up: asyncio.Future[None] | None = None
        self._converting: asyncio.Task[None] | None = None
        """Writes the last of the events that have to be converted by a webhook."""
        self._timers: list[asyncio.TimerHandle] = []
        self._sent = 0
        self._done = False
        self._slow = False
        self._frames = Frames(ctx, scope, media)

    def stream(self, initial: bool, revision: int) -> Answer:
        def start(writer: StreamWriter) -> None:
            self._writer = writer
            writer.on_close(self._gone)
            self.server.opened(self)
            self._schedule()
            if initial:
                self._send_initial()
                self._subscribe(self._sent)
            elif 0 < revision <= self.server.gone:
                self._sent = revision
                self._fail(StorageError(Code.COMPACTED, revision=self.server.gone + 1))
            else:
                self._subscribe(revision or self.scope.store.cache.revision)

        return Stream(200, [self._frames.content_type], start)

    # Life

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        seconds = float(self.options.timeout) or self.server.min_timeout * (1 + random.random())
        self._timers.append(loop.call_later(seconds, self.end))
        if self.options.bookmarks:
            if seconds > BOOKMARK_BEFORE_END:
                self._timers.append(loop.call_later(seconds - BOOKMARK_BEFORE_END, self._bookmark))
            self._timers.append(loop.call_later(BOOKMARK_PERIOD + random.random(), self._periodic_bookmark))

    def end(self) -> None:
        """Finish the response normally."""
        if self._writer is not None and not self._writer.closed:
            self._writer.finish()
        self._gone()

    def _gone(self) -> None:
        if self._done:
            return
        self._done = True
        if self._writer is not None and (self._writer.cut or self._slow) and self.server.terminated is not None:
            self.server.terminated(self.scope)
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        if self._catching_up is not None:
            self._catching_up.cancel()
        if self._converting is not None and self._converting is not asyncio.current_task():
            self._converting.cancel()
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher = None
        self.server.closed(self)

    # Events

    def _send_initial(self) -> None:
        store = self.scope.store
        info = self.ctx.info
        listing = store.cache.list(store.scope(info.namespace), matcher=self._early)
        self._sent = listing.revision
        name = info.name
        objects = [o for o in listing.objects if o.name == name] if name else listing.objects
        if self._judged_late or not self.scope.is_ready(objects):
            changes = [Change(obj, None, obj.revision, deleted=False) for obj in objects]
            self._later([change.event for change in changes], end_of_initial=self.mark_initial_end)
            return
        self._write_initial(objects)
        if self.mark_initial_end:
            self._bookmark(annotations={INITIAL_EVENTS_END: "true"})

    @property
    def _early(self) -> Matcher | None:
        """What the cache selects by."""
        return None if self._judged_late else self.matcher

    def _later(self, events: list[WatchEvent], *, end_of_initial: bool | None = None) -> None:
        """Write events whose objects have to be converted by somebody else first.

        `end_of_initial` is for initial events: whether their end is to be marked.
        """
        before = self._converting

        async def convert() -> None:
            if before is not None:
                await asyncio.wait([before])
            try:
                found = await self._in_time(events, 0.0 if end_of_initial is not None else CONVERSION_PATIENCE)
            except errors.APIError as error:
                if self._writer is not None and not self._writer.closed:
                    self._writer.write_framed(self._frames.error(error.to_status()))
                self.end()
                return
            if self._done:
                return
            if end_of_initial is not None:
                self._write_initial([event.change.object for event in found])
            else:
                self._write(b"".join([self._frames.event(e.type, e.change.object, {}) for e in found]), len(found))
            if end_of_initial:
                self._bookmark(annotations={INITIAL_EVENTS_END: "true"})
            if self._converting is asyncio.current_task():
                self._converting = None

        self._converting = asyncio.get_running_loop().create_task(convert())

    async def _in_time(self, events: list[WatchEvent], patience: float) -> list[WatchEvent]:
        """As `_ready`, asked again for some seconds: one failure of a webhook does not end every watch."""
        loop = asyncio.get_running_loop()
        end, pause = loop.time() + patience, 0.5
        while True:
            try:
                return await self._ready(events)
            except errors.APIError:
                if loop.time() + pause > end or self._done:
                    raise
            await asyncio.sleep(pause)
            pause *= 2

    async def _ready(self, events: list[WatchEvent]) -> list[WatchEvent]:
        """Those of the events that are selected, with objects that can be shown."""
        if self._judged_late:
            changes = [event.change for event in events]
            objects = [obj for change in changes for obj in (change.object, change.previous) if obj is not None]
            pending = self.scope.ready(objects)
            if pending is not None:
                await pending
            events = [event for change in changes if (event := change.seen(self.matcher)) is not None]
        pending = self.scope.ready([event.change.object for event in events])
        if pending is not None:
            await pending
        return events

    def _subscribe(self, since: int) -> None:
        store = self.scope.store
        self._sent = since
        try:
            watcher = store.cache.watch(
                store.scope(self.ctx.info.namespace),
                matcher=self._early,
                name=self.ctx.info.name,
                since=since,
                deliver=self._deliver,
                lost=self._lost,
            )
        except StorageError as error:
            self._fail(error)
            return
        if isinstance(watcher, Awaitable):
            self._catching_up = asyncio.ensure_future(self._subscribed_later(watcher))
        else:
            self._subscribed(watcher)

    async def _subscribed_later(self, pending: Awaitable[Watcher | None]) -> None:
        """A source that has no watcher to give (an extension's own) has no more events when it answers."""
        try:
            watcher = await pending
        except (StorageError, errors.APIError) as error:
            self._fail(error)
            return
        if watcher is None:
            self.end()
        else:
            self._subscribed(watcher)

    def _subscribed(self, watcher: Watcher) -> None:
        if self._done:
            watcher.stop()
        else:
            self._watcher = watcher

    def _lost(self, revision: int) -> None:
        self._fail(StorageError(Code.COMPACTED, revision=revision))

    def _deliver(self, events: list[WatchEvent]) -> None:
        if self._done:
            return
        late = self._judged_late or self._converting is not None
        if late or not self.scope.is_ready([e.change.object for e in events]):
            # In order, behind what is still being converted.
            self._later(events)
            return
        writer = self._writer
        if self._watcher is None and writer is not None and not writer.congested:
            # What has happened since the version it began with: as much as it may be, it belongs to the beginning.
            writer.write_later(self._pieces([(e.type, e.change.object, e.change.memo) for e in events]))
            return
        if len(events) == 1:
            event = events[0]
            frames = self._frames.event(event.type, event.change.object, event.change.memo)
        elif writer is not None and writer.congested:
            # One by one, so that all who are behind wait with the same bytes.
            for event in events:
                self._write(self._frames.event(event.type, event.change.object, event.change.memo), 1)
            return
        else:
            frames = b"".join([self._frames.event(e.type, e.change.object, e.change.memo) for e in events])
        self._write(frames, len(events))

    def _write(self, frames: bytes, events: int) -> None:
        writer = self._writer
        if writer is None or writer.closed or not frames:
            return
        writer.write_framed(frames)
        if self.server.observe is not None:
            self.server.observe(self.scope, events, len(frames))
        if writer.congested and writer.buffered > MAX_BUFFERED:
            self._slow = True
            writer.abort()

    def _write_initial(self, objects: list[CachedObject]) -> None:
        if self._writer is not None:
            self._writer.write_later(self._pieces([("ADDED", obj, {}) for obj in objects]))

    def _pieces(self, found: list[Framed]) -> Iterator[bytes]:
        """The frames of many events, made as they are taken."""
        observe = self.server.observe
        for frames, events in self._frames.batches(found):
            if observe is not None:
                observe(self.scope, events, len(frames))
            yield frames

    def _fail(self, error: StorageError | errors.APIError) -> None:
        """An error after the head is out is an ERROR event, then the end."""
        if isinstance(error, errors.APIError):
            status = error.to_status()
        elif error.code is Code.COMPACTED:
            status = errors.expired(f"too old resource version: {self._sent} ({error.revision})").to_status()
        else:
            status = errors.internal(str(error)).to_status()
        if self._writer is not None and not self._writer.closed:
            self._writer.write_framed(self._frames.error(status))
        self.end()

    # Bookmarks

    def _periodic_bookmark(self) -> None:
        self._bookmark()
        if not self._done:
            loop = asyncio.get_running_loop()
            self._timers.append(loop.call_later(BOOKMARK_PERIOD + random.random(), self._periodic_bookmark))
            del self._timers[:-8]

    def _bookmark(self, annotations: dict[str, str] | None = None) -> None:
        """Tell the revision reached."""
        revision = max(self.scope.store.cache.revision, self._sent)
        self._write(self._frames.bookmark(revision, annotations), 1)

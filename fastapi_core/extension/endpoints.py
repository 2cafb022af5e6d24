"""Verbs of a kind as endpoints: over a store that keeps the objects, or over one made for each request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from fastapi_core.codec import decode
from fastapi_core.extension.request import request_of
from fastapi_core.extension.source import Origin, RequestStore
from fastapi_core.extension.watching import watched
from fastapi_core.http.exchange import Answer, Response
from fastapi_core.rest import create, delete, get, patch, render, scale, update
from fastapi_core.rest import list as listing
from fastapi_core.rest.body import body_form
from fastapi_core.rest.options import list_options, revision_of

if TYPE_CHECKING:
    from fastapi_core.extension.scope import KindScope
    from fastapi_core.request.context import Endpoint, RequestContext
    from fastapi_core.rest.scope import Scope
    from fastapi_core.rest.watch import WatchServer

Make = Callable[["Scope"], "Endpoint"]

_VERBS: dict[str, Make] = {
    "create": create.creator,
    "update": update.updater,
    "patch": patch.patcher,
    "delete": delete.deleter,
    "deletecollection": delete.collection_deleter,
}
_STATUS: dict[str, Make] = {
    "get": lambda scope: get.getter(scope.status()),
    "update": lambda scope: update.updater(scope.status(), "status"),
    "patch": lambda scope: patch.patcher(scope.status(), "status"),
}
_SCALE: dict[str, Make] = {"get": scale.getter, "update": scale.updater, "patch": scale.patcher}
_PARTS = {"status": _STATUS, "scale": _SCALE}


def stored(scope: KindScope, watches: WatchServer) -> dict[str, Endpoint]:
    """Verb (or `subresource:verb`) -> endpoint of a kind that is kept."""
    made = {verb: make(scope) for verb, make in _VERBS.items()}
    made |= {"get": get.getter(scope), "list": listing.lister(scope, watches)}
    for name in scope.definition.subresources:
        made |= {f"{name}:{verb}": make(scope) for verb, make in _PARTS.get(name, {}).items()}
    return made


def scaling(scope: KindScope) -> dict[str, Endpoint]:
    """The endpoints of scale alone."""
    return {f"scale:{verb}": make(scope) for verb, make in _SCALE.items()}


def computed(scope: KindScope, origin: Origin, watches: WatchServer) -> dict[str, Endpoint]:
    """The same of a kind that the author's functions answer for."""
    functions = Functions(scope, origin, watches)
    made: dict[str, Endpoint] = {
        "get": functions.get,
        "list": functions.list,
        "create": functions.create,
        "deletecollection": functions.collection(delete.collection_deleter),
        **{verb: functions.named(_VERBS[verb]) for verb in ("update", "patch", "delete")},
    }
    for name in scope.definition.subresources:
        parts = _PARTS.get(name, {})
        made |= {f"{name}:{verb}": functions.named(parts[verb]) for verb in parts}
        if name == "status":
            made["status:get"] = functions.get
    return made


class Functions:
    """Endpoints that fetch first, and then do as with any other kind."""

    def __init__(self, scope: KindScope, origin: Origin, watches: WatchServer) -> None:
        self._scope = scope
        self._origin = origin
        self._watches = watches

    def _store(self, ctx: RequestContext) -> RequestStore:
        return RequestStore(self._origin, request_of(ctx))

    async def get(self, ctx: RequestContext) -> Response:
        scope = self._scope
        media = render.media_type(ctx, scope)
        store = self._store(ctx)
        obj = await store.fetch(ctx.info.name)
        await store.reached(revision_of(store.request.resource_version), obj)
        if obj is None:
            raise scope.not_found(ctx.info.name)
        return render.one(ctx, scope, obj, media=media)

    def list(self, ctx: RequestContext) -> Answer | Awaitable[Answer]:
        options = list_options(ctx.request.query)
        store = self._store(ctx)
        if not options.watch:
            return listing.lister(self._scope.bound(store), self._watches)(ctx)
        initial = options.send_initial
        if initial is None:
            initial = revision_of(options.resource_version) == 0
        return self._watch(ctx, store, initial=initial)

    async def _watch(self, ctx: RequestContext, store: RequestStore, *, initial: bool) -> Answer:
        if initial:
            await store.fetch_all()
        bound = self._scope.bound(watched(store))
        answer = self._watches.start(ctx, bound, list_options(ctx.request.query))
        return await answer if isinstance(answer, Awaitable) else answer

    async def create(self, ctx: RequestContext) -> Answer:
        store = self._store(ctx)
        if store.request.dry_run and self._origin.handlers.get is not None:
            # What is kept would say that the name is taken; here somebody has to be asked.
            name = _name_in(ctx)
            if name:
                await store.fetch(name)
        return await _done(create.creator(self._scope.bound(store))(ctx))

    def named(self, make: Make) -> Endpoint:
        """An endpoint about one object."""

        async def endpoint(ctx: RequestContext) -> Answer:
            store = self._store(ctx)
            await store.fetch(ctx.info.name)
            return await _done(make(self._scope.bound(store))(ctx))

        return endpoint

    def collection(self, make: Make) -> Endpoint:
        """An endpoint about all objects, which it lists itself."""

        def endpoint(ctx: RequestContext) -> Answer | Awaitable[Answer]:
            return make(self._scope.bound(self._store(ctx)))(ctx)

        return endpoint


async def _done(answer: Answer | Awaitable[Answer]) -> Answer:
    return await answer if isinstance(answer, Awaitable) else answer


def _name_in(ctx: RequestContext) -> str:
    """metadata.name of a body that may be anything; empty when there is none."""
    form = body_form(ctx)
    if form == "protobuf":
        return ""
    try:
        tree: Any = decode.parse(ctx.request.body, form).tree
    except decode.DecodeError:
        return ""
    metadata = tree.get("metadata") if isinstance(tree, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else ""
    return name if isinstance(name, str) else ""

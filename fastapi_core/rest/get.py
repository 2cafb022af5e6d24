"""GET of one object, from memory."""

from __future__ import annotations

from collections.abc import Awaitable

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.codec.negotiate import MediaType
from fastapi_core.http.exchange import Response
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.rest import render
from fastapi_core.rest.options import revision_of
from fastapi_core.rest.scope import Scope

NO_EXPORT = "the export parameter, deprecated since v1.14, is no longer supported"


def getter(scope: Scope) -> Endpoint:
    """GET .../NAME: consistent by default, at least as new as resourceVersion when one is given."""
    store = scope.store

    def get(ctx: RequestContext) -> Response | Awaitable[Response]:
        info = ctx.info
        media = render.media_type(ctx, scope)
        version = ""
        if info.query:
            version = info.first("resourceVersion")
            if info.first("export") not in ("", "false", "0"):
                raise errors.bad_request(NO_EXPORT)
        if not version:
            pending = store.fresh()
        elif version == "0":
            pending = None
        else:
            pending = store.wait(revision_of(version))
        if pending is not None:
            return _later(ctx, media, pending)
        obj = _find(ctx)
        return render.one(ctx, scope, obj, media=media) if scope.is_ready((obj,)) else _readied(ctx, media, obj)

    def _find(ctx: RequestContext) -> CachedObject:
        info = ctx.info
        obj = store.cache.get(store.key(info.namespace, info.name))
        if obj is None:
            raise scope.not_found(info.name)
        return obj

    async def _later(ctx: RequestContext, media: MediaType, pending: Awaitable[None]) -> Response:
        await pending
        return await _readied(ctx, media, _find(ctx))

    async def _readied(ctx: RequestContext, media: MediaType, obj: CachedObject) -> Response:
        return render.one(ctx, scope, await scope.readied(obj), media=media)

    return get

"""GET of one object, from memory."""

from __future__ import annotations

from collections.abc import Awaitable

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.codec.negotiate import MediaType
from fastapi_core.http.exchange import Response
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.rest import render
from fastapi_core.rest.options import flag, revision_of
from fastapi_core.rest.scope import Scope


def getter(scope: Scope) -> Endpoint:
    """GET .../NAME: consistent by default, at least as new as resourceVersion when one is given."""
    store = scope.store

    def get(ctx: RequestContext) -> Response | Awaitable[Response]:
        info = ctx.info
        media = render.media_type(ctx, scope)
        version = ""
        if info.query:
            version = info.first("resourceVersion")
            if flag(info.query, "export"):
                raise errors.bad_request("the export parameter, deprecated since v1.14, is no longer supported")
        if not version:
            pending = store.fresh()
        elif version == "0":
            pending = None
        else:
            pending = store.wait(revision_of(version))
        if pending is not None:
            return _later(ctx, media, pending)
        obj = _find(ctx)
        return _readied(ctx, media, obj) if scope.converts else render.one(ctx, scope, obj, media=media)

    def _find(ctx: RequestContext) -> CachedObject:
        info = ctx.info
        obj = store.cache.get(store.key(info.namespace, info.name))
        if obj is None:
            raise scope.not_found(info.name)
        return obj

    async def _later(ctx: RequestContext, media: MediaType, pending: Awaitable[None]) -> Response:
        await pending
        obj = _find(ctx)
        answer = _readied(ctx, media, obj) if scope.converts else render.one(ctx, scope, obj, media=media)
        return answer if isinstance(answer, Response) else await answer

    def _readied(ctx: RequestContext, media: MediaType, obj: CachedObject) -> Response | Awaitable[Response]:
        """Reads that are to be consistent have a webhook convert each time, others take what it has converted before."""
        asked = ctx.info.query and ctx.info.first("resourceVersion")
        pending = scope.ready((obj,)) if asked else scope.anew(obj)
        if pending is None:
            return render.one(ctx, scope, obj, media=media)
        return _converted(ctx, media, obj, pending)

    async def _converted(
        ctx: RequestContext, media: MediaType, obj: CachedObject, pending: Awaitable[None]
    ) -> Response:
        await pending
        return render.one(ctx, scope, obj, media=media)

    return get

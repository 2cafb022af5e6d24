"""LIST (and the switch to WATCH): the matrix of resourceVersion, match, limit and continue."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace

from fastapi_core import errors
from fastapi_core._ext.selector import Matcher
from fastapi_core.codec.negotiate import LIST_TYPES, MediaType
from fastapi_core.http.exchange import Answer, Response
from fastapi_core.registry.store import Page
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.rest import render
from fastapi_core.rest.options import ListOptions, list_options, revision_of
from fastapi_core.rest.scope import Scope
from fastapi_core.rest.watch import WatchServer


def lister(scope: Scope, watches: WatchServer) -> Endpoint:
    """GET of a collection."""

    def collection(ctx: RequestContext) -> Answer | Awaitable[Answer]:
        media = render.media_type(ctx, scope, LIST_TYPES)
        options = list_options(ctx.request.query)
        if options.watch:
            return watches.start(ctx, scope, options)
        matcher = scope.matcher(options)
        if scope.judges_views(matcher):
            return _later(ctx, scope, media, matcher, judged_page(scope, ctx.info.namespace, options, matcher))
        found = read_page(scope, ctx.info.namespace, options, matcher)
        if isinstance(found, Page) and scope.is_ready(found.objects):
            return render.page(ctx, scope, media, found, selected=matcher is not None)
        return _later(ctx, scope, media, matcher, found)

    return collection


async def _later(
    ctx: RequestContext, scope: Scope, media: MediaType, matcher: Matcher | None, found: Page | Awaitable[Page]
) -> Response:
    page = found if isinstance(found, Page) else await found
    pending = scope.ready(page.objects)
    if pending is not None:
        await pending
    return render.page(ctx, scope, media, page, selected=matcher is not None)


async def judged_page(scope: Scope, namespace: str, options: ListOptions, matcher: Matcher | None) -> Page:
    """The same as `read_page` where another server converts the objects: fields are those of the version asked for."""
    found = read_page(scope, namespace, replace(options, limit=0, token=""), None)
    while True:
        page = found if isinstance(found, Page) else await found
        pending = scope.ready(page.objects)
        if pending is None:
            break
        await pending
        # What has come meanwhile has to be converted as well.
        found = scope.store.list(namespace, None) if options.match != "Exact" else page
    found = read_page(scope, namespace, options, matcher)
    return found if isinstance(found, Page) else await found


def read_page(scope: Scope, namespace: str, options: ListOptions, matcher: Matcher | None) -> Page | Awaitable[Page]:
    """The objects a list asks for; an awaitable when the cache has to catch up or history must be read."""
    store = scope.store
    version, limit = options.resource_version, max(options.limit, 0)
    # "Any version" is the whole of a cache there. What expires is never cached.
    whole = version == "0" and not scope.definition.ttl
    if options.token:
        if version not in ("", "0"):
            store.check_token(options.token)
            raise errors.bad_request("specifying resource version is not allowed when using continue")
        return store.list(namespace, matcher, limit=0 if whole else limit, token=options.token)
    revision = revision_of(version, listing=True)
    if limit and matcher is not None and _one(scope, namespace, matcher):
        limit = 0
    exact = options.match == "Exact" or (revision > 0 and limit > 0 and not options.match)
    if whole:
        limit = 0
    pending = store.fresh() if not version else store.wait(revision)
    if pending is not None:
        return _after(pending, scope, namespace, matcher, limit, revision if exact else 0)
    return store.list(namespace, matcher, limit=limit, exact=revision if exact else 0)


def _one(scope: Scope, namespace: str, matcher: Matcher) -> bool:
    """Whether a list is about a single object, which is never a page of anything."""
    name = matcher.required("metadata.name")
    return bool(name and (namespace or not scope.definition.namespaced) and not (set("/%") & set(name)))


async def _after(
    pending: Awaitable[None], scope: Scope, namespace: str, matcher: Matcher | None, limit: int, exact: int
) -> Page:
    await pending
    found = scope.store.list(namespace, matcher, limit=limit, exact=exact)
    return found if isinstance(found, Page) else await found

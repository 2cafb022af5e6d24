"""The innermost position: from the route to the endpoint, and the three ways to miss."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from fastapi_core.errors import bad_request, method_not_allowed, no_such_resource, too_large
from fastapi_core.http.exchange import Answer, Response, Stream
from fastapi_core.request.aside import LARGE, large_yaml, read_ahead
from fastapi_core.request.routing import ANY, Routes
from fastapi_core.request.status import page_not_found

if TYPE_CHECKING:
    from fastapi_core.request.context import Endpoint, RequestContext


class Dispatch:
    """Looks the request up in the router of the moment.

    `router` gives the current snapshot; `known_group` tells whether an API group is served at all (in any version).
    """

    def __init__(self, router: Callable[[], Routes], known_group: Callable[[str], bool]) -> None:
        self._router = router
        self._known_group = known_group

    def before(self, ctx: RequestContext) -> Answer | Awaitable[Answer]:
        match = self._router().lookup(ctx.request.path)
        if match is None:
            return self._unknown(ctx)
        endpoint = match.methods.get(ctx.request.method)
        if endpoint is None:
            endpoint = match.methods.get(ANY)
            if endpoint is None:
                raise method_not_allowed()
        ctx.matched = True
        if len(ctx.request.body) >= LARGE and large_yaml(ctx) and not getattr(endpoint, "any_size", False):
            return _ahead(ctx, endpoint)
        return endpoint(ctx)

    def _unknown(self, ctx: RequestContext) -> Answer:
        """Below what an API group owns a miss is a Status; everywhere else it is a page that does not exist."""
        root, _, rest = ctx.info.path.removeprefix("/").partition("/")
        group = rest.partition("/")[0]
        known = root == "apis" and bool(group) and self._known_group(group)
        if "/namespaces//" in ctx.request.path and (known or root == "api"):
            self._nameless(ctx)
        if known or root == "api" or (root == "version" and rest):
            raise no_such_resource()
        return page_not_found()

    def _nameless(self, ctx: RequestContext) -> None:
        """An object of a namespace without a name is told so, by methods the object would have had."""
        match = self._router().lookup(ctx.request.path.replace("/namespaces//", "/namespaces/-/", 1))
        if match is not None and match.params.get("name"):
            if ctx.request.method not in match.methods:
                raise method_not_allowed()
            raise bad_request("Namespace parameter required.")


async def _ahead(ctx: RequestContext, endpoint: Endpoint) -> Answer:
    await read_ahead(ctx)
    answer = endpoint(ctx)
    return answer if isinstance(answer, Response | Stream) else await answer


class TooLarge:
    """In the place of dispatch for requests whose body was over the limit (in bytes) and has not been kept.

    Who may not ask at all still hears that first.
    """

    def __init__(self, limit: int, router: Callable[[], Routes]) -> None:
        self._limit = limit
        self._router = router

    def before(self, ctx: RequestContext) -> Answer | Awaitable[Answer]:
        match = self._router().lookup(ctx.request.path)
        if match is not None:
            endpoint = match.methods.get(ANY)
            # One that passes bodies on as they come (`ctx.request.reader`).
            if getattr(endpoint, "any_size", False):
                ctx.matched = True
                return endpoint(ctx)  # type: ignore[misc]
        raise too_large(self._limit)

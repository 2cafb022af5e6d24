"""ComponentStatus: what the old health list says, asked for anew with each request and never stored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.codec.negotiate import LIST_TYPES
from fastapi_core.http.client import Target, UpstreamError
from fastapi_core.http.exchange import Header, Response
from fastapi_core.registry.definition import Tree
from fastapi_core.registry.store import Page
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.rest import render
from fastapi_core.rest.options import list_options
from fastapi_core.rest.scope import Scope
from fastapi_core.rest.upstream import Upstreams

#: Components with a health address of their own, by name: their port on this machine.
PORTS = {"controller-manager": 10257, "scheduler": 10259}
STORE = "etcd-0"
ANSWER_LIMIT, PATIENCE = 10_000, 5.0
Check = Callable[[], Awaitable[None]]


class Components:
    """The components this machine may run, and the store (`check` raises when it does not serve)."""

    def __init__(self, scope: Scope, upstreams: Upstreams, check: Check) -> None:
        self._scope = scope
        self._upstreams = upstreams
        self._check = check

    def endpoints(self) -> dict[str, Endpoint]:
        return {"list": self._list, "get": self._get}

    def _list(self, ctx: RequestContext) -> Awaitable[Response]:
        media = render.media_type(ctx, None, LIST_TYPES)
        options = list_options(ctx.request.query)
        matcher = self._scope.matcher(options)

        async def answer() -> Response:
            objects = list(await asyncio.gather(*(self._object(name) for name in self.names())))
            found = objects if matcher is None else matcher.select(objects)
            page = Page(found, 0, "", 0)
            return render.page(ctx, self._scope, media, page, selected=matcher is not None)

        return answer()

    def _get(self, ctx: RequestContext) -> Awaitable[Response]:
        media = render.media_type(ctx)
        name = ctx.info.name
        if name not in self.names():
            raise errors.not_found("componentstatus", "", name)

        async def answer() -> Response:
            return render.one(ctx, self._scope, await self._object(name), media=media)

        return answer()

    @staticmethod
    def names() -> list[str]:
        return sorted([*PORTS, STORE])

    async def _object(self, name: str) -> CachedObject:
        healthy, message = await (self._store_health() if name == STORE else self._health(PORTS[name]))
        condition = {"type": "Healthy", "status": "True" if healthy else "False", "message": message}
        tree: Tree = {
            "kind": "ComponentStatus",
            "apiVersion": "v1",
            "metadata": {"name": name},
            "conditions": [condition],
        }
        return self._scope.store.unsaved(tree)

    async def _store_health(self) -> tuple[bool, str]:
        try:
            await self._check()
        except Exception as error:
            return False, str(error)
        return True, "ok"

    async def _health(self, port: int) -> tuple[bool, str]:
        target = Target("127.0.0.1", port, self._upstreams.proxy_tls())
        headers: list[Header] = [(b"host", target.authority.encode())]
        try:
            async with asyncio.timeout(PATIENCE):
                found = await self._upstreams.ask(target, "/healthz", headers, limit=ANSWER_LIMIT)
        except (UpstreamError, TimeoutError) as error:
            text = str(error) or "context deadline exceeded"
            return False, f'Get "https://{target.authority}/healthz": {text}'
        return 200 <= found.status < 400, found.body.decode("utf-8", "replace")

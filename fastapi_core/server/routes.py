"""Routes of the server itself: health, metrics, and what the root index does not list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi_core.http.exchange import Answer, Response
from fastapi_core.obs.catalog import Metrics
from fastapi_core.obs.metrics import CONTENT_TYPE
from fastapi_core.request.routing import ANY, Route
from fastapi_core.server import debug
from fastapi_core.server.health import ALL

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext
    from fastapi_core.server.generic import GenericServer


def routes(server: GenericServer) -> list[Route]:
    """(pattern, method -> endpoint) for the router; method `*` serves every method."""
    found: list[Route] = []
    for name in ALL:
        found.append((f"/{name}", {ANY: server.health.root(name)}))
        for check in server.health.of(name):
            found.append((f"/{name}/{check.name}", {ANY: server.health.single(name)}))
    return found + metrics_routes(server.metrics, may_reset=server.config.profiling)


def unlisted(server: GenericServer) -> list[Route]:
    """Profiles and verbosity, the files of the log directory: served without being told of."""
    config = server.config
    found = debug.routes(server.stalls) if config.profiling else []
    if config.logs_directory:
        from fastapi_core.server import logfiles

        found += logfiles.routes(config.logs_directory)
    return found


def metrics_routes(metrics: Metrics, *, may_reset: bool = True) -> list[Route]:
    """`/metrics` (DELETE resets it, if it may) and `/metrics/slis`."""

    def show(ctx: RequestContext) -> Answer:
        return Response(200, [(b"Content-Type", CONTENT_TYPE)], metrics.registry.expose(), compress=True)

    def reset(ctx: RequestContext) -> Answer:
        metrics.registry.reset()
        return Response(200, [(b"Content-Type", b"text/plain; charset=utf-8")], b"metrics reset\n")

    def slis(ctx: RequestContext) -> Answer:
        return Response(200, [(b"Content-Type", CONTENT_TYPE)], metrics.slis())

    return [
        ("/metrics", {ANY: show, "DELETE": reset if may_reset else show}),
        ("/metrics/slis", {ANY: slis, "DELETE": reset if may_reset else slis}),
    ]

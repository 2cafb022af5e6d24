"""The kube-apiserver: built-in resources over an embedded store behind the generic server.

Everything is made here, once, from the options; nothing below reads flags.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fastapi_core import __version__
from fastapi_core.apis.resources import builtin
from fastapi_core.controlplane import bootstrap
from fastapi_core.controlplane.metrics import export_storage_metrics
from fastapi_core.controlplane.resources import Resources
from fastapi_core.discovery.documents import DiscoveryDocuments
from fastapi_core.discovery.endpoints import discovery_routes
from fastapi_core.discovery.index import index_routes
from fastapi_core.openapi.endpoints import openapi_routes
from fastapi_core.request.context import Endpoint
from fastapi_core.request.routing import RouteTable, service_roots
from fastapi_core.rest.scope import Scope
from fastapi_core.rest.watch import WatchServer
from fastapi_core.server import routes as server_routes
from fastapi_core.server.generic import GenericServer
from fastapi_core.storage.cacher.cacher import Cacher
from fastapi_core.storage.compactor import Compactor
from fastapi_core.storage.factory import make_storage

if TYPE_CHECKING:
    from fastapi_core.options.complete import Completed

__all__ = ["compose"]


async def compose(completed: Completed) -> GenericServer:
    """A server ready to start: storage open, caches loaded, routes made. Raises OSError when the store cannot open."""
    options = completed.options
    storage = make_storage(Path(completed.data_dir) if completed.data_dir else None)
    await storage.open()
    try:
        cacher = Cacher(storage)
        resources = Resources(builtin(), storage, cacher, event_ttl=options.storage.event_ttl)
        await cacher.open()
        compactor = Compactor(storage)
    except BaseException:
        await storage.close()
        raise
    table: list[RouteTable] = []
    server = GenericServer(completed.config, lambda: table[0])
    metrics = completed.config.metrics

    def observe(scope: Scope, events: int, size: int) -> None:
        metrics.watch_events(scope.definition, events, size)

    watches = WatchServer(float(options.generic.min_request_timeout), observe)
    server.add_health_check("etcd", storage.check)
    server.add_hook("start-system-namespaces-controller", lambda: bootstrap.system_namespaces(resources.namespaces))
    server.add_hook(
        "scheduling/bootstrap-system-priority-classes", lambda: bootstrap.priority_classes(resources.priority_classes)
    )
    server.add_hook("storage-compaction", compactor.start)
    server.on_shutdown(watches.shutdown, "watches")
    server.on_stop(storage.close, "storage")
    server.on_stop(cacher.close, "cacher")
    server.on_stop(compactor.stop, "compactor")
    export_storage_metrics(metrics, storage, cacher)
    routes = resources.routes(watches, completed.config.authorizer)
    routes += discovery_routes(DiscoveryDocuments(resources.definitions))
    routes += openapi_routes(resources.definitions)
    routes += server_routes.routes(server)
    routes += index_routes(routes, __version__)
    table.append(RouteTable(routes, service_roots(resources.definitions)))
    return server

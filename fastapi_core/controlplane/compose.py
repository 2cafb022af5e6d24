"""The kube-apiserver: built-in resources over an embedded store behind the generic server.

Everything is made here, once, from the options; nothing below reads flags.
"""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi_core import __version__
from fastapi_core._ext.router import Router
from fastapi_core.apis.allocation import ServiceAllocator
from fastapi_core.apis.resources import builtin
from fastapi_core.controlplane import authority, bootstrap, identity, outside, policies
from fastapi_core.controlplane.keeper import Keeper
from fastapi_core.controlplane.metrics import WatchMetrics, export_storage_metrics
from fastapi_core.controlplane.resources import Resources
from fastapi_core.discovery.documents import DiscoveryDocuments
from fastapi_core.discovery.endpoints import DiscoveryEndpoints
from fastapi_core.discovery.index import index_routes
from fastapi_core.openapi.documents import OpenAPIDocuments
from fastapi_core.openapi.endpoints import OpenAPIEndpoints
from fastapi_core.request.context import Endpoint
from fastapi_core.request.routing import ANY, Route
from fastapi_core.rest.watch import WatchServer
from fastapi_core.server import routes as server_routes
from fastapi_core.server.generic import GenericServer
from fastapi_core.server.health import READYZ
from fastapi_core.storage.cacher.cacher import Cacher
from fastapi_core.storage.compactor import Compactor
from fastapi_core.storage.factory import make_storage

if TYPE_CHECKING:
    from fastapi_core.options.complete import Completed
    from fastapi_core.options.groups import Network
    from fastapi_core.options.options import Options

#: How often the kubernetes service is looked after.
KUBERNETES_SECONDS = 10.0


async def compose(completed: Completed) -> GenericServer:
    """A server ready to start: storage open, caches loaded, routes made. Raises OSError when the store cannot open."""
    options = completed.options
    storage = make_storage(Path(completed.data_dir) if completed.data_dir else None)
    await storage.open()
    try:
        cacher = Cacher(storage)
        allocator, upstreams = _allocator(options.network), outside.upstreams(options.kubelet)
        resources = Resources(
            builtin(),
            storage,
            cacher,
            event_ttl=options.storage.event_ttl,
            allocator=allocator,
            issuer=outside.token_issuer(completed),
            upstreams=upstreams,
        )
        await cacher.open()
        await resources.services.learn()
        compactor = Compactor(storage)
    except BaseException:
        await storage.close()
        raise
    who = identity.authenticator(completed, resources)
    resources.backends.reviewer = (who.review, who.audiences)
    config = replace(
        completed.config,
        authenticator=who,
        authorizer=authority.authorizer(completed, resources),
    )
    routers: list[Router[Endpoint]] = []
    documents = DiscoveryDocuments(resources.definitions)
    discovery = DiscoveryEndpoints(documents, _yaml)
    server = GenericServer(config, lambda: routers[0], known_group=lambda group: group in documents.versions)
    metrics = config.metrics
    watches = WatchServer(float(options.generic.min_request_timeout), WatchMetrics(metrics))

    async def compaction() -> None:
        compactor.start()

    async def announce() -> None:
        """The port may be known only now; /api tells it to clients."""
        address = completed.url(server.port).removeprefix("https://")
        discovery.documents = DiscoveryDocuments(resources.definitions, server_address=address)

    server.add_health_check("etcd", storage.check)
    server.add_health_check("etcd-readiness", storage.check, (READYZ,))
    keepers = _bootstrap(server, resources, options)
    who.attach(server)
    server.add_hook("storage-compaction", compaction)
    server.add_hook("announce-server-address", announce)
    server.on_shutdown(watches.shutdown, "watches")
    server.on_shutdown(upstreams.shutdown, "proxied connections")
    for keeper in keepers:
        server.on_shutdown(keeper.stop, "bootstrap")
    server.on_stop(storage.close, "storage")
    server.on_stop(cacher.close, "cacher")
    server.on_stop(compactor.stop, "compactor")
    export_storage_metrics(metrics, storage, cacher, resources.definitions)
    routes = resources.routes(watches, config.authorizer)
    routes += discovery.routes()
    routes += server_routes.routes(server)
    routes += who.routes(server)
    routes += _openapi_routes(OpenAPIEndpoints(OpenAPIDocuments(resources.definitions)))
    routes += index_routes(routes, __version__)
    routers.append(Router(routes))
    return server


def _bootstrap(server: GenericServer, resources: Resources, options: Options) -> list[Keeper]:
    """Hooks that make the objects every server has; some are made again when somebody removes them."""
    namespaces = Keeper("system-namespaces", lambda: bootstrap.system_namespaces(resources.namespaces), 60.0)
    service = Keeper(
        "kubernetes-service", lambda: bootstrap.kubernetes_service(resources, options, server.port), KUBERNETES_SECONDS
    )
    networks = [str(network) for network in resources.services.allocator.networks]
    server.add_hook("start-system-namespaces-controller", namespaces.start)
    server.add_hook(
        "scheduling/bootstrap-system-priority-classes", lambda: bootstrap.priority_classes(resources.priority_classes)
    )
    if authority.uses_roles(options):
        server.add_hook("rbac/bootstrap-roles", lambda: policies.bootstrap(resources))
    server.add_hook("start-service-ip-repair-controllers", resources.services.repair)
    server.add_hook(
        "start-kubernetes-service-cidr-controller", lambda: bootstrap.service_range(resources.service_ranges, networks)
    )
    server.add_hook("bootstrap-controller", service.start)
    return [namespaces, service]


def _allocator(network: Network) -> ServiceAllocator:
    """Addresses out of the service ranges, node ports out of theirs."""
    first, last = network.service_node_port_range.split("-")
    ranges = [str(ip_network(text.strip(), strict=False)) for text in network.service_cluster_ip_range.split(",")]
    return ServiceAllocator(ranges, int(first), int(last))


def _openapi_routes(openapi: OpenAPIEndpoints) -> list[Route]:
    return [
        ("/openapi/v2", {ANY: openapi.v2}),
        ("/openapi/v3", {ANY: openapi.v3_index}),
        ("/openapi/v3/{document...}", {ANY: openapi.v3}),
    ]


def _yaml(tree: dict[str, Any]) -> bytes:
    from fastapi_core.codec import yaml

    return yaml.dump(tree)

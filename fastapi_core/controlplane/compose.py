"""The kube-apiserver: built-in resources over their store behind the generic server.

Everything is made here, once, from the options; nothing below reads flags.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastapi_core import __version__
from fastapi_core.apis.validation.policy import Policy
from fastapi_core.controlplane import authority, gates, hooks, identity
from fastapi_core.controlplane.aggregation import Aggregation
from fastapi_core.controlplane.checks import ORDER
from fastapi_core.controlplane.custom import ConversionWebhooks, CustomResources
from fastapi_core.controlplane.delegation import Delegation
from fastapi_core.controlplane.flowcontrol import debug_routes, flow_control
from fastapi_core.controlplane.opened import Opened, open_store
from fastapi_core.controlplane.policy_status import PolicyStatus
from fastapi_core.crd.surroundings import Surroundings
from fastapi_core.discovery.documents import DiscoveryDocuments
from fastapi_core.discovery.endpoints import DiscoveryEndpoints
from fastapi_core.discovery.index import VersionInfo, index_routes, listed_paths
from fastapi_core.discovery.live import LiveDocuments
from fastapi_core.later import later
from fastapi_core.openapi.endpoints import OpenAPIEndpoints
from fastapi_core.request.routing import Route
from fastapi_core.rest.watch import WatchServer
from fastapi_core.server import routes as server_routes
from fastapi_core.server import zpages
from fastapi_core.server.exports import WatchMetrics, export_storage_metrics, export_version_metrics
from fastapi_core.server.generic import GenericServer
from fastapi_core.storage.keys import FIRST_REVISION

if TYPE_CHECKING:
    from fastapi_core.openapi import documents as openapi_documents
    from fastapi_core.options.complete import Completed
    from fastapi_core.options.options import Options
    from fastapi_core.server.config import ServerConfig
else:
    openapi_documents = later("fastapi_core.openapi.documents")


async def compose(completed: Completed) -> GenericServer:
    """A server ready to start: storage open, caches loaded, routes made. Raises OSError when the store cannot open."""
    options = completed.options
    Policy.privileged = options.features.allow_privileged
    opened = await open_store(completed)
    resources = opened.resources
    flow = flow_control(options, resources, completed.config.metrics)
    who = identity.authenticator(completed, resources)
    resources.backends.reviewer = (who.review, who.audiences)
    config = replace(
        completed.config,
        authenticator=who,
        authorizer=authority.authorizer(completed, resources),
        flow=(flow.control, flow.estimator) if flow is not None else None,
    )
    delegation = Delegation()
    documents = LiveDocuments(DiscoveryDocuments(resources.definitions), resources.definitions)
    discovery = DiscoveryEndpoints(documents, _yaml)
    server = GenericServer(config, lambda: delegation.current, known_group=delegation.known_group)
    server.health.arrange(ORDER)
    metrics = config.metrics
    counted = WatchMetrics(metrics)
    # By the time a client is answered the server has written objects of its own: nobody has seen the first revision.
    timeout = float(options.generic.min_request_timeout)
    watches = WatchServer(timeout, counted, counted.terminated, gone=FIRST_REVISION)

    async def announce() -> None:
        """The port may be known only now; /api tells it to clients."""
        address = completed.url(server.port).removeprefix("https://")
        documents.rebase(DiscoveryDocuments(resources.definitions, server_address=address))

    server.add_hook("announce-server-address", announce)
    server.on_shutdown(lambda: watches.shutdown(config.watch_grace), "watches")
    opened.install(server)
    hooks.install(server, resources, options)
    who.attach(server)
    if flow is not None:
        flow.install(server)
    export_storage_metrics(metrics, opened.storage, opened.cacher, resources.definitions)
    resources.admission = gates.chain(options, resources, config.authorizer, metrics)
    server.on_stop(resources.admission.close, "admission")
    openapi = OpenAPIEndpoints(lambda: openapi_documents.OpenAPIDocuments(resources.definitions))
    routes = resources.routes(watches, config.authorizer)
    routes += [*discovery.routes(), *who.routes(server), *openapi.routes()]
    around = _surroundings(opened, config, watches, server)
    aggregation = Aggregation(completed, resources, delegation, server)
    aggregation.show(documents, discovery, openapi)
    custom = CustomResources(resources, around, delegation, discovery, documents, openapi, aggregation.registrations)
    custom.install(server)
    aggregation.install(server, documents.versions)
    PolicyStatus(resources, server).install(server)
    # Every check has its page: the pages come when all checks are there.
    routes = _with_pages(routes, server, options)
    if flow is not None:
        routes += debug_routes(flow.control)
    delegation.set_builtin(routes, documents.versions)
    server.afterwards(resources.prepare)
    return server


def _surroundings(opened: Opened, config: ServerConfig, watches: WatchServer, server: GenericServer) -> Surroundings:
    """What custom resources have in common with the built-in ones."""
    resources = opened.resources
    webhooks = ConversionWebhooks(resources.backends.services)
    server.on_stop(webhooks.close, "conversion webhooks")
    return Surroundings(
        opened.storage,
        opened.cacher,
        lambda: resources.admission,
        config.authorizer,
        watches,
        resources.backends,
        webhooks.converter,
    )


def _with_pages(routes: list[Route], server: GenericServer, options: Options) -> list[Route]:
    """The routes, those of the server itself, and the pages that list them all."""
    version = VersionInfo(product_version=__version__).tree()
    export_version_metrics(server.metrics, version)
    found = routes + server_routes.routes(server)
    found += _pages(list(found), options, version)
    found += index_routes(found, __version__)
    return found + server_routes.unlisted(server)


def _pages(routes: list[Route], options: Options, version: dict[str, str]) -> list[Route]:
    """/statusz and /flagz, in front of a root index that is about to list these routes and itself."""
    gates = options.gates
    return zpages.routes(
        lambda: [*listed_paths(routes), "/flagz", "/statusz", "/version"],
        options.shown,
        version,
        status=gates.enabled("ComponentStatusz"),
        flag_page=gates.enabled("ComponentFlagz"),
    )


def _yaml(tree: dict[str, Any]) -> bytes:
    from fastapi_core.codec import yaml

    return yaml.dump(tree)

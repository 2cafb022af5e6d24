"""Hooks that make the objects every server has; some are made again when somebody removes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi_core.controlplane import authority, bootstrap, flow_objects, policies
from fastapi_core.controlplane.keeper import Keeper
from fastapi_core.storage.factory import shared

if TYPE_CHECKING:
    from fastapi_core.controlplane.masters import Masters
    from fastapi_core.controlplane.resources import Resources
    from fastapi_core.options.options import Options
    from fastapi_core.server.generic import GenericServer

#: How often the kubernetes service is looked after.
KUBERNETES_SECONDS = 10.0

#: How often the claims of services are compared with the services, where several servers claim.
REPAIR_SECONDS = 180.0


def install(server: GenericServer, resources: Resources, options: Options) -> None:
    """In the order in which they run."""
    namespaces = Keeper("system-namespaces", lambda: bootstrap.system_namespaces(resources.namespaces), 60.0)
    masters = _masters(resources)
    service = Keeper(
        "kubernetes-service",
        lambda: bootstrap.kubernetes_service(resources, options, server.port, masters),
        KUBERNETES_SECONDS,
    )
    networks = [str(network) for network in resources.services.allocator.networks]
    flow = Keeper("flow-control-objects", lambda: flow_objects.ensure(resources.stores), flow_objects.KEEP_SECONDS)
    server.add_hook("start-system-namespaces-controller", namespaces.start)
    server.add_hook("priority-and-fairness-config-producer", flow.start)
    server.add_hook(
        "scheduling/bootstrap-system-priority-classes", lambda: bootstrap.priority_classes(resources.priority_classes)
    )
    if authority.uses_roles(options):
        server.add_hook("rbac/bootstrap-roles", lambda: policies.bootstrap(resources))
    keepers = [namespaces, service, flow]
    if masters is None:
        server.add_hook("start-service-ip-repair-controllers", resources.services.repair)
    else:
        claims = Keeper("service-claims", resources.services.repair, REPAIR_SECONDS)
        keepers.append(claims)
        server.add_hook("start-service-ip-repair-controllers", claims.start)
    server.add_hook(
        "start-kubernetes-service-cidr-controller", lambda: bootstrap.service_range(resources.service_ranges, networks)
    )
    server.add_hook("bootstrap-controller", service.start)
    for keeper in keepers:
        server.on_shutdown(keeper.stop, "bootstrap")
    if masters is not None:
        server.on_shutdown(masters.leave, "the key of this server")


def _masters(resources: Resources) -> Masters | None:
    if not shared(resources.storage):
        return None
    from fastapi_core.controlplane.masters import Masters

    return Masters(resources.storage)

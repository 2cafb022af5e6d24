"""Hooks that make the objects every server has; some are made again when somebody removes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi_core.controlplane import authority, bootstrap, flow_objects, policies
from fastapi_core.controlplane.keeper import Keeper

if TYPE_CHECKING:
    from fastapi_core.controlplane.resources import Resources
    from fastapi_core.options.options import Options
    from fastapi_core.server.generic import GenericServer

#: How often the kubernetes service is looked after.
KUBERNETES_SECONDS = 10.0


def install(server: GenericServer, resources: Resources, options: Options) -> None:
    """In the order in which they run."""
    namespaces = Keeper("system-namespaces", lambda: bootstrap.system_namespaces(resources.namespaces), 60.0)
    service = Keeper(
        "kubernetes-service", lambda: bootstrap.kubernetes_service(resources, options, server.port), KUBERNETES_SECONDS
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
    server.add_hook("start-service-ip-repair-controllers", resources.services.repair)
    server.add_hook(
        "start-kubernetes-service-cidr-controller", lambda: bootstrap.service_range(resources.service_ranges, networks)
    )
    server.add_hook("bootstrap-controller", service.start)
    for keeper in (namespaces, service, flow):
        server.on_shutdown(keeper.stop, "bootstrap")

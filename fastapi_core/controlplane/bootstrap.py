"""Objects that every server has: system namespaces, system priority classes, the service that is this server."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from fastapi_core.errors import APIError
from fastapi_core.later import later
from fastapi_core.obs import logs
from fastapi_core.registry.definition import Tree
from fastapi_core.registry.services import ENDPOINTS, SLICES
from fastapi_core.registry.store import ResourceStore, retrying

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.apis import conditions
    from fastapi_core.controlplane.masters import Masters
    from fastapi_core.controlplane.resources import Resources
    from fastapi_core.options.options import Options
    from fastapi_core.registry import lifecycle
    from fastapi_core.rest import defaulting
    from fastapi_core.schema import normalize
else:
    conditions = later("fastapi_core.apis.conditions")
    normalize = later("fastapi_core.schema.normalize")
    defaulting = later("fastapi_core.rest.defaulting")
    lifecycle = later("fastapi_core.registry.lifecycle")

log = logs.get("bootstrap")

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
PRIORITY_CLASSES = (
    ("system-node-critical", 2000001000, "Pods a node cannot do without."),
    ("system-cluster-critical", 2000000000, "Pods the cluster cannot do without; they may move to another node."),
)


async def ensure(store: ResourceStore, tree: Tree) -> None:
    """Create an object unless it is there."""
    definition = store.definition
    if store.cache.get(store.key(tree["metadata"].get("namespace", ""), tree["metadata"]["name"])) is not None:
        return
    full = normalize.normalize(
        definition.type, {"kind": definition.kind, "apiVersion": definition.group_version, **tree}
    ).tree
    defaulting.apply_defaults(definition, full)
    lifecycle.before_create(definition, full)
    try:
        await store.create(full)
    except APIError as error:
        if error.reason != "AlreadyExists":
            raise


async def system_namespaces(namespaces: ResourceStore) -> None:
    for name in NAMESPACES:
        await ensure(namespaces, {"metadata": {"name": name}})


async def priority_classes(classes: ResourceStore) -> None:
    for name, value, description in PRIORITY_CLASSES:
        await ensure(classes, {"metadata": {"name": name}, "value": value, "description": description})


async def settle(store: ResourceStore, tree: Tree, change: Callable[[Tree], Tree]) -> None:
    """Create an object, or bring the one that is there to where `change` leaves it alone."""
    await ensure(store, tree)
    metadata = tree["metadata"]

    async def attempt(current: CachedObject) -> None:
        now = current.tree()
        wanted = change(now)
        if wanted != now:
            await store.update(current, wanted)

    await retrying(store, metadata.get("namespace", ""), metadata["name"], attempt)


async def service_range(ranges: ResourceStore, networks: list[str]) -> None:
    """The ServiceCIDR of the flags. One with other ranges is somebody's decision and stays."""

    def ready(tree: Tree) -> Tree:
        if tree["spec"].get("cidrs") != networks:
            log.warning("ServiceCIDR kubernetes has other ranges than --service-cluster-ip-range")
            return tree
        status = tree.get("status") or {}
        if any(condition.get("type") == "Ready" for condition in status.get("conditions") or ()):
            return tree
        text = "Kubernetes default Service CIDR is ready"
        return {
            **tree,
            "status": {"conditions": conditions.with_condition(None, "Ready", True, reason="", message=text)},
        }

    await settle(ranges, {"metadata": {"name": "kubernetes"}, "spec": {"cidrs": networks}}, ready)


async def kubernetes_service(resources: Resources, options: Options, port: int, masters: Masters | None = None) -> None:
    """Service `kubernetes` in `default` with the first service address, and where it leads to: here, or to all `masters`."""
    services = resources.services
    family = services.allocator.default_family
    node_port = options.network.kubernetes_service_node_port
    entry = {"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}
    if node_port:
        entry["nodePort"] = node_port
    metadata = {
        "name": "kubernetes",
        "namespace": "default",
        "labels": {"component": "apiserver", "provider": "kubernetes"},
    }
    spec = {
        "type": "NodePort" if node_port else "ClusterIP",
        "clusterIP": services.allocator.first_address,
        "ipFamilies": [family],
        "ipFamilyPolicy": "SingleStack",
        "sessionAffinity": "None",
        "ports": [entry],
    }

    def reach(tree: Tree) -> Tree:
        """The ports clients are sent to, however the server was started last time."""
        ports = tree["spec"].get("ports") or []
        if [(p["port"], p.get("targetPort"), p.get("nodePort", 0)) for p in ports] == [(443, port, node_port)]:
            return tree
        return {**tree, "spec": {**tree["spec"], "type": spec["type"], "ports": [entry]}}

    address = "" if options.network.endpoint_reconciler_type == "none" else advertised(options)
    try:
        await settle(services, {"metadata": metadata, "spec": spec}, reach)
        if address:
            known = [address] if masters is None else await masters.addresses(address)
            await _endpoints(resources, address, known, port)
    except APIError as error:
        log.warning("Service kubernetes cannot be made", error=error.message)


async def _endpoints(resources: Resources, address: str, known: list[str], port: int) -> None:
    where = {"name": "https", "port": port, "protocol": "TCP"}
    version = ipaddress.ip_address(address).version
    family = "IPv4" if version == 4 else "IPv6"
    known = [one for one in known if ipaddress.ip_address(one).version == version]
    subsets = [{"addresses": [{"ip": one} for one in known], "ports": [where]}]
    endpoints = [{"addresses": [one], "conditions": {"ready": True}} for one in known]
    metadata = {"name": "kubernetes", "namespace": "default"}
    await settle(
        resources.stores[ENDPOINTS],
        {"metadata": {**metadata, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}, "subsets": subsets},
        lambda tree: tree if tree.get("subsets") == subsets else {**tree, "subsets": subsets},
    )
    await settle(
        resources.stores[SLICES],
        {
            "metadata": {**metadata, "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "addressType": family,
            "endpoints": endpoints,
            "ports": [where],
        },
        lambda tree: (
            tree
            if tree.get("endpoints") == endpoints and tree.get("ports") == [where]
            else {**tree, "endpoints": endpoints, "ports": [where]}
        ),
    )


def advertised(options: Options) -> str:
    """The address under which others reach this server; empty when it listens for this machine alone.

    That of the flags, else of the interface that a packet to somewhere else would leave by.
    """
    serving = options.serving
    for text in (serving.advertise_address, serving.bind_address):
        if text:
            address = ipaddress.ip_address(text)
            if address.is_loopback:
                return ""
            if not address.is_unspecified:
                return text
    # Connecting a datagram socket sends nothing; 192.0.2.0/24 is nobody's.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        found = probe.getsockname()[0]
    return "" if ipaddress.ip_address(found).is_loopback else str(found)

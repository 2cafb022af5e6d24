"""Rows of services, endpoints, ingresses and other network kinds."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi_core.registry.printers.cells import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    at,
    joined,
    labels,
    selector,
    top,
    value,
    wide,
)
from fastapi_core.registry.printers.engine import Cell, Column, Tree, since


def _balancer_addresses(tree: Tree) -> list[str]:
    """Addresses of the load balancer, each once, sorted."""
    ingress = at(tree, "status.loadBalancer.ingress") or ()
    return sorted({entry.get("ip") or entry.get("hostname") or "" for entry in ingress} - {""})


def cluster_ip(tree: Tree) -> Cell:
    addresses: list[str] = at(tree, "spec.clusterIPs") or []
    return addresses[0] if addresses else NONE


def external_ip(tree: Tree) -> Cell:
    kind = at(tree, "spec.type")
    external: list[str] = at(tree, "spec.externalIPs") or []
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(external) or NONE
    if kind == "LoadBalancer":
        return ",".join([*_balancer_addresses(tree), *external]) or "<pending>"
    if kind == "ExternalName":
        return at(tree, "spec.externalName") or ""
    return UNKNOWN


def service_ports(tree: Tree) -> Cell:
    shown = []
    for port in at(tree, "spec.ports") or ():
        node = port.get("nodePort") or 0
        text = f"{port.get('port', 0)}:{node}" if node > 0 else f"{port.get('port', 0)}"
        shown.append(f"{text}/{port.get('protocol', '')}")
    return ",".join(shown) or NONE


def _endpoint_texts(subsets: list[Tree]) -> Iterator[str]:
    for subset in subsets:
        addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        if not ports:
            yield from addresses
        for port in ports:
            for ip in addresses:
                host = f"[{ip}]" if ":" in ip else ip
                yield f"{host}:{port.get('port', 0)}"


def endpoints(tree: Tree) -> Cell:
    subsets: list[Tree] = tree.get("subsets") or []
    return top(_endpoint_texts(subsets)) if subsets else NONE


def slice_ports(tree: Tree) -> Cell:
    shown = []
    for port in tree.get("ports") or ():
        number, name = port.get("port"), port.get("name")
        shown.append(str(number) if number is not None else name if name is not None else "*")
    return top(shown) or UNSET


def slice_addresses(tree: Tree) -> Cell:
    return top(ip for endpoint in tree.get("endpoints") or () for ip in endpoint.get("addresses") or ()) or UNSET


def ingress_hosts(tree: Tree) -> Cell:
    rules: list[Tree] = at(tree, "spec.rules") or []
    shown: list[str] = []
    more = False
    for rule in rules:
        if len(shown) == 3:
            more = True
        elif rule.get("host"):
            shown.append(rule["host"])
    text = ",".join(shown) or "*"
    return f"{text} + {len(rules) - 3} more..." if more else text


def ingress_address(tree: Tree) -> Cell:
    return ",".join(_balancer_addresses(tree))


def ingress_ports(tree: Tree) -> Cell:
    return "80, 443" if at(tree, "spec.tls") else "80"


def default_name(*annotations: str) -> Column:
    """The Name column of a class; the default class is marked."""

    def cell(tree: Tree) -> Cell:
        marks = at(tree, "metadata.annotations") or {}
        suffix = " (default)" if any(marks.get(annotation) == "true" for annotation in annotations) else ""
        return (at(tree, "metadata.name") or "") + suffix

    return Column("Name", cell, format="name", description=NAME.description)


def class_parameters(tree: Tree) -> Cell:
    reference: dict[str, str] | None = at(tree, "spec.parameters")
    if not reference:
        return NONE
    group = reference.get("apiGroup")
    return reference.get("kind", "") + (f".{group}" if group else "") + f"/{reference.get('name', '')}"


def parent_reference(tree: Tree) -> Cell:
    parent: dict[str, str] | None = at(tree, "spec.parentRef")
    if not parent:
        return NONE
    group, namespace = parent.get("group"), parent.get("namespace")
    text = parent.get("resource", "") + (f".{group}" if group else "")
    return text.lower() + (f"/{namespace}" if namespace else "") + f"/{parent.get('name', '')}"


TABLES: dict[str, tuple[Column, ...]] = {
    "Service": (
        NAME,
        Column("Type", value("spec.type")),
        Column("Cluster-IP", cluster_ip),
        Column("External-IP", external_ip),
        Column("Port(s)", service_ports),
        AGE,
        wide("Selector", labels("spec.selector")),
    ),
    "Endpoints": (NAME, Column("Endpoints", endpoints), AGE),
    "EndpointSlice": (
        NAME,
        Column("AddressType", value("addressType")),
        Column("Ports", slice_ports),
        Column("Endpoints", slice_addresses),
        AGE,
    ),
    "Ingress": (
        NAME,
        Column("Class", value("spec.ingressClassName", NONE)),
        Column("Hosts", ingress_hosts),
        Column("Address", ingress_address),
        Column("Ports", ingress_ports),
        AGE,
    ),
    "IngressClass": (
        default_name("ingressclass.kubernetes.io/is-default-class"),
        Column("Controller", value("spec.controller")),
        Column("Parameters", class_parameters),
        AGE,
    ),
    "NetworkPolicy": (NAME, Column("Pod-Selector", selector("spec.podSelector")), AGE),
    "ServiceCIDR": (NAME, Column("CIDRs", joined("spec.cidrs")), AGE),
    "IPAddress": (NAME, Column("ParentRef", parent_reference)),
}


def address_row(tree: Tree) -> tuple[list[Cell], None]:
    """IP addresses print their age without declaring a column for it."""
    metadata: Tree = tree.get("metadata") or {}
    return [metadata.get("name") or "", parent_reference(tree), since(metadata.get("creationTimestamp"))], None

"""Services, endpoints and endpoint slices."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.apis.strategies.services import exposed, wants_health_port
from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.labelling import labels
from fastapi_core.apis.validation.rules import (
    CHECK,
    REQUIRED,
    Report,
    Tree,
    choice,
    each,
    immutable,
    number,
    struct,
    text,
    unique,
)
from fastapi_core.apis.validation.service_addresses import address_members, changed_addresses, headless

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_BALANCED: Final = "may only be used when `type` is 'LoadBalancer'"
_EXTERNAL_NAME: Final = "may not be set for ExternalName services"
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOL = choice("protocol", *PROTOCOLS, empty=REQUIRED)
_PORT = number("port", 1, 65535, absent=CHECK)
_APP = text("appProtocol", formats.qualified, empty=CHECK)
_SELECTOR = labels("selector")
_AFFINITY = choice("sessionAffinity", "ClientIP", "None", empty=REQUIRED)
_TYPE = choice("type", *_TYPES, empty=REQUIRED)
_TRAFFIC = choice("externalTrafficPolicy", "Cluster", "Local")
_INTERNAL = choice("internalTrafficPolicy", "Cluster", "Local", empty=CHECK)
_DISTRIBUTION = choice("trafficDistribution", "PreferClose", "PreferSameZone", "PreferSameNode", empty=CHECK)
_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_MODE: Final = "service.kubernetes.io/topology-mode"
_CLASS = text("loadBalancerClass", formats.qualified, empty=CHECK)


def _port(port: Tree, named: bool, seen: set[str], path: str, report: Report) -> None:
    name = port.get("name") or ""
    if named and not name:
        report.required(path + ".name")
    elif name:
        report.each_invalid(path + ".name", name, formats.label(name))
        if name in seen:
            report.duplicate(path + ".name", name)
        seen.add(name)
    _PORT(port, path, report)
    _PROTOCOL(port, path, report)
    target = port.get("targetPort") or 0
    report.each_invalid(path + ".targetPort", target, formats.port_or_name(target))
    _APP(port, path, report)


def _taken(ports: list[Tree], path: str, report: Report) -> None:
    """Node ports and ports are used once per protocol."""
    nodes: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol"), port.get("nodePort"))
        if key[1]:
            if key in nodes:
                report.duplicate(f"{path}[{index}].nodePort", key[1])
            nodes.add(key)
    used: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol"), port.get("port"))
        if key in used:
            empty = {"Name": "", "Protocol": key[0] or "", "AppProtocol": None, "Port": key[1] or 0}
            report.duplicate(f"{path}[{index}]", {**empty, "TargetPort": 0, "NodePort": 0})
        used.add(key)


def _external_ips(items: list[str], kept: Any, path: str, report: Report) -> None:
    for index, value in enumerate(items):
        problems = [] if value in kept else formats.ip(value)
        report.each_invalid(f"{path}[{index}]", value, problems or formats.special_address(value))


def _of_type(spec: Tree, kind: str, without: bool, report: Report) -> None:
    if kind in ("LoadBalancer", "NodePort") and without:
        report.invalid(".spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        for member in ("clusterIPs", "ipFamilies"):
            if spec.get(member):
                report.forbidden(f".spec.{member}", _EXTERNAL_NAME)
        if spec.get("ipFamilyPolicy") is not None:
            report.forbidden(".spec.ipFamilyPolicy", _EXTERNAL_NAME)
        name = (spec.get("externalName") or "").removesuffix(".")
        if name:
            report.each_invalid(".spec.externalName", name, formats.subdomain(name))
        else:
            report.required(".spec.externalName")


def _affinity(spec: Tree, report: Report) -> None:
    _AFFINITY(spec, ".spec", report)
    config = spec.get("sessionAffinityConfig")
    at = ".spec.sessionAffinityConfig"
    if spec.get("sessionAffinity") == "ClientIP":
        client = (config or {}).get("clientIP")
        seconds = (client or {}).get("timeoutSeconds")
        if seconds is None:
            report.required(at + ".clientIP", "when session affinity type is ClientIP")
        elif not 0 < seconds <= 86400:
            report.invalid(at + ".clientIP.timeoutSeconds", seconds, "must be greater than 0 and less than 86400")
    elif config is not None and spec.get("sessionAffinity") == "None":
        report.forbidden(at, "must not be set when session affinity is None")


def _balancer(tree: Tree, spec: Tree, before: Tree, kind: str, report: Report) -> None:
    ranges = spec.get("loadBalancerSourceRanges")
    if ranges:
        at = ".spec.LoadBalancerSourceRanges"
        if kind != "LoadBalancer":
            report.forbidden(at, _BALANCED)
        kept = {value.strip() for value in before.get("loadBalancerSourceRanges") or ()}
        for index, value in enumerate(map(str.strip, ranges)):
            if value not in kept:
                report.each_invalid(f"{at}[{index}]", value, formats.loose_cidr(value))
    else:
        _annotated(tree, spec, kind, report)
    allocate = spec.get("allocateLoadBalancerNodePorts")
    if kind == "LoadBalancer":
        if allocate is None:
            report.required(".allocateLoadBalancerNodePorts")
        _CLASS(spec, ".spec", report)
    else:
        if allocate is not None:
            report.forbidden(".spec.allocateLoadBalancerNodePorts", _BALANCED)
        if spec.get("loadBalancerClass") is not None:
            report.forbidden(".spec.loadBalancerClass", _BALANCED)


def _traffic(spec: Tree, kind: str, report: Report) -> None:
    policy = spec.get("externalTrafficPolicy")
    if exposed(spec):
        if not policy:
            report.required(".spec.externalTrafficPolicy")
        _TRAFFIC(spec, ".spec", report)
    elif policy:
        report.invalid(".spec.externalTrafficPolicy", policy, "may only be set for externally-accessible services")
    health = spec.get("healthCheckNodePort")
    if health:
        if kind != "LoadBalancer" or policy != "Local":
            text_ = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            report.invalid(".spec.healthCheckNodePort", health, text_)
        elif not 1 <= health <= 65535:
            report.invalid(".spec.healthCheckNodePort", health, formats.PORT)
    _INTERNAL(spec, ".spec", report)


def _annotated(tree: Tree, spec: Tree, kind: str, report: Report) -> None:
    """Ranges of sources in the annotation that came before the member."""
    annotations: Tree = (tree.get("metadata") or {}).get("annotations") or {}
    value = annotations.get(_RANGES)
    if value is None or spec.get("loadBalancerSourceRanges"):
        return
    at = f".metadata.annotations[{_RANGES}]"
    if kind != "LoadBalancer":
        report.forbidden(at, _BALANCED)
    old: Tree = ((report.old or {}).get("metadata") or {}).get("annotations") or {}
    if old.get(_RANGES) != value and value.strip():
        for item in value.strip().split(","):
            report.each_invalid(at, item.strip(), formats.loose_cidr(item.strip()))


def service(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    before: Tree = (report.old or {}).get("spec") or {}
    annotations: Tree = (tree.get("metadata") or {}).get("annotations") or {}
    if annotations.get(_MODE, annotations.get(_HINTS)) != annotations.get(_HINTS, annotations.get(_MODE)):
        text_ = f"must match annotations[{_HINTS}] when both are specified"
        report.invalid(f".metadata.annotations[{_MODE}]", annotations[_MODE], text_)
    kind, ports = spec.get("type") or "", spec.get("ports") or []
    without = headless(spec)
    if not ports and not without and kind != "ExternalName":
        report.required(".spec.ports")
    _of_type(spec, kind, without, report)
    seen: set[str] = set()
    for index, port in enumerate(ports):
        _port(port, len(ports) > 1, seen, f".spec.ports[{index}]", report)
    _SELECTOR(spec, ".spec", report)
    _affinity(spec, report)
    if kind != "ExternalName":
        address_members(spec, before, report)
    _external_ips(spec.get("externalIPs") or [], before.get("externalIPs") or (), ".spec.externalIPs", report)
    _TYPE(spec, ".spec", report)
    if kind == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                report.forbidden(f".spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")
    if len(ports) > 1:
        _taken(ports, ".spec.ports", report)
    _balancer(tree, spec, before, kind, report)
    _traffic(spec, kind, report)
    _DISTRIBUTION(spec, ".spec", report)


def service_update(tree: Tree, path: str, report: Report) -> None:
    """What an allocator gave stays while the type keeps it."""
    spec: Tree = tree.get("spec") or {}
    old: Tree = report.old or {}
    before: Tree = old.get("spec") or {}
    annotations = ((item.get("metadata") or {}).get("annotations") for item in (tree, old))
    if spec == before and next(annotations) == next(annotations):
        return
    kind, earlier = spec.get("type"), before.get("type")
    changed_addresses(spec, before, report)
    if kind == "LoadBalancer":
        if earlier == kind and before.get("loadBalancerClass") != spec.get("loadBalancerClass"):
            report.invalid(".spec.loadBalancerClass", spec.get("loadBalancerClass"), "may not change once set")
        _CLASS(spec, ".spec", report)
    elif spec.get("loadBalancerClass") is not None:
        report.forbidden(".spec.loadBalancerClass", _BALANCED)
    health = [item.get("healthCheckNodePort") for item in (before, spec) if wants_health_port(item)]
    if len(health) == 2 and health[0] != health[1]:
        report.forbidden(".spec.healthCheckNodePort", "field is immutable")
    service(tree, path, report)


def service_status(tree: Tree, path: str, report: Report) -> None:
    """Addresses that a load balancer got, if the service has one."""
    status: Tree = (tree.get("status") or {}).get("loadBalancer") or {}
    if status.get("ingress") and (tree.get("spec") or {}).get("type") != "LoadBalancer":
        report.forbidden(".status.loadBalancer.ingress", "may only be used when `spec.type` is 'LoadBalancer'")
    else:
        _ingress(tree, report, modes=True)


def balancer_status(tree: Tree, path: str, report: Report) -> None:
    """Ingresses have the same, without modes."""
    _ingress(tree, report, modes=False)


def _ingress(tree: Tree, report: Report, *, modes: bool) -> None:
    status: Tree = (tree.get("status") or {}).get("loadBalancer") or {}
    before: Tree = ((report.old or {}).get("status") or {}).get("loadBalancer") or {}
    kept = {item.get("ip") for item in before.get("ingress") or ()}
    for index, ingress in enumerate(status.get("ingress") or ()):
        at = f".status.loadBalancer.ingress[{index}]"
        address, host, mode = ingress.get("ip"), ingress.get("hostname"), ingress.get("ipMode")
        if address and address not in kept:
            report.each_invalid(at + ".ip", address, formats.ip(address))
        if modes:
            if mode is None:
                if address:
                    report.required(at + ".ipMode", "must be specified when `ip` is set")
            elif not address:
                report.forbidden(at + ".ipMode", "may not be specified when `ip` is not set")
            elif mode not in ("Proxy", "VIP"):
                report.unsupported(at + ".ipMode", mode, ("Proxy", "VIP"))
        if host:
            report.each_invalid(at + ".hostname", host, formats.subdomain(host))
            if formats.sloppy(host) is not None:
                report.invalid(at + ".hostname", host, "must be a DNS name, not an IP address")


# Endpoints


def _endpoint_address(item: Tree, path: str, report: Report) -> None:
    value, host, node = item.get("ip") or "", item.get("hostname"), item.get("nodeName")
    report.each_invalid(path + ".ip", value, formats.ip(value))
    if host:
        report.each_invalid(path + ".hostname", host, formats.label(host))
    if node is not None:
        report.each_invalid(path + ".nodeName", node, formats.subdomain(node))
    report.each_invalid(path + ".ip", value, formats.special_address(value))


_ENDPOINT_PORT = struct(text("name", formats.label), _PORT, _PROTOCOL, _APP)


def endpoints(tree: Tree, path: str, report: Report) -> None:
    for index, subset in enumerate(tree.get("subsets") or ()):
        at = f".subsets[{index}]"
        addresses, unready = subset.get("addresses") or (), subset.get("notReadyAddresses") or ()
        if not addresses and not unready:
            report.required(at, "must specify `addresses` or `notReadyAddresses`")
        for number_, item in enumerate(addresses):
            _endpoint_address(item, f"{at}.addresses[{number_}]", report)
        for number_, item in enumerate(unready):
            _endpoint_address(item, f"{at}.notReadyAddresses[{number_}]", report)
        ports = subset.get("ports") or ()
        for number_, port in enumerate(ports):
            if len(ports) > 1 and not port.get("name"):
                report.required(f"{at}.ports[{number_}].name")
            _ENDPOINT_PORT(port, f"{at}.ports[{number_}]", report)


# Endpoint slices

_FAMILIES: Final = ("FQDN", "IPv4", "IPv6")
_SLICE_TYPE = choice("addressType", *_FAMILIES, empty=REQUIRED)
_SLICE_PORT = struct(choice("protocol", *PROTOCOLS, empty=CHECK), _APP)
_SLICE_REST = struct(
    text("nodeName", formats.subdomain, empty=CHECK),
    text("hostname", formats.label, empty=CHECK),
)


def _slice_address(value: str, family: str, path: str, index: int, report: Report) -> None:
    at = f"{path}[{index}]"
    if family == "FQDN":
        _domain_name(value, at, report)
        return
    problems = formats.strict_ip(value) if family == "IPv6" else formats.ip(value)
    if problems:
        report.each_invalid(at, value, problems)
        return
    if (":" in value) != (family == "IPv6"):
        report.invalid(path, value, f"must be an {family} address")
    report.each_invalid(at, value, formats.special_address(value))


def _domain_name(value: str, path: str, report: Report) -> None:
    """A name of at least two labels; a dot at the end is not part of it."""
    if not value:
        report.required(path)
        return
    name = value.removesuffix(".")
    labels_ = name.split(".")
    bad = next((label for label in labels_ if formats.label(label)), None)
    if formats.subdomain(name):
        report.invalid(path, name, ",".join(formats.subdomain(name)))
    elif len(labels_) < 2:
        report.invalid(path, name, "should be a domain with at least two segments separated by dots")
    elif bad is not None:
        report.invalid(path, bad, ",".join(formats.label(bad)))


def _hints(hints: Tree, path: str, report: Report) -> None:
    seen: set[str] = set()
    zones, nodes = hints.get("forZones") or (), hints.get("forNodes") or ()
    if len(zones) > 8:
        report.too_many(path + ".forZones", len(zones), 8)
        return
    for index, zone in enumerate(zones):
        name = zone.get("name") or ""
        at = f"{path}.forZones[{index}].name"
        if name in seen:
            report.duplicate(at, name)
        seen.add(name)
        report.each_invalid(at, name, formats.label_value(name))
    if len(nodes) > 8:
        report.too_many(path + ".forNodes", len(nodes), 8)
        return
    names: set[str] = set()
    for index, node in enumerate(nodes):
        name = node.get("name") or ""
        at = f"{path}.forNodes[{index}].name"
        if name in names:
            report.duplicate(at, name)
        names.add(name)
        report.each_invalid(at, name, formats.subdomain(name))


def _slice_endpoint(item: Tree, family: str, path: str, report: Report) -> None:
    addresses = item.get("addresses") or ()
    at = path + ".addresses"
    if not addresses:
        report.required(at, "must contain at least 1 address")
    elif len(addresses) > 100:
        report.too_many(at, len(addresses), 100)
    if family in _FAMILIES:
        for index, value in enumerate(addresses):
            _slice_address(value, family, at, index, report)
    _SLICE_REST(item, path, report)
    if item.get("hints") is not None:
        _hints(item["hints"], path + ".hints", report)


def endpoint_slice(tree: Tree, path: str, report: Report) -> None:
    family = tree.get("addressType") or ""
    _SLICE_TYPE(tree, "", report)
    ports = tree.get("ports") or ()
    if len(ports) > 20000:
        report.too_many(".ports", len(ports), 20000)
    else:
        _slice_ports(ports, report)
    items = tree.get("endpoints") or ()
    if len(items) > 1000:
        report.too_many(".endpoints", len(items), 1000)
        return
    for index, item in enumerate(items):
        _slice_endpoint(item, family, f".endpoints[{index}]", report)


def _slice_ports(ports: Any, report: Report) -> None:
    names: set[str] = set()
    for index, port in enumerate(ports):
        name = port.get("name") or ""
        if name:
            report.each_invalid(f".ports[{index}].name", name, formats.label(name))
        if name in names:
            report.duplicate(f".ports[{index}].name", name)
        names.add(name)
        _SLICE_PORT(port, f".ports[{index}]", report)


_SLICE_FIXED = immutable("addressType")


def endpoint_slice_update(tree: Tree, path: str, report: Report) -> None:
    endpoint_slice(tree, path, report)
    if (tree.get("endpoints") or []) == ((report.old or {}).get("endpoints") or []):
        report[:] = [error for error in report if not error.field.startswith("endpoints")]
    _SLICE_FIXED(tree, "", report)


__all__ = [
    "balancer_status", "each", "endpoint_slice", "endpoint_slice_update", "endpoints", "service", "service_status",
    "service_update", "shown", "unique",
]  # fmt: skip

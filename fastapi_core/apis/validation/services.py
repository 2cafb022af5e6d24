"""Services, endpoints and endpoint slices."""

from __future__ import annotations

from typing import Any, Final

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
_TRAFFIC = choice("externalTrafficPolicy", "Cluster", "Local", empty=CHECK)
_INTERNAL = choice("internalTrafficPolicy", "Cluster", "Local", empty=CHECK)
_DISTRIBUTION = choice("trafficDistribution", "PreferClose", "PreferSameZone", "PreferSameNode", empty=CHECK)
_POLICY = choice("ipFamilyPolicy", "PreferDualStack", "RequireDualStack", "SingleStack", empty=CHECK)
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


def _external_ips(items: list[str], path: str, report: Report) -> None:
    for index, value in enumerate(items):
        problems = formats.ip(value) or formats.special_address(value)
        report.each_invalid(f"{path}[{index}]", value, problems)


def _of_type(spec: Tree, kind: str, headless: bool, report: Report) -> None:
    ports = spec.get("ports") or ()
    if kind == "LoadBalancer":
        for index, port in enumerate(ports):
            if port.get("port") == 10250:
                text_ = "may not expose port 10250 externally since it is used by kubelet"
                report.invalid(f".spec.ports[{index}]", 10250, text_)
    if kind in ("LoadBalancer", "NodePort") and headless:
        report.invalid(".spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        if spec.get("clusterIPs") or spec.get("clusterIP"):
            report.forbidden(".spec.clusterIPs", _EXTERNAL_NAME)
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


def _balancer(spec: Tree, kind: str, report: Report) -> None:
    ranges = spec.get("loadBalancerSourceRanges")
    if ranges:
        at = ".spec.LoadBalancerSourceRanges"
        if kind != "LoadBalancer":
            report.forbidden(at, _BALANCED)
        for index, value in enumerate(ranges):
            report.each_invalid(f"{at}[{index}]", value, formats.loose_cidr(value.strip()))
    allocate = spec.get("allocateLoadBalancerNodePorts")
    if kind == "LoadBalancer":
        if allocate is None:
            report.required(".spec.allocateLoadBalancerNodePorts")
        _CLASS(spec, ".spec", report)
    else:
        if allocate is not None:
            report.forbidden(".spec.allocateLoadBalancerNodePorts", _BALANCED)
        if spec.get("loadBalancerClass") is not None:
            report.forbidden(".spec.loadBalancerClass", _BALANCED)


def _traffic(spec: Tree, kind: str, report: Report) -> None:
    policy = spec.get("externalTrafficPolicy")
    external = kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))
    if policy:
        if external:
            _TRAFFIC(spec, ".spec", report)
        else:
            text_ = "may only be set for externally-accessible services"
            report.invalid(".spec.externalTrafficPolicy", policy, text_)
    health = spec.get("healthCheckNodePort")
    if health:
        if kind != "LoadBalancer" or policy != "Local":
            text_ = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            report.invalid(".spec.healthCheckNodePort", health, text_)
        elif not 1 <= health <= 65535:
            report.invalid(".spec.healthCheckNodePort", health, formats.PORT)
    _INTERNAL(spec, ".spec", report)


def _families(spec: Tree, kind: str, report: Report) -> None:
    families, ips, policy = spec.get("ipFamilies") or [], spec.get("clusterIPs") or [], spec.get("ipFamilyPolicy")
    first = spec.get("clusterIP") or ""
    if kind == "ExternalName":
        if families:
            report.forbidden(".spec.ipFamilies", _EXTERNAL_NAME)
        if policy is not None:
            report.forbidden(".spec.ipFamilyPolicy", _EXTERNAL_NAME)
        return
    at = ".spec.clusterIPs"
    if ips and not first:
        report.invalid(at, ips, "must be empty when `clusterIP` is not specified")
    elif ips and first != ips[0]:
        report.invalid(at, ips, "first value must match `clusterIP`")
    elif first and not ips:
        ips = [first]
    if len(families) > 2:
        report.invalid(".spec.ipFamilies", families, "may only hold up to 2 values")
    for index, family in enumerate(families):
        if family not in ("IPv4", "IPv6"):
            report.unsupported(f".spec.ipFamilies[{index}]", family, ("IPv4", "IPv6"))
        elif families.index(family) < index:
            report.duplicate(f".spec.ipFamilies[{index}]", family)
    _POLICY(spec, ".spec", report)
    _cluster_ips(ips, at, report)


def _cluster_ips(ips: list[str], path: str, report: Report) -> None:
    if len(ips) > 2:
        report.invalid(path, ips, "may only hold up to 2 values")
    for index, value in enumerate(ips):
        if value == "None":
            if index or len(ips) > 1:
                report.invalid(f"{path}[{index}]", value, "'None' must be the first and only value")
            return
        report.each_invalid(f"{path}[{index}]", value, formats.ip(value))
    if len(ips) == 2 and len({":" in value for value in ips}) == 1 and not any(map(formats.ip, ips)):
        report.invalid(path, ips, "may specify no more than one IP for each IP family")


def service(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    kind, ports = spec.get("type") or "", spec.get("ports") or []
    headless = spec.get("clusterIP") == "None"
    if not ports and not headless and kind != "ExternalName":
        report.required(".spec.ports")
    _of_type(spec, kind, headless, report)
    seen: set[str] = set()
    for index, port in enumerate(ports):
        _port(port, len(ports) > 1, seen, f".spec.ports[{index}]", report)
    _SELECTOR(spec, ".spec", report)
    _affinity(spec, report)
    _external_ips(spec.get("externalIPs") or [], ".spec.externalIPs", report)
    _TYPE(spec, ".spec", report)
    if len(ports) > 1:
        _taken(ports, ".spec.ports", report)
    _balancer(spec, kind, report)
    _traffic(spec, kind, report)
    _families(spec, kind, report)
    _DISTRIBUTION(spec, ".spec", report)


def service_update(tree: Tree, path: str, report: Report) -> None:
    """What an allocator gave stays while the type keeps it."""
    spec: Tree = tree.get("spec") or {}
    before: Tree = (report.old or {}).get("spec") or {}
    if spec == before:
        return
    kind, earlier = spec.get("type"), before.get("type")
    if earlier != "ExternalName" and kind != "ExternalName":
        old_ip, new_ip = before.get("clusterIP") or "", spec.get("clusterIP") or ""
        if old_ip and new_ip != old_ip and (new_ip == "None" or not formats.ip(new_ip)):
            report.invalid(".spec.clusterIPs[0]", spec.get("clusterIPs") or [new_ip], "may not change once set")
    if earlier == kind == "LoadBalancer":
        if before.get("loadBalancerClass") != spec.get("loadBalancerClass"):
            value = spec.get("loadBalancerClass")
            report.invalid(".spec.loadBalancerClass", value, "may not change once set")
        old_port, new_port = before.get("healthCheckNodePort"), spec.get("healthCheckNodePort")
        if (
            old_port
            and new_port != old_port
            and before.get("externalTrafficPolicy") == spec.get("externalTrafficPolicy") == "Local"
        ):
            report.forbidden(".spec.healthCheckNodePort", "field is immutable")
    service(tree, path, report)


def balancer_status(tree: Tree, path: str, report: Report) -> None:
    """Addresses that a load balancer got; ingresses have the same."""
    status: Tree = (tree.get("status") or {}).get("loadBalancer") or {}
    for index, ingress in enumerate(status.get("ingress") or ()):
        at = f".status.loadBalancer.ingress[{index}]"
        address, host = ingress.get("ip"), ingress.get("hostname")
        if address:
            report.each_invalid(at + ".ip", address, formats.ip(address))
        mode = ingress.get("ipMode")
        if mode is not None and mode not in ("VIP", "Proxy"):
            report.unsupported(at + ".ipMode", mode, ("VIP", "Proxy"))
        if host:
            report.each_invalid(at + ".hostname", host, formats.subdomain(host))
            if not formats.ip(host):
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
_SLICE_PORT = struct(text("name", formats.label), choice("protocol", *PROTOCOLS, empty=CHECK), _APP)
_SLICE_REST = struct(
    text("nodeName", formats.subdomain, empty=CHECK),
    text("hostname", formats.label, empty=CHECK),
)


def _slice_address(value: str, family: str, path: str, index: int, report: Report) -> None:
    at = f"{path}[{index}]"
    if family == "FQDN":
        problems = formats.subdomain(value)
        if not problems and "." not in value.strip("."):
            problems = ["should be a domain with at least two segments separated by dots"]
        report.each_invalid(at, value, problems)
        return
    problems = formats.ip(value)
    if problems:
        report.each_invalid(at, value, problems)
        return
    if (":" in value) != (family == "IPv6"):
        report.invalid(path, value, f"must be an {family} address")
    report.each_invalid(at, value, formats.special_address(value))


def _hints(hints: Tree, path: str, report: Report) -> None:
    seen: set[str] = set()
    zones, nodes = hints.get("forZones") or (), hints.get("forNodes") or ()
    if len(zones) > 8:
        report.too_many(path + ".forZones", len(zones), 8)
    else:
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
    items = tree.get("endpoints") or ()
    if len(items) > 1000:
        report.too_many(".endpoints", len(items), 1000)
    else:
        for index, item in enumerate(items):
            _slice_endpoint(item, family, f".endpoints[{index}]", report)
    ports = tree.get("ports") or ()
    if len(ports) > 20000:
        report.too_many(".ports", len(ports), 20000)
        return
    names: set[str] = set()
    for index, port in enumerate(ports):
        name = port.get("name") or ""
        if name in names:
            report.duplicate(f".ports[{index}].name", name)
        names.add(name)
        _SLICE_PORT(port, f".ports[{index}]", report)


_SLICE_FIXED = immutable("addressType")


def endpoint_slice_update(tree: Tree, path: str, report: Report) -> None:
    endpoint_slice(tree, path, report)
    _SLICE_FIXED(tree, "", report)


__all__ = [
    "balancer_status", "each", "endpoint_slice", "endpoint_slice_update", "endpoints", "service", "service_update",
    "shown", "unique",
]  # fmt: skip

"""Ingresses, network policies, service address ranges."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.labelling import selector
from fastapi_core.apis.validation.rules import (
    CHECK,
    IMMUTABLE,
    REQUIRED,
    Report,
    Tree,
    choice,
    required,
    struct,
    text,
)
from fastapi_core.meta import names

_CLASS = text("ingressClassName", formats.subdomain, empty=CHECK)
_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_SECRET = text("secretName", formats.subdomain)
_BAD_PARTS: Final = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDS: Final = ("/..", "/.")


def segment(value: str) -> list[str]:
    """A name that stands in a path."""
    return names.path_segment(value)


def _typed_reference(tree: Tree, path: str, report: Report) -> None:
    group = tree.get("apiGroup")
    if group is not None:
        report.each_invalid(path + ".apiGroup", group, formats.subdomain(group))
    for name in ("kind", "name"):
        value = tree.get(name)
        if not value:
            report.required(f"{path}.{name}")
        else:
            report.each_invalid(f"{path}.{name}", value, segment(value))


def _backend(tree: Tree, path: str, report: Report) -> None:
    resource, service = tree.get("resource"), tree.get("service")
    if resource is not None and service is not None:
        report.invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        _typed_reference(resource, path + ".resource", report)
    elif service is not None:
        name, port = service.get("name") or "", service.get("port") or {}
        if not name:
            report.required(path + ".service.name")
        else:
            report.each_invalid(path + ".service.name", name, formats.label(name))
        port_name, port_number = port.get("name"), port.get("number")
        if port_name and port_number:
            report.invalid(path, "", "cannot set both port name & port number")
        elif port_name:
            report.each_invalid(path + ".service.port.name", port_name, formats.port_name(port_name))
        elif port_number:
            report.each_invalid(path + ".service.port.number", port_number, formats.port(port_number))
        else:
            report.required(path, "port name or number is required")
    else:
        report.invalid(path, "", "resource or service backend is required")


def _path(item: Tree, path: str, report: Report) -> None:
    kind, value = item.get("pathType"), item.get("path") or ""
    at = path + ".path"
    if kind is None:
        report.required(path + ".pathType", "pathType must be specified")
    elif kind in ("Exact", "Prefix"):
        if not value.startswith("/"):
            report.invalid(at, value, "must be an absolute path")
        for part in _BAD_PARTS:
            if part in value:
                report.invalid(at, value, f"must not contain '{part}'")
        for end in _BAD_ENDS:
            if value.endswith(end):
                report.invalid(at, value, f"cannot end with '{end}'")
    elif kind == "ImplementationSpecific":
        if value and not value.startswith("/"):
            report.invalid(at, value, "must be an absolute path")
    else:
        report.unsupported(path + ".pathType", kind, _PATH_TYPES)
    if kind is not None:
        _backend(item.get("backend") or {}, path + ".backend", report)


def _host(host: str, path: str, report: Report) -> None:
    if formats.sloppy(host) is not None:
        report.invalid(path, host, "must be a DNS name, not an IP address")
    if "*" in host:
        report.each_invalid(path, host, formats.wildcard(host))
    else:
        report.each_invalid(path, host, formats.subdomain(host))


def ingress(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    rules, default = spec.get("rules") or (), spec.get("defaultBackend")
    if not rules and default is None:
        text_ = "either `defaultBackend` or `rules` must be specified"
        report.invalid(".spec", spec.get("rules"), text_)
    if default is not None:
        _backend(default, ".spec.defaultBackend", report)
    for index, rule in enumerate(rules):
        at = f".spec.rules[{index}]"
        if rule.get("host"):
            _host(rule["host"], at + ".host", report)
        http = rule.get("http")
        if http is None:
            continue
        paths = http.get("paths") or ()
        if not paths:
            report.required(at + ".http.paths")
        for number, item in enumerate(paths):
            _path(item, f"{at}.http.paths[{number}]", report)
    for index, entry in enumerate(spec.get("tls") or ()):
        at = f".spec.tls[{index}]"
        for number, host in enumerate(entry.get("hosts") or ()):
            check = formats.wildcard if "*" in host else formats.subdomain
            report.each_invalid(f"{at}.hosts[{number}]", host, check(host))
        _SECRET(entry, at, report)
    _CLASS(spec, ".spec", report)
    annotation = "kubernetes.io/ingress.class"
    if report.old is None and spec.get("ingressClassName") is not None:
        value = ((tree.get("metadata") or {}).get("annotations") or {}).get(annotation)
        if value is not None and value != spec["ingressClassName"]:
            text_ = "must match `ingressClassName` when both are specified"
            report.invalid(".annotations." + annotation, value, text_)


def _parameters(tree: Tree, path: str, report: Report) -> None:
    _typed_reference(tree, path, report)
    scope, namespace = tree.get("scope"), tree.get("namespace")
    at = path + ".namespace"
    if scope is None:
        report.required(path + ".scope")
    elif scope not in ("Cluster", "Namespace"):
        report.unsupported(path + ".scope", scope, ("Cluster", "Namespace"))
    elif scope == "Namespace":
        if namespace is None:
            report.required(at, "`parameters.scope` is set to 'Namespace'")
        else:
            report.each_invalid(at, namespace, formats.label(namespace))
    elif namespace is not None:
        report.forbidden(at, "`parameters.scope` is set to 'Cluster'")


def ingress_class(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    controller = spec.get("controller") or ""
    if len(controller) > 250:
        report.too_long(".spec.controller", 250)
    if controller:
        report.each_invalid(".spec.controller", controller, formats.domain_path(controller))
    else:
        report.required(".spec.controller")
    if spec.get("parameters") is not None:
        _parameters(spec["parameters"], ".spec.parameters", report)


def ingress_class_update(tree: Tree, path: str, report: Report) -> None:
    controller = (tree.get("spec") or {}).get("controller") or ""
    if controller != (((report.old or {}).get("spec") or {}).get("controller") or ""):
        report.invalid(".spec.controller", controller, IMMUTABLE)
    ingress_class(tree, path, report)


# Network policies

_POLICY_PROTOCOL = choice("protocol", "TCP", "UDP", "SCTP", empty=CHECK)


def _policy_port(item: Tree, path: str, report: Report) -> None:
    _POLICY_PROTOCOL(item, path, report)
    port, end = item.get("port"), item.get("endPort")
    if port is not None:
        if isinstance(port, str):
            if end is not None:
                report.invalid(path + ".endPort", end, "may not be specified when `port` is non-numeric")
            report.each_invalid(path + ".port", port, formats.port_name(port))
        else:
            report.each_invalid(path + ".port", port, formats.port(port))
            if end is not None:
                if end < port:
                    report.invalid(path + ".endPort", port, "must be greater than or equal to `port`")
                report.each_invalid(path + ".endPort", end, formats.port(end))
    elif end is not None:
        report.invalid(path + ".endPort", end, "may not be specified when `port` is not specified")


def _block(block: Tree, path: str, report: Report) -> None:
    value = block.get("cidr") or ""
    if not value:
        report.required(path + ".cidr")
        return
    problems = formats.loose_cidr(value)
    report.each_invalid(path + ".cidr", value, problems)
    if problems:
        return
    whole: Any = formats.network(value)
    for index, item in enumerate(block.get("except") or ()):
        at = f"{path}.except[{index}]"
        wrong = formats.loose_cidr(item)
        report.each_invalid(at, item, wrong)
        if wrong:
            continue
        part: Any = formats.network(item)
        if part.version != whole.version or part.prefixlen <= whole.prefixlen or not part.subnet_of(whole):
            report.invalid(at, item, "must be a strict subset of `cidr`")


def _peer(peer: Tree, path: str, report: Report) -> None:
    count = 0
    for name in ("podSelector", "namespaceSelector"):
        if peer.get(name) is not None:
            count += 1
            selector(peer[name], f"{path}.{name}", report)
    block = peer.get("ipBlock")
    if block is not None:
        _block(block, path + ".ipBlock", report)
    if count == 0 and block is None:
        report.required(path, "must specify a peer")
    elif count and block is not None:
        report.forbidden(path, "may not specify both ipBlock and another peer")


def network_policy(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    selector(spec.get("podSelector") or {}, ".spec.podSelector", report)
    for side, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(side) or ()):
            at = f".spec.{side}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                _policy_port(port, f"{at}.ports[{number}]", report)
            for number, peer in enumerate(rule.get(peers) or ()):
                _peer(peer, f"{at}.{peers}[{number}]", report)
    kinds = spec.get("policyTypes") or []
    if len(kinds) > 2:
        report.invalid(".spec.policyTypes", kinds, "may not specify more than two policyTypes")
        return
    for index, kind in enumerate(kinds):
        if kind not in ("Ingress", "Egress"):
            report.unsupported(f".spec.policyTypes[{index}]", kind, ("Ingress", "Egress"))


# Address ranges


def service_cidr(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    ranges = spec.get("cidrs") or []
    at = ".spec.cidrs"
    if not ranges:
        report.required(at, "at least one CIDR required")
        return
    if len(ranges) > 2:
        report.invalid(at, shown("networking.k8s.io/v1.ServiceCIDRSpec", spec), "may only hold up to 2 values")
        return
    for index, value in enumerate(ranges):
        report.each_invalid(f"{at}[{index}]", value, formats.cidr(value))
    if len(ranges) == 2:
        nets = [formats.network(value) for value in ranges]
        if None not in nets and len({net.version for net in nets if net}) == 1:
            text_ = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
            report.invalid(at, shown("networking.k8s.io/v1.ServiceCIDRSpec", spec), text_)


def service_cidr_update(tree: Tree, path: str, report: Report) -> None:
    """A second family may be added; nothing else changes."""
    ranges = (tree.get("spec") or {}).get("cidrs") or []
    before = ((report.old or {}).get("spec") or {}).get("cidrs") or []
    if len(ranges) < len(before):
        report.invalid(".spec.cidrs", ranges, IMMUTABLE)
        return
    for index, value in enumerate(before):
        if ranges[index] != value:
            report.invalid(f".spec.cidrs[{index}]", ranges[index], IMMUTABLE)
    if len(ranges) > len(before):
        service_cidr(tree, path, report)


_PARENT = struct(
    text("group", formats.subdomain),
    text("resource", segment, empty=REQUIRED),
    text("name", segment, empty=REQUIRED),
    text("namespace", segment),
)


def ip_address(tree: Tree, path: str, report: Report) -> None:
    parent = (tree.get("spec") or {}).get("parentRef")
    if parent is None:
        report.required(".spec.parentRef")
    else:
        _PARENT(parent, ".spec.parentRef", report)


def ip_address_update(tree: Tree, path: str, report: Report) -> None:
    ip_address(tree, path, report)
    parent = (tree.get("spec") or {}).get("parentRef")
    if parent != ((report.old or {}).get("spec") or {}).get("parentRef"):
        value = None if parent is None else shown("networking.k8s.io/v1.ParentReference", parent)
        report.invalid(".spec.parentRef", value, IMMUTABLE)


__all__ = [
    "ingress", "ingress_class", "ingress_class_update", "ip_address", "ip_address_update", "network_policy",
    "required", "segment", "service_cidr", "service_cidr_update",
]  # fmt: skip

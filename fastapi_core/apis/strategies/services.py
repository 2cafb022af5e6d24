"""Services: address families, what an update keeps of earlier allocations, and how the address members agree.

Families, addresses and node ports themselves are given out by `apis/allocation.py`.
"""

from __future__ import annotations

from ipaddress import ip_address

from fastapi_core.apis.strategies.basics import Tree, keep
from fastapi_core.errors import FieldError
from fastapi_core.meta import names

HEADLESS = "None"
_ADDRESS_MEMBERS = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_NOT_AN_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def has_address(spec: Tree) -> bool:
    """Whether services of this type have cluster addresses at all."""
    return (spec.get("type") or "ClusterIP") != "ExternalName"


def wants_node_ports(spec: Tree) -> bool:
    kind = spec.get("type")
    return kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False)


def wants_health_port(spec: Tree) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def prepare(new: Tree, old: Tree | None) -> None:
    """Keep what an update leaves out, drop what its type no longer has."""
    spec: Tree = new.setdefault("spec", {})
    before: Tree = (old or {}).get("spec") or {}
    if old is not None:
        stated = spec.get("clusterIP")
        if stated and stated != before.get("clusterIP") and spec.get("clusterIPs") in (None, before.get("clusterIPs")):
            spec["clusterIPs"] = [stated]
        _keep_allocated(spec, before)
        _drop_unneeded(spec, before)
    if not has_address(spec):
        return
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]


def _keep_allocated(spec: Tree, before: Tree) -> None:
    if has_address(spec) and has_address(before):
        for member in _ADDRESS_MEMBERS:
            stated = spec.get(member)
            if not stated and before.get(member) and (stated is None or member != "ipFamilyPolicy"):
                spec[member] = before[member]
    if wants_node_ports(spec) and wants_node_ports(before):
        known = {port.get("name") or "": port.get("nodePort") for port in before.get("ports") or ()}
        stated = {port.get("nodePort") for port in spec.get("ports") or ()}
        for port in spec.get("ports") or ():
            earlier = known.get(port.get("name") or "")
            if not port.get("nodePort") and earlier and earlier not in stated:
                port["nodePort"] = earlier
    if wants_health_port(spec) and wants_health_port(before) and not spec.get("healthCheckNodePort"):
        keep(spec, before, "healthCheckNodePort")


def _drop_unneeded(spec: Tree, before: Tree) -> None:
    """What only the old type had goes, unless the user has just changed it (then validation says so)."""
    if has_address(before) and not has_address(spec):
        for member in _ADDRESS_MEMBERS:
            if spec.get(member) == before.get(member):
                spec.pop(member, None)
    if wants_node_ports(before) and not wants_node_ports(spec):
        known = {port.get("nodePort") for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            if port.get("nodePort") in known:
                port.pop("nodePort", None)
    if wants_health_port(before) and not wants_health_port(spec):
        spec.pop("healthCheckNodePort", None)
    kind = spec.get("type")
    unneeded = []
    if not has_address(spec):
        unneeded.append("internalTrafficPolicy")
    if kind != "LoadBalancer":
        unneeded += ["allocateLoadBalancerNodePorts", "loadBalancerClass"]
    if kind not in ("NodePort", "LoadBalancer") and not (kind == "ClusterIP" and spec.get("externalIPs")):
        unneeded.append("externalTrafficPolicy")
    for member in unneeded:
        if spec.get(member) == before.get(member):
            spec.pop(member, None)


def validate(new: Tree, old: Tree | None) -> list[FieldError]:
    """How type, external name and addresses agree."""
    spec: Tree = new.get("spec") or {}
    addresses: list[str] = spec.get("clusterIPs") or []
    if not has_address(spec):
        return _external(spec, addresses)
    first = spec.get("clusterIP") or ""
    if addresses and not first:
        return [
            FieldError("Invalid value", "spec.clusterIPs", "must be empty when `clusterIP` is not specified", addresses)
        ]
    if addresses and addresses[0] != first:
        return [FieldError("Invalid value", "spec.clusterIPs", "first value must match `clusterIP`", addresses)]
    errors = [
        FieldError("Invalid value", f"spec.clusterIPs[{index}]", _NOT_AN_ADDRESS, address)
        for index, address in enumerate(addresses)
        if address != HEADLESS and not _is_address(address)
    ]
    before: Tree = (old or {}).get("spec") or {}
    if before and has_address(before) and (before.get("clusterIPs") or [first])[0] != first:
        errors.append(FieldError("Invalid value", "spec.clusterIPs[0]", "may not change once set", addresses))
    return errors


def _external(spec: Tree, addresses: list[str]) -> list[FieldError]:
    errors = []
    forbidden = "may not be set for ExternalName services"
    errors += [FieldError("Forbidden", "spec.clusterIPs", forbidden)] if addresses or spec.get("clusterIP") else []
    errors += [FieldError("Forbidden", "spec.ipFamilies", forbidden)] if spec.get("ipFamilies") else []
    name = spec.get("externalName")
    if not name:
        errors.append(FieldError("Required value", "spec.externalName"))
    else:
        texts = names.dns1123_subdomain(name.removesuffix("."))
        errors += [FieldError("Invalid value", "spec.externalName", text, name) for text in texts]
    return errors


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def warnings(new: Tree, old: Tree | None) -> list[str]:
    spec: Tree = new.get("spec") or {}
    headless = spec.get("clusterIP") == HEADLESS and (spec.get("type") or "ClusterIP") == "ClusterIP"
    if headless and (spec.get("sessionAffinity") or "None") != "None":
        return ["spec.SessionAffinity is ignored for headless services"]
    return []

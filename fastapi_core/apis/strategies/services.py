"""Services: address families, what an update keeps of earlier allocations, and how the address members agree.

Families, addresses and node ports themselves are given out by `apis/allocation.py`.
"""

from __future__ import annotations

from fastapi_core.apis.strategies.basics import Tree, keep

HEADLESS = "None"
_ADDRESS_MEMBERS = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


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
        if spec.get("ports"):
            # A patch shares with the old object what it leaves alone; ports are given numbers here and by the allocator.
            spec["ports"] = [dict(port) for port in spec["ports"]]
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

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


def wants_ports(spec: Tree) -> bool:
    """Whether services of this type may have node ports."""
    return spec.get("type") in ("NodePort", "LoadBalancer")


def begin(new: Tree, old: Tree | None) -> None:
    """What comes before allocation: keep what an update leaves out, bring the two members for addresses together."""
    spec: Tree = new.setdefault("spec", {})
    if old is None:
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        return
    before: Tree = old.get("spec") or {}
    if spec.get("ports"):
        # A patch shares with the old object what it leaves alone; ports are given numbers here and by the allocator.
        spec["ports"] = [dict(port) for port in spec["ports"]]
    _keep_allocated(spec, before)
    _align(spec, before)


def prepare(new: Tree, old: Tree | None) -> None:
    """Begin, unless the allocator has, and drop what the type of a changed service no longer has."""
    begin(new, old)
    if old is not None:
        _drop_unneeded(new["spec"], old.get("spec") or {})
        if new["spec"].get("type") != "LoadBalancer" and (new.get("status") or {}).get("loadBalancer"):
            new["status"] = {**new["status"], "loadBalancer": {}}


def canonicalize(new: Tree, old: Tree | None) -> None:
    """A name elsewhere has no traffic of its own, whatever was said about it."""
    if (new.get("spec") or {}).get("type") == "ExternalName":
        new["spec"].pop("internalTrafficPolicy", None)


def _align(spec: Tree, before: Tree) -> None:
    """Whoever changes only the single address means the list, too."""
    first, earlier = spec.get("clusterIP") or "", before.get("clusterIP") or ""
    several, several_before = spec.get("clusterIPs") or [], before.get("clusterIPs") or []
    if several_before and not several and first == earlier:
        spec["clusterIPs"] = several_before
    elif first != earlier and several == several_before:
        if first:
            spec["clusterIPs"] = [first]
        else:
            spec.pop("clusterIPs", None)


def _keep_allocated(spec: Tree, before: Tree) -> None:
    if has_address(spec) and has_address(before):
        for member in ("clusterIP", "clusterIPs"):
            if not spec.get(member) and before.get(member):
                spec[member] = before[member]
    if wants_node_ports(spec) and wants_node_ports(before):
        known = {port.get("name") or "": port.get("nodePort") for port in before.get("ports") or ()}
        used = {port.get("nodePort") for port in before.get("ports") or ()}
        used &= {port.get("nodePort") for port in spec.get("ports") or ()}
        for port in spec.get("ports") or ():
            earlier = known.get(port.get("name") or "")
            if not port.get("nodePort") and earlier and earlier not in used:
                port["nodePort"] = earlier
    if wants_health_port(spec) and wants_health_port(before) and not spec.get("healthCheckNodePort"):
        keep(spec, before, "healthCheckNodePort")


def _drop_unneeded(spec: Tree, before: Tree) -> None:
    """What only the old type had goes, unless the user has just changed it (then validation says so)."""
    if has_address(before) and not has_address(spec):
        same = all((spec.get(member) or None) == (before.get(member) or None) for member in ("clusterIP", "clusterIPs"))
        for member in _ADDRESS_MEMBERS:
            if same if member.startswith("clusterIP") else spec.get(member) == before.get(member):
                spec.pop(member, None)
    if wants_ports(before) and not wants_ports(spec):
        known = {port.get("nodePort") for port in before.get("ports") or ()}
        if all(port.get("nodePort") in known for port in spec.get("ports") or () if port.get("nodePort")):
            spec["ports"] = [{k: v for k, v in port.items() if k != "nodePort"} for port in spec.get("ports") or ()]
    unneeded = ["healthCheckNodePort"] if wants_health_port(before) and not wants_health_port(spec) else []
    if before.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        unneeded += ["allocateLoadBalancerNodePorts", "loadBalancerClass"]
    if exposed(before) and not exposed(spec):
        unneeded.append("externalTrafficPolicy")
    for member in unneeded:
        if spec.get(member) == before.get(member):
            spec.pop(member, None)


def exposed(spec: Tree) -> bool:
    """Whether a service of this sort can be reached from outside of the cluster."""
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))

"""Limit ranges, resource quotas and nodes."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.quantities import (
    HUGE,
    QUOTA,
    amount,
    container_resource,
    quantity,
    resource_name,
)
from fastapi_core.apis.validation.rules import Report, Tree
from fastapi_core.apis.validation.scheduling import taints

_LIMIT_TYPES: Final = frozenset({"Pod", "Container", "PersistentVolumeClaim"})
_SIDES: Final = ("max", "min")
_SCOPES: Final = frozenset(
    {
        "Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass",
        "CrossNamespacePodAffinity", "VolumeAttributesClass",
    }
)  # fmt: skip
_EXISTING: Final = _SCOPES - {"PriorityClass", "VolumeAttributesClass"}
_MUST_EXIST: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


def _names(item: Tree, side: str, path: str, report: Report) -> None:
    check = container_resource if item.get("type") in ("Pod", "Container") else resource_name
    for name in item.get(side) or ():
        report.each_invalid(f"{path}.{side}[{name}]", name, check(name))


def _order(item: Tree, path: str, report: Report) -> None:
    """min <= defaultRequest <= default <= max, resource by resource."""
    parts = {side: item.get(side) or {} for side in ("min", "max", "defaultRequest", "default", "maxLimitRequestRatio")}
    for name in sorted(set().union(*parts.values())):
        low, high, request, default, ratio = (parts[side].get(name) for side in parts)

        def above(left: str | None, right: str | None) -> bool:
            return left is not None and right is not None and amount(right) < amount(left)

        if above(low, high):
            report.invalid(f"{path}.min[{name}]", low, f"min value {low} is greater than max value {high}")
        at = f"{path}.defaultRequest[{name}]"
        if above(low, request):
            report.invalid(at, request, f"min value {low} is greater than default request value {request}")
        if above(request, high):
            report.invalid(at, request, f"default request value {request} is greater than max value {high}")
        if above(request, default):
            report.invalid(
                at, request, f"default request value {request} is greater than default limit value {default}"
            )
        at = f"{path}.default[{name}]"
        if above(low, default):
            report.invalid(at, low, f"min value {low} is greater than default value {default}")
        if above(default, high):
            report.invalid(at, high, f"default value {default} is greater than max value {high}")
        _ratio(ratio, low, high, f"{path}.maxLimitRequestRatio[{name}]", report)


def _ratio(ratio: str | None, low: str | None, high: str | None, path: str, report: Report) -> None:
    if ratio is None:
        return
    value = amount(ratio)
    if value.nanos < 1_000_000_000:
        report.invalid(path, ratio, f"ratio {ratio} is less than 1")
    if low is not None and high is not None and amount(low).nanos:
        most = amount(high).nanos / amount(low).nanos
        if value.nanos / 1_000_000_000 > most:
            report.invalid(path, ratio, f"ratio {ratio} is greater than max/min = {most:.6f}")


def limit_range(tree: Tree, path: str, report: Report) -> None:
    kinds: set[str] = set()
    for index, item in enumerate((tree.get("spec") or {}).get("limits") or ()):
        at = f".spec.limits[{index}]"
        kind = item.get("type") or ""
        problems = formats.qualified(kind)
        if not problems and "/" not in kind and kind not in _LIMIT_TYPES:
            problems = ["must be a standard limit type or fully qualified"]
        report.each_invalid(at + ".type", kind, problems)
        if kind in kinds:
            report.duplicate(at + ".type", kind)
        kinds.add(kind)
        for side in _SIDES:
            _names(item, side, at, report)
        for side in ("default", "defaultRequest"):
            if kind != "Pod":
                _names(item, side, at, report)
            elif item.get(side):
                report.forbidden(f"{at}.{side}", "may not be specified when `type` is 'Pod'")
        if kind == "PersistentVolumeClaim" and not any("storage" in (item.get(side) or ()) for side in _SIDES):
            text = "either minimum or maximum storage value is required, but neither was provided"
            report.required(at + ".limits", text)
        _names(item, "maxLimitRequestRatio", at, report)
        _order(item, at, report)


def _quota_name(name: str) -> list[str]:
    problems = list(resource_name(name))
    if "/" not in name and name not in QUOTA and not name.startswith("requests." + HUGE):
        problems.append("must be a standard resource for quota")
    return problems


def _scopes(spec: Tree, hard: dict[str, str], report: Report) -> None:
    scopes = spec.get("scopes") or []
    at = ".spec.scopes"
    for scope in scopes:
        if scope not in _SCOPES:
            report.invalid(at, scopes, "unsupported scope")
        for name in sorted(hard):
            if not _applies(scope, name):
                report.invalid(at, scopes, "unsupported scope applied to resource")
    _conflicts(set(scopes), at, scopes, report)


def _conflicts(found: set[str], path: str, value: Any, report: Report) -> None:
    for pair in ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"}):
        if pair <= found:
            report.invalid(path, value, "conflicting scopes")


def _applies(scope: str, name: str) -> bool:
    """Whether a scope makes sense for a resource."""
    if name not in QUOTA or scope not in _SCOPES:
        return True
    if scope == "BestEffort":
        return name == "pods"
    if scope == "VolumeAttributesClass":
        return name in ("persistentvolumeclaims", "requests.storage")
    return name == "pods" or name.rpartition(".")[2] in ("cpu", "memory")


def _scope_selector(spec: Tree, report: Report) -> None:
    at = ".spec.scopeSelector.matchExpressions"
    found: set[str] = set()
    for item in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        scope, operator, values = item.get("scopeName") or "", item.get("operator") or "", item.get("values")
        if scope not in _SCOPES:
            report.invalid(at + ".scopeName", scope, "unsupported scope")
        for name in sorted(spec.get("hard") or ()):
            if not _applies(scope, name):
                told = shown("core/v1.ScopeSelector", spec["scopeSelector"])
                report.invalid(at, told, "unsupported scope applied to resource")
        found.add(scope)
        if scope in _EXISTING and operator != "Exists":
            report.invalid(at + ".operator", operator, _MUST_EXIST)
        if operator in ("In", "NotIn"):
            if not values:
                text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                report.required(at + ".values", text)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                report.invalid(at + ".values", values, text)
        else:
            report.invalid(at + ".operator", operator, "not a valid selector operator")
    _conflicts(found, at, spec.get("scopes"), report)


def resource_quota(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    hard = spec.get("hard") or {}
    for name, value in hard.items():
        at = f".spec.hard[{name}]"
        report.each_invalid(at, name, _quota_name(name))
        quantity(name, value, at, report)
    _scopes(spec, hard, report)
    if spec.get("scopeSelector") is not None:
        _scope_selector(spec, report)


def resource_quota_update(tree: Tree, path: str, report: Report) -> None:
    resource_quota(tree, path, report)
    scopes = (tree.get("spec") or {}).get("scopes") or []
    before = ((report.old or {}).get("spec") or {}).get("scopes") or []
    if set(scopes) != set(before):
        report.invalid(".spec.scopes", scopes or None, "field is immutable")


def resource_quota_status(tree: Tree, path: str, report: Report) -> None:
    for side in ("hard", "used"):
        for name, value in ((tree.get("status") or {}).get(side) or {}).items():
            at = f".status.{side}[{name}]"
            report.each_invalid(at, name, _quota_name(name))
            quantity(name, value, at, report)


# Nodes


def _pod_ranges(ranges: list[str], path: str, report: Report) -> None:
    broken = -1
    for index, value in enumerate(ranges):
        problems = formats.cidr(value)
        report.each_invalid(f"{path}[{index}]", value, problems)
        if problems and broken < 0 and formats.network(value) is None:
            broken = index
    if len(ranges) < 2:
        return
    if broken >= 0:
        text = (
            "invalid PodCIDRs. failed to check with dual stack with error:"
            f"invalid CIDR[{broken}]: <nil> (invalid CIDR address: {ranges[broken]})"
        )
        report.internal(path, text)
    families = {net.version for net in map(formats.network, ranges) if net is not None}
    if len(ranges) > 2 or broken >= 0 or len(families) < 2:
        report.invalid(path, ranges, "may specify no more than one CIDR for each IP family")


def node(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    if spec.get("taints"):
        taints(spec["taints"], ".metadata.taints", report)
    if report.old is None:
        _node_resources(tree, report)
    if spec.get("podCIDRs"):
        _pod_ranges(spec["podCIDRs"], ".spec.podCIDRs", report)


def _node_resources(tree: Tree, report: Report) -> None:
    for side in ("capacity", "allocatable"):
        for name, value in ((tree.get("status") or {}).get(side) or {}).items():
            quantity(name, value, f".status.{side}.{name}", report)


def node_update(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    before: Tree = (report.old or {}).get("spec") or {}
    if spec == before:
        return
    node(tree, path, report)
    ranges, earlier = spec.get("podCIDRs") or [], before.get("podCIDRs") or []
    if earlier:
        pairs = zip(ranges, earlier, strict=True) if len(ranges) == len(earlier) else [("", " ")]
        for _ in [1 for value, held in pairs if value != held]:
            report.forbidden(".spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        report.forbidden(".spec.providerID", 'node updates may not change providerID except from "" to valid')
    if spec.get("taints"):
        taints(spec["taints"], ".metadata.taints", report)
    if (spec.get("externalID") or "") != (before.get("externalID") or ""):
        report.forbidden(".spec.externalID", "may not be updated")


def node_status(tree: Tree, path: str, report: Report) -> None:
    status: Tree = tree.get("status") or {}
    _node_resources(tree, report)
    seen: set[tuple[str, str]] = set()
    for index, address in enumerate(status.get("addresses") or ()):
        key = (address.get("type") or "", address.get("address") or "")
        if key in seen:
            report.duplicate(f".status.addresses[{index}]", shown("core/v1.NodeAddress", address))
        seen.add(key)

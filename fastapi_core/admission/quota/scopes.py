"""Scopes: the kinds of objects a quota is for."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi_core.admission.amounts import quality
from fastapi_core.registry.definition import Tree


def selectors(quota: Tree) -> Iterator[Tree]:
    """All conditions on the objects of a quota."""
    spec = quota.get("spec") or {}
    for name in spec.get("scopes") or ():
        yield {"scopeName": name, "operator": "Exists"}
    yield from (spec.get("scopeSelector") or {}).get("matchExpressions") or ()


def pod_in_scope(selector: Tree, pod: Tree) -> bool:
    spec = pod.get("spec") or {}
    name = selector.get("scopeName")
    if name in ("Terminating", "NotTerminating"):
        deadline = spec.get("activeDeadlineSeconds")
        return (deadline is not None and deadline >= 0) is (name == "Terminating")
    if name in ("BestEffort", "NotBestEffort"):
        known = (pod.get("status") or {}).get("qosClass") or quality(spec)
        return (known == "BestEffort") is (name == "BestEffort")
    if name == "PriorityClass":
        given = spec.get("priorityClassName")
        return selected(selector, {given} if given else set())
    return name == "CrossNamespacePodAffinity" and _crosses(spec)


def claim_in_scope(selector: Tree, claim: Tree) -> bool:
    return selector.get("scopeName") == "VolumeAttributesClass" and selected(selector, attribute_classes(claim))


def attribute_classes(claim: Tree) -> set[str]:
    """Every attributes class a claim has, had or is about to have."""
    status = claim.get("status") or {}
    names = {
        (claim.get("spec") or {}).get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    }
    return {name for name in names if name}


def selected(selector: Tree, names: set[str]) -> bool:
    """Whether one of an object's names, or that it has none, is what a selector asks for."""
    operator, values = selector.get("operator"), selector.get("values") or ()
    if operator == "Exists":
        return bool(names)
    if operator == "DoesNotExist":
        return not names
    if operator == "In":
        return any(name in values for name in names)
    return operator == "NotIn" and (not names or any(name not in values for name in names))


def _crosses(spec: Tree) -> bool:
    """Whether where a pod goes depends on pods of other namespaces."""
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        terms = list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        preferred = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [weighted.get("podAffinityTerm") or {} for weighted in preferred]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False

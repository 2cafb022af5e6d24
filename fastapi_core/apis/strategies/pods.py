"""Pods: phase and quality-of-service class on create."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from fastapi_core.apis.strategies.app_armor import synchronize
from fastapi_core.apis.strategies.basics import Tree
from fastapi_core.meta import quantity, time

_GATED = "Scheduling is blocked due to non-empty scheduling gates"
_COMPUTE = ("cpu", "memory")
Amounts = tuple[tuple[str, str], ...]
_amount = lru_cache(maxsize=4096)(quantity.parse)


def qos_class(spec: Tree) -> str:
    """Guaranteed when every container's requests equal its limits, BestEffort when none states any, else Burstable."""
    whole = spec.get("resources")
    stated = (
        [whole]
        if whole
        else [
            container.get("resources") or {}
            for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        ]
    )
    return _class(tuple((_pairs(each.get("requests")), _pairs(each.get("limits"))) for each in stated))


def _pairs(amounts: Tree | None) -> Amounts:
    return tuple(amounts.items()) if amounts else ()


@lru_cache(maxsize=2048)
def _class(stated: tuple[tuple[Amounts, Amounts], ...]) -> str:
    """The class for (requests, limits) of each container: the same few come with nearly every pod."""
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    guaranteed = True
    for asked, limit in stated:
        _total(requests, dict(asked))
        if _total(limits, dict(limit)) != len(_COMPUTE):
            guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    if guaranteed and len(requests) == len(limits) and all(limits.get(name) == requests[name] for name in requests):
        return "Guaranteed"
    return "Burstable"


def _total(totals: dict[str, Any], amounts: dict[str, str]) -> int:
    """Add up the compute resources that are more than zero; returns how many there were."""
    found = 0
    for name in _COMPUTE:
        amount = _amount(amounts[name]) if name in amounts else None
        if amount:
            found += 1
            totals[name] = totals[name] + amount if name in totals else amount
    return found


def prepare(new: Tree, old: Tree | None) -> None:
    """Status on create; on update it is the old one, which the common part has put there."""
    if old is not None:
        return
    spec: Tree = new.get("spec") or {}
    status: Tree = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": time.now(),
                "reason": "SchedulingGated",
                "message": _GATED,
            }
        ]
    new["status"] = status
    if spec.get("affinity") or spec.get("topologySpreadConstraints"):
        _complete(spec, new["metadata"].get("labels") or {})


def canonicalize(new: Tree, old: Tree | None) -> None:
    """Fields in the place of annotations, once it is known that they agree."""
    if old is None and new["metadata"].get("annotations"):
        synchronize(new)


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _complete(spec: Tree, labels: dict[str, str]) -> None:
    """Selectors are completed with the values that the pod itself has for the label keys to be matched."""
    affinity: Tree = spec.get("affinity") or {}
    for name in ("podAffinity", "podAntiAffinity"):
        part: Tree = affinity.get(name) or {}
        for weighted in part.get(_PREFERRED) or ():
            _select(weighted.get("podAffinityTerm") or {}, labels)
        for term in part.get(_REQUIRED) or ():
            _select(term, labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _select(constraint, labels)


def _select(term: Tree, labels: dict[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for member, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(member) or ()
        if key in labels
    ]
    if added:
        term["labelSelector"] = {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *added]}


def prepare_status(new: Tree, old: Tree | None) -> None:
    """The class is computed once, and owners are not the node's business."""
    if old is None:
        return
    status = new.setdefault("status", {})
    before: Tree = old.get("status") or {}
    _keep_generations(status, before)
    if not status.get("qosClass") and before.get("qosClass"):
        status["qosClass"] = before["qosClass"]
    owners = old["metadata"].get("ownerReferences")
    if owners is None:
        new["metadata"].pop("ownerReferences", None)
    else:
        new["metadata"]["ownerReferences"] = owners


def _keep_generations(status: Tree, before: Tree) -> None:
    """A reporter that does not know of generations does not clear them."""
    if not status.get("observedGeneration") and before.get("observedGeneration"):
        status["observedGeneration"] = before["observedGeneration"]
    earlier: dict[str, list[int]] = {}
    for condition in before.get("conditions") or ():
        earlier.setdefault(condition.get("type") or "", []).append(condition.get("observedGeneration") or 0)
    if not any(any(numbers) for numbers in earlier.values()):
        return
    conditions = []
    for condition in status.get("conditions") or ():
        numbers = earlier.get(condition.get("type") or "")
        number = numbers.pop(0) if numbers else 0
        if number and not condition.get("observedGeneration"):
            condition = {**condition, "observedGeneration": number}
        conditions.append(condition)
    if conditions:
        status["conditions"] = conditions

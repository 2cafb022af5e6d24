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
    synchronize(new)


def prepare_status(new: Tree, old: Tree | None) -> None:
    """The class is computed once, and owners are not the node's business."""
    if old is None:
        return
    status = new.setdefault("status", {})
    before: Tree = old.get("status") or {}
    if not status.get("qosClass") and before.get("qosClass"):
        status["qosClass"] = before["qosClass"]
    owners = old["metadata"].get("ownerReferences")
    if owners is None:
        new["metadata"].pop("ownerReferences", None)
    else:
        new["metadata"]["ownerReferences"] = owners

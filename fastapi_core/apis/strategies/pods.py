"""Pods: phase and quality-of-service class on create, and what may change later."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from fastapi_core.apis.strategies.basics import Tree
from fastapi_core.errors import FieldError
from fastapi_core.meta import quantity, time

_GATED = "Scheduling is blocked due to non-empty scheduling gates"
_COMPUTE = ("cpu", "memory")
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
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    guaranteed = True
    for resources in stated:
        _total(requests, resources.get("requests"))
        limited = _total(limits, resources.get("limits"))
        if limited != len(_COMPUTE):
            guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    if guaranteed and len(requests) == len(limits) and all(limits.get(name) == requests[name] for name in requests):
        return "Guaranteed"
    return "Burstable"


def _total(totals: dict[str, Any], amounts: Tree | None) -> int:
    """Add up the compute resources that are more than zero; returns how many there were."""
    found = 0
    for name in _COMPUTE:
        amount = _amount(amounts[name]) if amounts and name in amounts else None
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


_MUTABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)


def validate(new: Tree, old: Tree | None) -> list[FieldError]:
    """Most of a pod's spec stays as it was created."""
    if old is None or new.get("spec") == old.get("spec"):
        return []
    gated = bool((old.get("spec") or {}).get("schedulingGates"))
    if _fixed(new.get("spec") or {}, gated) == _fixed(old.get("spec") or {}, gated):
        return []
    return [FieldError("Forbidden", "spec", f"pod updates may not change fields other than {_MUTABLE}")]


def _fixed(spec: Tree, gated: bool) -> Tree:
    """The part of a spec that an update may not touch; a gated pod may still be steered to nodes."""
    free = {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"}
    if gated:
        free |= {"nodeSelector", "affinity"}
    out = {name: value for name, value in spec.items() if name not in free and value is not None}
    for name in ("containers", "initContainers"):
        if name in out:
            out[name] = [{k: v for k, v in container.items() if k != "image"} for container in out[name]]
    return out

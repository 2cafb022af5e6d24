"""Condition lists as the server itself writes them: pod conditions, and the common condition of other kinds."""

from __future__ import annotations

from fastapi_core.meta import time
from fastapi_core.registry.definition import Tree


def with_pod_condition(pod: Tree, type_: str, *, reason: str = "", message: str = "") -> Tree:
    """The pod's status with a condition that is true now; the time of the transition moves only when it was not."""
    status: Tree = dict(pod.get("status") or {})
    condition: Tree = {"type": type_, "status": "True", "lastProbeTime": None}
    generation = pod["metadata"].get("generation")
    if generation and _observed(status, type_):
        condition["observedGeneration"] = generation
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message
    status["conditions"] = _merged(status.get("conditions") or [], condition)
    return status


def _observed(status: Tree, type_: str) -> bool:
    """Whether somebody writes down the generation the status (or that condition) is about."""
    if status.get("observedGeneration"):
        return True
    return any(c.get("type") == type_ and c.get("observedGeneration") for c in status.get("conditions") or ())


def with_condition(
    conditions: list[Tree] | None, type_: str, holds: bool, *, reason: str, message: str = "", generation: int = 0
) -> list[Tree]:
    """A list of `metav1.Condition` with one set."""
    condition: Tree = {"type": type_, "status": "True" if holds else "False", "reason": reason, "message": message}
    if generation:
        condition["observedGeneration"] = generation
    return _merged(conditions or [], condition)


def _merged(conditions: list[Tree], condition: Tree) -> list[Tree]:
    merged = list(conditions)
    for index, before in enumerate(merged):
        if before.get("type") == condition["type"]:
            same = before.get("status") == condition["status"]
            condition["lastTransitionTime"] = before.get("lastTransitionTime") if same else time.now()
            merged[index] = condition
            return merged
    condition["lastTransitionTime"] = time.now()
    return [*merged, condition]


def is_true(tree: Tree, type_: str) -> bool:
    """Whether the object has a condition of that type with status True."""
    conditions = (tree.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == type_ and c.get("status") == "True" for c in conditions)

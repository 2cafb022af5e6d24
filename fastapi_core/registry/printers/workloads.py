"""Rows of workloads: deployments, jobs, autoscalers, quotas and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi_core.meta.time import human_duration
from fastapi_core.registry.printers.cells import (
    AGE,
    CUSTOM_AGE,
    NAME,
    NONE,
    UNKNOWN,
    age,
    at,
    condition_true,
    containers,
    count,
    labels,
    number,
    selector,
    text,
    true_false,
    value,
    wide,
)
from fastapi_core.registry.printers.engine import Cell, Column, Tree, epoch, since


def replicas_ready(tree: Tree) -> Cell:
    ready = at(tree, "status.readyReplicas") or 0
    return f"{ready}/{at(tree, 'spec.replicas') or 0}"


def job_status(tree: Tree) -> Cell:
    for kind in ("Complete", "Failed"):
        if condition_true(tree, kind):
            return kind
    if at(tree, "metadata.deletionTimestamp"):
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if condition_true(tree, kind):
            return kind
    return "Running"


def job_completions(tree: Tree) -> Cell:
    done = at(tree, "status.succeeded") or 0
    completions = at(tree, "spec.completions")
    if completions is not None:
        return f"{done}/{completions}"
    parallelism = at(tree, "spec.parallelism") or 0
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def job_duration(tree: Tree) -> Cell:
    start, end = at(tree, "status.startTime"), at(tree, "status.completionTime")
    if not start:
        return ""
    return human_duration(int(epoch(end) - epoch(start))) if end else since(start)


def controller_reference(tree: Tree) -> Cell:
    for owner in at(tree, "metadata.ownerReferences") or ():
        if owner.get("controller"):
            group = owner.get("apiVersion", "").rpartition("/")[0]
            kind = owner.get("kind", "") + (f".{group}" if group else "")
            return f"{kind.lower()}/{owner.get('name', '')}"
    return NONE


def autoscaler_reference(tree: Tree) -> Cell:
    target: Tree = at(tree, "spec.scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _pair(current: str | None, target: str) -> str:
    return f"{current or UNKNOWN}/{target}"


def _metric(spec: Tree, status: Tree | None) -> str:
    """One metric of an autoscaler as `current/target`."""
    kind = spec.get("type", "")
    member = kind[:1].lower() + kind[1:]
    if member not in ("external", "pods", "object", "resource", "containerResource"):
        return "<unknown type>"
    source: Tree = spec.get(member) or {}
    target: Tree = source.get("target") or {}
    current: Tree = ((status or {}).get(member) or {}).get("current") or {}
    if member == "pods":
        return _pair(current.get("averageValue"), target.get("averageValue", "<nil>"))
    if member in ("external", "object"):
        if target.get("averageValue") is not None:
            return _pair(current.get("averageValue"), target["averageValue"]) + " (avg)"
        return _pair(current.get("value"), target.get("value", "<nil>"))
    name = source.get("name", "")
    if target.get("averageValue") is not None:
        return f"{name}: {_pair(current.get('averageValue'), target['averageValue'])}"
    used, wanted = current.get("averageUtilization"), target.get("averageUtilization")
    text = _pair(None if used is None else f"{used}%", "<auto>" if wanted is None else f"{wanted}%")
    return f"{name}: {text}"


def autoscaler_targets(tree: Tree) -> Cell:
    metrics: list[Tree] = at(tree, "spec.metrics") or []
    if not metrics:
        return NONE
    current: list[Tree] = at(tree, "status.currentMetrics") or []
    shown = [_metric(spec, current[i] if i < len(current) else None) for i, spec in enumerate(metrics[:2])]
    joined = ", ".join(shown)
    return f"{joined} + {len(metrics) - 2} more..." if len(metrics) > 2 else joined


def quota(limits: bool) -> Callable[[Tree], Cell]:
    """Used and hard amounts of the limits.* names, or of all others."""

    def cell(tree: Tree) -> Cell:
        hard: dict[str, Any] = at(tree, "status.hard") or {}
        used: dict[str, Any] = at(tree, "status.used") or {}
        names = [name for name in sorted(hard) if (name.partition(".")[0] == "limits") is limits]
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return cell


_TEMPLATE = containers("spec.template")
_SELECTOR = wide("Selector", selector("spec.selector"))

TABLES: dict[str, tuple[Column, ...]] = {
    "PodTemplate": (
        NAME,
        *(Column(c.name, c.cell) for c in containers("template")),
        Column("Pod Labels", labels("template.metadata.labels")),
    ),
    "PodDisruptionBudget": (
        NAME,
        Column("Min Available", text("spec.minAvailable", "N/A")),
        Column("Max Unavailable", text("spec.maxUnavailable", "N/A")),
        Column("Allowed Disruptions", number("status.disruptionsAllowed"), "integer"),
        AGE,
    ),
    "ReplicationController": (
        NAME,
        Column("Desired", number("spec.replicas"), "integer"),
        Column("Current", number("status.replicas"), "integer"),
        Column("Ready", number("status.readyReplicas"), "integer"),
        AGE,
        *_TEMPLATE,
        wide("Selector", labels("spec.selector")),
    ),
    "ReplicaSet": (
        NAME,
        Column("Desired", number("spec.replicas"), "integer"),
        Column("Current", number("status.replicas"), "integer"),
        Column("Ready", number("status.readyReplicas"), "integer"),
        AGE,
        *_TEMPLATE,
        _SELECTOR,
    ),
    "DaemonSet": (
        NAME,
        Column("Desired", number("status.desiredNumberScheduled"), "integer"),
        Column("Current", number("status.currentNumberScheduled"), "integer"),
        Column("Ready", number("status.numberReady"), "integer"),
        Column("Up-to-date", number("status.updatedNumberScheduled"), "integer"),
        Column("Available", number("status.numberAvailable"), "integer"),
        Column("Node Selector", labels("spec.template.spec.nodeSelector")),
        AGE,
        *_TEMPLATE,
        _SELECTOR,
    ),
    "Job": (
        NAME,
        Column("Status", job_status),
        Column("Completions", job_completions),
        Column("Duration", job_duration),
        AGE,
        *_TEMPLATE,
        _SELECTOR,
    ),
    "CronJob": (
        NAME,
        Column("Schedule", value("spec.schedule")),
        Column("Timezone", value("spec.timeZone", NONE)),
        Column("Suspend", true_false("spec.suspend"), "boolean"),
        Column("Active", count("status.active"), "integer"),
        Column("Last Schedule", age("status.lastScheduleTime", NONE)),
        AGE,
        *containers("spec.jobTemplate.spec.template"),
        wide("Selector", selector("spec.jobTemplate.spec.selector")),
    ),
    "StatefulSet": (NAME, Column("Ready", replicas_ready), AGE, *_TEMPLATE),
    "Deployment": (
        NAME,
        Column("Ready", replicas_ready),
        Column("Up-to-date", number("status.updatedReplicas")),
        Column("Available", number("status.availableReplicas")),
        AGE,
        *_TEMPLATE,
        wide("Selector", selector("spec.selector", "", "<invalid>")),
    ),
    "ControllerRevision": (
        NAME,
        Column("Controller", controller_reference),
        Column("Revision", number("revision")),
        AGE,
    ),
    "HorizontalPodAutoscaler": (
        NAME,
        Column("Reference", autoscaler_reference),
        Column("Targets", autoscaler_targets),
        Column("MinPods", text("spec.minReplicas")),
        Column("MaxPods", number("spec.maxReplicas")),
        Column("Replicas", number("status.currentReplicas")),
        AGE,
    ),
    "ResourceQuota": (NAME, Column("Request", quota(limits=False)), Column("Limit", quota(limits=True)), AGE),
    "Scale": (
        Column("Name", value("metadata.name"), description=NAME.description),
        Column("Desired", number("spec.replicas"), "integer"),
        Column("Available", number("status.replicas"), "integer"),
        AGE,
    ),
    # The Scale of a custom resource.
    "Scale of CustomResource": (
        NAME,
        Column("Desired", number("spec.replicas"), "integer", description="Number of desired replicas"),
        Column("Available", number("status.replicas"), "integer", description="Number of actual replicas"),
        CUSTOM_AGE,
    ),
}

"""Horizontal pod autoscalers, in both versions."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.networking import segment
from fastapi_core.apis.validation.quantities import amount, container_resource
from fastapi_core.apis.validation.rules import NOT_NEGATIVE, Report, Tree, natural

_TYPES: Final = ("ContainerResource", "External", "Object", "Pods", "Resource")
#: Type of a metric -> (member, word in messages).
_MEMBERS: Final = {
    "Object": "object", "External": "external", "Pods": "pods", "Resource": "resource",
    "ContainerResource": "containerResource",
}  # fmt: skip
_ONLY: Final = "must populate the given metric source only"


def _reference(tree: Tree, path: str, report: Report, *, grouped: bool, versioned: bool = True) -> None:
    """`grouped`: only core kinds that are named may do without a group; `versioned`: the version is looked at."""
    for name in ("kind", "name"):
        value = tree.get(name)
        if not value:
            report.required(f"{path}.{name}")
        else:
            report.each_invalid(f"{path}.{name}", value, segment(value))
    version = tree.get("apiVersion") or ""
    if not versioned:
        return
    if version.count("/") > 1:
        report.invalid(path + ".apiVersion", version, f"unexpected GroupVersion string: {version}")
    elif grouped and not version.rpartition("/")[0]:
        report.invalid(path + ".apiVersion", version, "apiVersion must specify API group")


def _target(target: Tree, path: str, report: Report) -> None:
    kind = target.get("type") or ""
    if not kind:
        report.required(path + ".type", "must specify a metric target type")
    if kind not in ("Utilization", "Value", "AverageValue"):
        report.invalid(path + ".type", kind, "must be either Utilization, Value, or AverageValue")
    for name in ("value", "averageValue"):
        value = target.get(name)
        if value is not None and amount(value).nanos <= 0:
            report.invalid(f"{path}.{name}", value, "must be positive")
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        report.invalid(path + ".averageUtilization", share, "must be greater than 0")


def _identifier(metric: Tree, path: str, report: Report) -> None:
    name = metric.get("name") or ""
    if not name:
        report.required(path + ".name", "must specify a metric name")
    else:
        report.each_invalid(path + ".name", name, segment(name))


def _object(source: Tree, path: str, report: Report) -> None:
    _reference(source.get("describedObject") or {}, path + ".describedObject", report, grouped=False)
    _identifier(source.get("metric") or {}, path + ".metric", report)
    target: Tree = source.get("target") or {}
    _target(target, path + ".target", report)
    if target.get("value") is None and target.get("averageValue") is None:
        report.required(path + ".target.averageValue", "must set either a target value or averageValue")


def _external(source: Tree, path: str, report: Report) -> None:
    _identifier(source.get("metric") or {}, path + ".metric", report)
    target: Tree = source.get("target") or {}
    _target(target, path + ".target", report)
    if target.get("value") is None and target.get("averageValue") is None:
        text = "must set either a target value for metric or a per-pod target"
        report.required(path + ".target.averageValue", text)
    elif target.get("value") is not None and target.get("averageValue") is not None:
        text = "may not set both a target value for metric and a per-pod target"
        report.forbidden(path + ".target.value", text)


def _pods(source: Tree, path: str, report: Report) -> None:
    _identifier(source.get("metric") or {}, path + ".metric", report)
    target: Tree = source.get("target") or {}
    _target(target, path + ".target", report)
    if target.get("averageValue") is None:
        report.required(path + ".target.averageValue", "must specify a positive target averageValue")


def _of_resource(target: Tree, path: str, report: Report) -> None:
    _target(target, path, report)
    share, value = target.get("averageUtilization"), target.get("averageValue")
    if share is None and value is None:
        text = "must set either a target raw value or a target utilization"
        report.required(path + ".averageUtilization", text)
    elif share is not None and value is not None:
        text = "may not set both a target raw value and a target utilization"
        report.forbidden(path + ".averageValue", text)


def _resource(source: Tree, path: str, report: Report) -> None:
    if not source.get("name"):
        report.required(path + ".name", "must specify a resource name")
    _of_resource(source.get("target") or {}, path + ".target", report)


def _container(source: Tree, path: str, report: Report) -> None:
    name, container = source.get("name") or "", source.get("container") or ""
    if not name:
        report.required(path + ".name", "must specify a resource name")
    else:
        report.each_invalid(path + ".name", name, container_resource(name))
    if not container:
        report.required(path + ".container", "must specify a container")
    else:
        report.each_invalid(path + ".container", container, formats.label(container))
    _of_resource(source.get("target") or {}, path + ".target", report)


_RULES: Final = (
    ("object", _object),
    ("external", _external),
    ("pods", _pods),
    ("resource", _resource),
    ("containerResource", _container),
)


def _metric(metric: Tree, path: str, report: Report) -> None:
    kind = metric.get("type") or ""
    if not kind:
        report.required(path + ".type", "must specify a metric source type")
    if kind not in _TYPES:
        report.unsupported(path + ".type", kind, _TYPES)
    present = []
    for name, rule in _RULES:
        source = metric.get(name)
        if source is not None:
            present.append(name)
            if len(present) == 1:
                rule(source, f"{path}.{name}", report)
    own = _MEMBERS.get(kind)
    if own is None:
        report.unsupported(path + ".type", kind, _TYPES)
        if len(present) != 1:
            for name in present:
                report.forbidden(f"{path}.{name}", _ONLY)
        return
    if own not in present:
        report.required(f"{path}.{own}", "must populate information for the given metric source")
    for name in present if len(present) != 1 else ():
        if name != own:
            report.forbidden(f"{path}.{name}", _ONLY)


def _scaling(rules: Tree, path: str, report: Report) -> None:
    window = rules.get("stabilizationWindowSeconds")
    at = path + ".stabilizationWindowSeconds"
    if window is not None and window < 0:
        report.invalid(at, window, "must be greater than or equal to zero")
    if window is not None and window > 3600:
        report.invalid(at, window, "must be less than or equal to 3600")
    choice = rules.get("selectPolicy")
    if choice is not None and choice not in ("Disabled", "Max", "Min"):
        report.unsupported(path + ".selectPolicy", choice, ("Disabled", "Max", "Min"))
    policies = rules.get("policies")
    if not policies:
        report.required(path + ".policies", "must specify at least one Policy")
    for index, policy in enumerate(policies or ()):
        item = f"{path}.policies[{index}]"
        if policy.get("type") not in ("Percent", "Pods"):
            report.unsupported(item + ".type", policy.get("type") or "", ("Percent", "Pods"))
        value, period = policy.get("value") or 0, policy.get("periodSeconds") or 0
        if value <= 0:
            report.invalid(item + ".value", value, "must be greater than zero")
        if period <= 0:
            report.invalid(item + ".periodSeconds", period, "must be greater than zero")
        if period > 1800:
            report.invalid(item + ".periodSeconds", period, "must be less than or equal to 1800")
    tolerance = rules.get("tolerance")
    if tolerance is not None and amount(tolerance).nanos < 0:
        report.invalid(path + ".tolerance", tolerance, NOT_NEGATIVE)


def _metrics(spec: Tree) -> list[Tree]:
    """Metrics of the newer version; the older one has a single share of CPU."""
    share: Any = spec.get("targetCPUUtilizationPercentage")
    if share is None:
        return spec.get("metrics") or []
    target = {"type": "Utilization", "averageUtilization": share}
    return [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def autoscaler_status(tree: Tree, path: str, report: Report) -> None:
    natural("currentReplicas", "desiredReplicas")(tree.get("status") or {}, ".status", report)


def autoscaler(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    metrics = _metrics(spec)
    if least is not None and least < 1:
        report.invalid(".spec.minReplicas", least, "must be greater than or equal to 1")
    if most < 1:
        if most == 0:
            report.required(".spec.maxReplicas", "must be set and greater than 0")
        else:
            report.invalid(".spec.maxReplicas", most, "must be greater than or equal to 1")
    if least is not None and most < least:
        report.invalid(".spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    target: Tree = spec.get("scaleTargetRef") or {}
    before: Tree = ((report.old or {}).get("spec") or {}).get("scaleTargetRef") or {}
    same = bool(report.old) and all(target.get(name) == before.get(name) for name in ("apiVersion", "kind"))
    grouped = target.get("kind") != "ReplicationController"
    _reference(target, ".spec.scaleTargetRef", report, grouped=grouped, versioned=not same)
    for index, metric in enumerate(metrics):
        _metric(metric, f".spec.metrics[{index}]", report)
    if least == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        report.forbidden(".spec.metrics", text)
    behavior: Tree = spec.get("behavior") or {}
    for side in ("scaleUp", "scaleDown"):
        if behavior.get(side) is not None:
            _scaling(behavior[side], f".spec.behavior.{side}", report)

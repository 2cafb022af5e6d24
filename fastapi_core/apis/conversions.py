"""Between served versions with different fields: events (core/v1, events.k8s.io/v1) and autoscalers (v1, v2).

The v1 form of an autoscaler keeps what it has no fields for in annotations, as JSON, so nothing is lost on the way.
"""

from __future__ import annotations

from typing import Any

import orjson

from fastapi_core.apis import device_versions
from fastapi_core.codec.json import encode
from fastapi_core.registry.conversion import CONVERTERS, Convert
from fastapi_core.registry.definition import Tree
from fastapi_core.schema.normalize import normalize
from fastapi_core.schema.tables import type_of

CORE, EVENTS = "v1", "events.k8s.io/v1"
V1, V2 = "autoscaling/v1", "autoscaling/v2"

#: Core event member -> the same one in events.k8s.io/v1, where it is called otherwise.
_EVENT_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS, _CURRENT, _CONDITIONS, _BEHAVIOR = (
    _PREFIX + name for name in ("metrics", "current-metrics", "conditions", "behavior")
)


def _renamed(names: dict[str, str], group_version: str) -> Convert:
    def convert(tree: Tree) -> Tree:
        return {names.get(name, name): value for name, value in tree.items()} | {"apiVersion": group_version}

    return convert


# Metrics of autoscalers


def _cpu(metric: Tree, member: str) -> int | None:
    """The CPU utilisation of a v2 metric (`target`) or metric status (`current`), None when it is another metric."""
    resource: Tree = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    return (resource.get(member) or {}).get("averageUtilization")


def _some(**members: Any) -> Tree:
    return {name: value for name, value in members.items() if value is not None}


def _old_metric(metric: Tree, side: str) -> Tree:
    """A v2 metric (`side` target) or metric status (current) in the v1 form, whose values are named after the side."""
    kind = metric.get("type") or ""
    member = kind[:1].lower() + kind[1:]
    source: Tree = metric.get(member) or {}
    values: Tree = source.get(side) or {}
    named: Tree = source.get("metric") or {}
    name, selector = named.get("name"), named.get("selector")
    average, value = values.get("averageValue"), values.get("value")
    if member == "pods":
        old = {"metricName": name, f"{side}AverageValue": average, "selector": selector}
    elif member == "object":
        old = {
            "target": source.get("describedObject"),
            "metricName": name,
            f"{side}Value": value if value is not None else "0",
            "selector": selector,
            "averageValue": average,
        }
    elif member == "external":
        old = {"metricName": name, "metricSelector": selector, f"{side}Value": value, f"{side}AverageValue": average}
    else:
        old = {
            "name": source.get("name"),
            f"{side}AverageUtilization": values.get("averageUtilization"),
            f"{side}AverageValue": average,
            "container": source.get("container"),
        }
    return {"type": kind, member: _some(**old)}


def _new_metric(metric: Tree, side: str) -> Tree:
    """The reverse of `_old_metric`."""
    kind = metric.get("type") or ""
    member = kind[:1].lower() + kind[1:]
    old: Tree = metric.get(member) or {}
    named = _some(name=old.get("metricName"), selector=old.get("metricSelector", old.get("selector")))
    average = old.get("averageValue") if member == "object" else old.get(f"{side}AverageValue")
    utilisation, value = old.get(f"{side}AverageUtilization"), old.get(f"{side}Value")
    values = _some(value=value, averageValue=average, averageUtilization=utilisation)
    if side == "target":
        values["type"] = (
            "Utilization" if utilisation is not None else "AverageValue" if average is not None else "Value"
        )
    new: Tree = {side: values}
    if named:
        new["metric"] = named
    new |= _some(describedObject=old.get("target"), name=old.get("name"), container=old.get("container"))
    return {"type": kind, member: new}


def _ordered(ref: str, trees: list[Tree]) -> str:
    """A list of objects as JSON text, members in the order of their type."""
    return encode([normalize(type_of(ref), tree).tree for tree in trees]).decode()


def _loads(annotations: dict[str, str], name: str) -> Any:
    """What an annotation holds, None when it is absent or broken; it is taken out."""
    text = annotations.pop(name, None)
    try:
        return orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return None


_RULE_NAMES = (("StabilizationWindowSeconds", "stabilizationWindowSeconds"), ("SelectPolicy", "selectPolicy"))
_POLICY_NAMES = (("Type", "type"), ("Value", "value"), ("PeriodSeconds", "periodSeconds"))


def _old_rules(rules: Tree | None) -> Tree | None:
    if rules is None:
        return None
    old: Tree = {theirs: rules.get(ours) for theirs, ours in _RULE_NAMES}
    policies = rules.get("policies")
    old["Policies"] = policies and [{theirs: p.get(ours) for theirs, ours in _POLICY_NAMES} for p in policies]
    return old | {"Tolerance": rules.get("tolerance")}


def _new_rules(old: Tree | None) -> Tree | None:
    if old is None:
        return None
    policies = [_some(**{ours: p.get(theirs) for theirs, ours in _POLICY_NAMES}) for p in old.get("Policies") or ()]
    rules = _some(**{ours: old.get(theirs) for theirs, ours in _RULE_NAMES}, tolerance=old.get("Tolerance"))
    return rules | ({"policies": policies} if policies else {})


# Autoscalers


def autoscaler_to_v1(tree: Tree) -> Tree:
    """The first CPU utilisation metric becomes a member, everything else of v2 an annotation."""
    spec, status = dict(tree.get("spec") or {}), dict(tree.get("status") or {})
    metadata: Tree = dict(tree.get("metadata") or {})
    metrics: list[Tree] = spec.pop("metrics", None) or []
    behavior: Tree | None = spec.pop("behavior", None)
    current: list[Tree] = status.pop("currentMetrics", None) or []
    conditions: list[Tree] = status.pop("conditions", None) or []
    spec |= _first(metrics, "target", "targetCPUUtilizationPercentage")
    status |= _first(current, "current", "currentCPUUtilizationPercentage")
    kept = {}
    others = [_old_metric(m, "target") for m in metrics if _cpu(m, "target") is None]
    if others:
        kept[_METRICS] = _ordered(f"{V1}.MetricSpec", others)
    seen = [_old_metric(m, "current") for m in current]
    if seen:
        kept[_CURRENT] = _ordered(f"{V1}.MetricStatus", seen)
    if conditions:
        kept[_CONDITIONS] = _ordered(f"{V1}.HorizontalPodAutoscalerCondition", conditions)
    if behavior is not None:
        rules = {"ScaleUp": _old_rules(behavior.get("scaleUp")), "ScaleDown": _old_rules(behavior.get("scaleDown"))}
        kept[_BEHAVIOR] = encode(rules).decode()
    if kept:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **kept}
    return {**tree, "apiVersion": V1, "metadata": metadata, "spec": spec, "status": status}


def _first(metrics: list[Tree], side: str, member: str) -> Tree:
    found = next((value for metric in metrics if (value := _cpu(metric, side)) is not None), None)
    return {} if found is None else {member: found}


def autoscaler_to_v2(tree: Tree) -> Tree:
    """The reverse of `autoscaler_to_v1`; the CPU metric stands last."""
    spec, status = dict(tree.get("spec") or {}), dict(tree.get("status") or {})
    metadata: Tree = dict(tree.get("metadata") or {})
    annotations = dict(metadata.get("annotations") or {})
    metrics = [_new_metric(metric, "target") for metric in _loads(annotations, _METRICS) or ()]
    utilisation = spec.pop("targetCPUUtilizationPercentage", None)
    if utilisation is not None:
        target = {"type": "Utilization", "averageUtilization": utilisation}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    if metrics:
        spec["metrics"] = metrics
    current = [_new_metric(metric, "current") for metric in _loads(annotations, _CURRENT) or ()]
    used = status.pop("currentCPUUtilizationPercentage", None)
    if used is not None and not any(_cpu(metric, "current") is not None for metric in current):
        resource = {"name": "cpu", "current": {"averageUtilization": used}}
        current.append({"type": "Resource", "resource": resource})
    if current:
        status["currentMetrics"] = current
    conditions = _loads(annotations, _CONDITIONS)
    if conditions:
        status["conditions"] = conditions
    behavior = _loads(annotations, _BEHAVIOR)
    if behavior is not None:
        rules = _some(scaleUp=_new_rules(behavior.get("ScaleUp")), scaleDown=_new_rules(behavior.get("ScaleDown")))
        spec["behavior"] = rules
    if annotations:
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    return {**tree, "apiVersion": V2, "metadata": metadata, "spec": spec, "status": status}


def register() -> None:
    """Make the conversions known to the registry."""
    names = {new: old for old, new in _EVENT_NAMES.items()}
    device_versions.register()
    CONVERTERS["Event", CORE, EVENTS] = _renamed(_EVENT_NAMES, EVENTS)
    CONVERTERS["Event", EVENTS, CORE] = _renamed(names, CORE)
    CONVERTERS["HorizontalPodAutoscaler", V2, V1] = autoscaler_to_v1
    CONVERTERS["HorizontalPodAutoscaler", V1, V2] = autoscaler_to_v2

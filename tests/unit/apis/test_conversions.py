"""Conversions between versions: recorded views, and nothing lost on the way there and back."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from fastapi_core.apis.conversions import autoscaler_to_v1, autoscaler_to_v2
from fastapi_core.apis.resources import builtin
from fastapi_core.registry.conversion import converter
from fastapi_core.schema.normalize import normalize
from fastapi_core.schema.tables import type_of

GOLDEN = Path(__file__).parents[4] / "shared" / "golden" / "builtins"
SAMPLES = Path(__file__).parents[4] / "shared" / "facts" / "samples"
BUILTIN = {(d.group, d.version, d.kind): d for d in builtin()}
CORE_EVENT, NEW_EVENT = BUILTIN["", "v1", "Event"], BUILTIN["events.k8s.io", "v1", "Event"]
Tree = dict[str, Any]


def recorded(case: str, step: int) -> Tree:
    path = GOLDEN / f"{case}.json"
    if not path.exists():
        pytest.skip("the recordings are absent")
    return json.loads(path.read_text())["steps"][step]["expect"]["body"]


def printed(ref: str, tree: Tree) -> Tree:
    out = normalize(type_of(ref), {**tree, "metadata": {"annotations": tree["metadata"].get("annotations")}}).tree
    return {name: value for name, value in out.items() if name in ("metadata", "spec", "status")}


def test_recorded_v1_view_of_an_autoscaler() -> None:
    new, old = recorded("hpa-v1-v2-views", 0), recorded("hpa-v1-v2-views", 1)
    assert printed("autoscaling/v1.HorizontalPodAutoscaler", autoscaler_to_v1(new)) == printed(
        "autoscaling/v1.HorizontalPodAutoscaler", old
    )


def test_recorded_v2_view_of_an_autoscaler() -> None:
    old, new = recorded("hpa-v1-v2-views", 3), recorded("hpa-v1-v2-views", 4)
    assert printed("autoscaling/v2.HorizontalPodAutoscaler", autoscaler_to_v2(old)) == printed(
        "autoscaling/v2.HorizontalPodAutoscaler", new
    )


METRICS = [
    {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "memory",
            "container": "c",
            "target": {"type": "Utilization", "averageUtilization": 9},
        },
    },
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Ingress", "name": "i", "apiVersion": "networking.k8s.io/v1"},
            "metric": {"name": "rps", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "Value", "value": "7"},
        },
    },
    {
        "type": "External",
        "external": {
            "metric": {"name": "q", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "AverageValue", "averageValue": "3"},
        },
    },
    {"type": "Pods", "pods": {"metric": {"name": "p"}, "target": {"type": "AverageValue", "averageValue": "500m"}}},
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
]


def test_autoscalers_survive_the_way_there_and_back() -> None:
    tree = {
        "apiVersion": "autoscaling/v2",
        "metadata": {"name": "h", "annotations": {"own": "x"}},
        "spec": {
            "maxReplicas": 3,
            "metrics": METRICS,
            "behavior": {
                "scaleUp": {"selectPolicy": "Max", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]}
            },
        },
        "status": {
            "conditions": [{"type": "AbleToScale", "status": "True"}],
            # the v1 form always prints an average value
            "currentMetrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "current": {"averageUtilization": 5, "averageValue": "0"}},
                }
            ],
        },
    }
    before = copy.deepcopy(tree)
    old = autoscaler_to_v1(tree)
    assert tree == before
    assert old["spec"]["targetCPUUtilizationPercentage"] == 60
    assert old["status"]["currentCPUUtilizationPercentage"] == 5
    back = autoscaler_to_v2(old)
    ref = "autoscaling/v2.HorizontalPodAutoscaler"
    assert normalize(type_of(ref), back).tree == normalize(type_of(ref), tree).tree


def test_broken_annotations_are_dropped() -> None:
    tree = {"metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/metrics": "{bad"}}, "spec": {}}
    assert "metrics" not in autoscaler_to_v2(tree)["spec"]
    assert "annotations" not in autoscaler_to_v2(tree)["metadata"]


def test_recorded_views_of_an_event() -> None:
    convert = converter(CORE_EVENT, NEW_EVENT)
    assert convert is not None
    core, new = recorded("event-two-api-views", 0), recorded("event-two-api-views", 1)
    for tree in (core, new):
        tree["metadata"] = {}
        for name in list(tree):
            if tree[name] == "<time>":
                tree[name] = "2024-01-01T00:00:00Z"
    shown = normalize(NEW_EVENT.type, convert(core)).tree
    assert shown == normalize(NEW_EVENT.type, new).tree


@pytest.mark.skipif(not SAMPLES.exists(), reason="the samples are absent")
def test_events_survive_the_way_there_and_back() -> None:
    tree = json.loads((SAMPLES / "events.k8s.io.v1.Event.json").read_text())
    there, back = converter(NEW_EVENT, CORE_EVENT), converter(CORE_EVENT, NEW_EVENT)
    assert there is not None
    assert back is not None
    assert back(there(tree)) == tree
    assert set(there(tree)) - {"kind", "apiVersion"} == set(CORE_EVENT.type.fields)

"""How often an error of metadata stands in the causes of an update: once for each look its kind takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fastapi_core.apis.resources import builtin
from fastapi_core.registry.metadata import validate_metadata

BUILTIN = {(d.group, d.kind): d for d in builtin()}


def count(group: str, kind: str, field: str, *, subresource: bool = False, **changed: Any) -> int:
    definition = BUILTIN[group, kind]
    base = {"name": "x", "namespace": "ns", "uid": "u"} if definition.namespaced else {"name": "x", "uid": "u"}
    found = validate_metadata(
        {"metadata": base | changed}, {"metadata": base}, definition=definition, subresource=subresource
    )
    return sum(error.field == field for error in found)


@pytest.mark.parametrize(
    ("group", "kind", "annotations", "uid", "finalizers"),
    [
        ("", "ConfigMap", 4, 2, 2),
        ("apps", "Deployment", 3, 2, 1),
        ("", "LimitRange", 3, 1, 1),
        ("", "PersistentVolume", 4, 1, 2),
        ("policy", "PodDisruptionBudget", 2, 1, 0),
        ("", "Event", 2, 1, 0),
        ("events.k8s.io", "Event", 3, 2, 1),
        ("coordination.k8s.io", "Lease", 3, 2, 0),
        ("discovery.k8s.io", "EndpointSlice", 3, 1, 1),
        ("node.k8s.io", "RuntimeClass", 4, 2, 0),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", 3, 1, 0),
    ],
)
def test_updates(group: str, kind: str, annotations: int, uid: int, finalizers: int) -> None:
    assert count(group, kind, "metadata.annotations", annotations={"a b": ""}) == annotations
    assert count(group, kind, "metadata.uid", uid="v") == uid
    assert count(group, kind, "metadata.finalizers[0]", finalizers=["x"]) == finalizers
    assert count(group, kind, "metadata.labels", labels={"a": "b"}) == 0


@pytest.mark.parametrize(
    ("group", "kind", "annotations"),
    [("apps", "Deployment", 3), ("", "Pod", 3), ("batch", "CronJob", 2), ("policy", "PodDisruptionBudget", 2)],
)
def test_updates_of_the_status(group: str, kind: str, annotations: int) -> None:
    assert count(group, kind, "metadata.annotations", subresource=True, annotations={"a b": ""}) == annotations


def test_custom_resources_are_judged_twice() -> None:
    definition = replace(BUILTIN["", "ConfigMap"], custom=True)
    old = {"name": "a", "namespace": "n"}
    new = {**old, "labels": {"bad key!": "v"}}
    assert len(validate_metadata({"metadata": new}, {"metadata": old}, definition=definition)) == 3

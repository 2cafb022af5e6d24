"""How often the metadata of an update is judged, and what a delete of a namespace says."""

from dataclasses import replace
from typing import Any

import pytest

from fastapi_core.apis.resources import builtin
from fastapi_core.errors import APIError
from fastapi_core.registry import lifecycle
from fastapi_core.registry.definition import ResourceDefinition
from fastapi_core.registry.metadata import validate_metadata

BY_KIND: dict[tuple[str, str], ResourceDefinition] = {(d.group, d.kind): d for d in builtin()}


def causes(group: str, kind: str, changed: dict[str, Any]) -> int:
    definition = BY_KIND[group, kind]
    old = {"name": "a", "uid": "u", **({"namespace": "n"} if definition.namespaced else {})}
    return len(validate_metadata({"metadata": {**old, **changed}}, {"metadata": old}, definition=definition))


@pytest.mark.parametrize(
    ("group", "kind", "label", "qualified", "immutable"),
    [
        ("", "ConfigMap", 4, 2, 2),
        ("", "PersistentVolume", 4, 2, 1),
        ("", "Event", 2, 0, 1),
        ("apps", "Deployment", 3, 1, 2),
        ("coordination.k8s.io", "Lease", 3, 0, 2),
        ("discovery.k8s.io", "EndpointSlice", 3, 1, 1),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", 3, 0, 1),
        ("policy", "PodDisruptionBudget", 2, 0, 1),
    ],
)
def test_kinds_judge_again(group: str, kind: str, label: int, qualified: int, immutable: int) -> None:
    assert causes(group, kind, {"labels": {"bad key!": "v"}}) == label
    assert causes(group, kind, {"finalizers": ["noslash"]}) == qualified
    assert causes(group, kind, {"deletionGracePeriodSeconds": 5}) == immutable
    assert causes(group, kind, {"labels": {"a": "b"}}) == 0


def test_custom_resources_are_judged_twice() -> None:
    definition = replace(BY_KIND["", "ConfigMap"], custom=True)
    old = {"name": "a", "namespace": "n"}
    new = {**old, "labels": {"bad key!": "v"}}
    assert len(validate_metadata({"metadata": new}, {"metadata": old}, definition=definition)) == 3


def test_preconditions_of_a_namespace_are_those_of_an_update() -> None:
    space = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}}
    lifecycle.check_preconditions(space, BY_KIND["", "Namespace"], "u", "7")
    with pytest.raises(APIError) as caught:
        lifecycle.check_preconditions(space, BY_KIND["", "Namespace"], "u", "8")
    assert caught.value.message == (
        'Operation cannot be fulfilled on namespaces "a": Precondition failed: '
        "ResourceVersion in precondition: 8, ResourceVersion in object meta: 7"
    )


@pytest.mark.parametrize(
    ("orphan", "propagation", "left"),
    [
        (None, "", ["x.y/z"]),
        (None, "Orphan", ["x.y/z", "orphan"]),
        (True, "", ["x.y/z", "orphan"]),
        (False, "", ["x.y/z", "foregroundDeletion"]),
    ],
)
def test_an_orphaned_namespace_says_so(orphan: bool | None, propagation: str, left: list[str]) -> None:
    space = {"metadata": {"name": "a", "finalizers": ["x.y/z"]}, "spec": {"finalizers": ["kubernetes"]}}
    plan = lifecycle.plan_deletion(BY_KIND["", "Namespace"], space, grace=None, orphan=orphan, propagation=propagation)
    assert plan.tree["metadata"]["finalizers"] == left
    assert space["metadata"]["finalizers"] == ["x.y/z"]  # type: ignore[index]

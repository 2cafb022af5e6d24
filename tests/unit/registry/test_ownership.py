"""What the endpoints of built-in resources can own."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.apis.resources import builtin
from fastapi_core.registry.definition import ResourceDefinition
from fastapi_core.registry.ownership import RESET, builtin_versions, reset_fields, tracker

DEFINITIONS = {(d.group_version, d.kind): d for d in builtin() if d.key_prefix}
NOW = "2024-01-01T00:00:00Z"


def definition(version: str, kind: str) -> ResourceDefinition:
    return DEFINITIONS[version, kind]


def owned(version: str, kind: str, subresource: str, old: Any, new: Any) -> Any:
    tree = {"metadata": {}, **new}
    before = {"metadata": {"managedFields": [_entry(version, {"f:x": {}})]}, **old}
    tracker(definition(version, kind), subresource).update(before, tree, "m", NOW)
    return next((e["fieldsV1"] for e in tree["metadata"]["managedFields"] if e["manager"] == "m"), None)


def _entry(version: str, fields: Any) -> Any:
    kind = {"fieldsType": "FieldsV1", "fieldsV1": fields}
    return {"manager": "other", "operation": "Update", "apiVersion": version, **kind}


def test_the_table_names_what_exists() -> None:
    kinds = {(d.group, d.kind): d for d in builtin()}
    optional = {
        ("internal.apiserver.k8s.io", "StorageVersion"),
        ("resource.k8s.io", "DeviceTaintRule"),
        ("resource.k8s.io", "ResourcePoolStatusRequest"),
        ("scheduling.k8s.io", "PodGroup"),
        ("storagemigration.k8s.io", "StorageVersionMigration"),
    }
    for group, kind, subresource in RESET:
        if (group, kind) in optional and (group, kind) not in kinds:
            continue
        assert not subresource or subresource in kinds[group, kind].subresources


@pytest.mark.parametrize("found", DEFINITIONS.values(), ids=lambda d: f"{d.group_version}.{d.kind}")
def test_status_is_owned_through_status_only(found: ResourceDefinition) -> None:
    if "status" not in found.subresources:
        assert reset_fields(found, "") == RESET.get((found.group, found.kind, ""), ())
        return
    assert ("status",) in reset_fields(found, "")
    assert ("spec",) in reset_fields(found, "status")
    assert ("status",) not in reset_fields(found, "status")


def test_spec_and_status_apart() -> None:
    old = {"spec": {"replicas": 1}, "status": {"replicas": 1}}
    new = {"spec": {"replicas": 2}, "status": {"replicas": 2}, "metadata": {"labels": {"a": "b"}}}
    labels: Any = {"f:labels": {".": {}, "f:a": {}}}
    main = owned("apps/v1", "Deployment", "", old, new)
    assert main == {"f:metadata": labels, "f:spec": {"f:replicas": {}}}
    assert owned("apps/v1", "Deployment", "status", old, new) == {"f:status": {"f:replicas": {}}}
    assert owned("apps/v1", "ReplicaSet", "status", old, new) == {"f:metadata": labels, "f:status": {"f:replicas": {}}}


def test_requests_for_certificates_own_neither() -> None:
    new = {"spec": {"request": "eA=="}, "status": {"certificate": "eA==", "conditions": [{"type": "Approved"}]}}
    kind = ("certificates.k8s.io/v1", "CertificateSigningRequest")
    assert owned(*kind, "", {}, new) is None
    assert owned(*kind, "status", {}, new) == {"f:status": {"f:certificate": {}}}
    approval = owned(*kind, "approval", {}, new)
    assert approval == {"f:status": {"f:conditions": {".": {}, 'k:{"type":"Approved"}': {".": {}, "f:type": {}}}}}


def test_parts_of_pods_own_what_was_sent_whatever_they_take() -> None:
    old = {"spec": {"containers": [{"name": "a"}]}}
    new = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "x"}]}}
    image: Any = {"f:containers": {'k:{"name":"a"}': {"f:image": {}}}}
    for part in ("resize", "ephemeralcontainers"):
        assert owned("v1", "Pod", part, old, new) == {
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": image,
        }


def test_autoscalers_are_followed_in_both_versions() -> None:
    found = builtin_versions(definition("autoscaling/v2", "HorizontalPodAutoscaler"))
    version = found.get("autoscaling/v1")
    assert version is not None
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}},
    }
    tree = {"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, "metrics": [metric], "scaleTargetRef": None}}
    converted = version.into(tree)
    assert converted["spec"]["targetCPUUtilizationPercentage"] == 5
    assert version.back(converted)["spec"]["metrics"] == [metric]


def test_events_are_followed_into_the_other_group() -> None:
    found = builtin_versions(definition("v1", "Event"))
    version = found.get("events.k8s.io/v1")
    assert version is not None
    assert version.into({"metadata": {}, "message": "m"})["note"] == "m"
    assert found.get("v2") is None
    assert found.get("apps/v1") is None

"""Ownership of replicas between a workload and its Scale."""

from __future__ import annotations

from typing import Any

from fastapi_core.patch.scale import to_scale, to_workload

PATHS: dict[str, tuple[str, ...]] = {"apps/v1": ("f:spec", "f:replicas")}
REPLICAS: Any = {"f:spec": {"f:replicas": {}}}


def entry(manager: str, operation: str, fields: Any, version: str = "apps/v1", **more: str) -> dict[str, Any]:
    made = {"manager": manager, "operation": operation, "apiVersion": version}
    time = more.pop("time", "2024-01-01T00:00:00Z")
    if time:
        made["time"] = time
    return {**made, "fieldsType": "FieldsV1", "fieldsV1": fields, **more}


def test_a_scale_shows_the_owners_of_replicas() -> None:
    entries = [
        entry("a", "Apply", {"f:spec": {"f:replicas": {}, "f:paused": {}}}),
        entry("b", "Update", {"f:spec": {"f:paused": {}}}),
        entry("c", "Update", REPLICAS, "apps/v0"),
    ]
    assert to_scale(entries, PATHS) == [entry("a", "Apply", REPLICAS, "autoscaling/v1")]
    assert to_scale(None, PATHS) == []


def test_owners_that_stay_keep_their_entries() -> None:
    entries = [entry("a", "Apply", {"f:spec": {"f:replicas": {}, "f:paused": {}}})]
    assert to_workload(entries, to_scale(entries, PATHS), PATHS, "apps/v1") == entries


def test_replicas_are_taken_from_who_lost_them() -> None:
    entries = [entry("a", "Apply", {"f:spec": {"f:replicas": {}, "f:paused": {}}}), entry("b", "Apply", REPLICAS)]
    scale = [entry("s", "Update", REPLICAS, "autoscaling/v1", subresource="scale")]
    assert to_workload(entries, scale, PATHS, "apps/v1") == [
        entry("a", "Apply", {"f:spec": {"f:paused": {}}}),
        entry("s", "Update", REPLICAS, time="", subresource="scale"),
    ]


def test_entries_of_unknown_versions_go_and_others_stay() -> None:
    entries = [entry("a", "Update", {"f:spec": {}}, "apps/v0"), entry("b", "Update", {"f:spec": {"f:paused": {}}})]
    scale = [entry("x", "Update", {"f:spec": {}}, "autoscaling/v1")]
    assert to_workload(entries, scale, PATHS, "apps/v1") == entries[1:]

"""PartialObjectMetadata of daemon sets leaves out the annotation that only their whole objects have."""

from __future__ import annotations

import json

from fastapi_core._ext.objects import CachedObject
from fastapi_core.registry.printers import inner_metadata, partial_metadata

GENERATION = "deprecated.daemonset.template.generation"


def shown(key: str, annotations: dict[str, str]) -> dict[str, object]:
    metadata = {"name": "a", "namespace": "ns", "uid": "u", "annotations": annotations}
    value = {"kind": "A", "apiVersion": "v1", "metadata": metadata}
    obj = CachedObject(key, "ns", "a", json.dumps(value, separators=(",", ":")).encode(), 7, 7)
    found: dict[str, object] = json.loads(partial_metadata(obj))["metadata"]
    assert (inner_metadata(obj) is None) == ("daemonsets/ns" not in key)
    return found


def test_daemon_sets() -> None:
    assert "annotations" not in shown("/registry/daemonsets/ns/a", {GENERATION: "1"})
    assert shown("/registry/daemonsets/ns/a", {GENERATION: "1", "b": "c"})["annotations"] == {"b": "c"}


def test_others_keep_it() -> None:
    assert shown("/registry/pods/daemonsets/a", {GENERATION: "1"})["annotations"] == {GENERATION: "1"}

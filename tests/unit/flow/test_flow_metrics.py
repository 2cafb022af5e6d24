"""The metrics of flow control have the names, labels and buckets of the reference."""

from __future__ import annotations

import json
from pathlib import Path

from fastapi_core.obs.flow_catalog import FlowMetrics
from fastapi_core.obs.metrics import Histogram, Registry


def test_names_labels_and_buckets(shared: Path) -> None:
    known = json.loads((shared / "facts/metrics.json").read_text())["metrics"]
    registry = Registry()
    FlowMetrics(registry)
    assert len(registry.families) > 20
    for name, family in registry.families.items():
        fact = known[name]
        assert family.kind == fact["type"], name
        assert sorted(family.label_names) == sorted(fact["labels"]), name
        assert family.stability.lower() == fact["stability"], name
        if family.kind == "histogram":
            child = family.labels(*("x",) * len(family.label_names))
            assert isinstance(child, Histogram)
            assert list(child.bounds) == fact["buckets"], name

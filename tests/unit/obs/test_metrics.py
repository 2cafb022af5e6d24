from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core.obs import process
from fastapi_core.obs.catalog import Metrics
from fastapi_core.obs.metrics import Gauge, Histogram, Registry, number

FACTS = Path(__file__).parents[3].parent / "shared/facts/metrics.json"


def test_exposition_of_each_kind() -> None:
    registry = Registry()
    registry.counter("b_total", "Things.", ("verb", "code"), stability="STABLE").labels("GET", "200").inc(3)
    registry.gauge("a_size", 'Say "x"\nand \\.', stability="").labels().set(1.5)
    registry.histogram("c_seconds", "Time.", ("verb",), buckets=(0.1, 1)).labels('a"b\\c\n').observe(0.5)
    assert registry.expose().decode() == (
        '# HELP a_size Say "x"\\nand \\\\.\n# TYPE a_size gauge\na_size 1.5\n'
        '# HELP b_total [STABLE] Things.\n# TYPE b_total counter\nb_total{code="200",verb="GET"} 3\n'
        "# HELP c_seconds [ALPHA] Time.\n# TYPE c_seconds histogram\n"
        'c_seconds_bucket{verb="a\\"b\\\\c\\n",le="0.1"} 0\n'
        'c_seconds_bucket{verb="a\\"b\\\\c\\n",le="1"} 1\n'
        'c_seconds_bucket{verb="a\\"b\\\\c\\n",le="+Inf"} 1\n'
        'c_seconds_sum{verb="a\\"b\\\\c\\n"} 0.5\nc_seconds_count{verb="a\\"b\\\\c\\n"} 1\n'
    )


def test_a_family_without_children_is_silent() -> None:
    registry = Registry()
    registry.counter("x_total", "X.", ("a",))
    assert registry.expose() == b""


def test_bucket_limits_are_inclusive() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (1.0, 1.1, 2.0, 2.1):
        histogram.observe(value)
    assert histogram.counts == [1, 2, 1]


def test_collectors_run_at_every_scrape() -> None:
    registry = Registry()
    gauge = registry.gauge("n", "N.").labels()
    registry.collector(lambda: gauge.inc())
    registry.expose()
    assert b"\nn 2\n" in registry.expose()


def test_reset_keeps_bound_children_and_gauges() -> None:
    registry = Registry()
    counter = registry.counter("a_total", "A.").labels()
    gauge: Gauge = registry.gauge("b", "B.").labels()
    histogram = registry.histogram("c", "C.", buckets=(1,)).labels()
    counter.inc()
    gauge.inc()
    histogram.observe(3)
    registry.reset()
    counter.inc()
    assert (counter.value, gauge.value, histogram.count) == (1, 1, 0)
    assert b"a_total 1\n" in registry.expose()


def test_wrong_number_of_labels_and_double_declaration() -> None:
    registry = Registry()
    family = registry.counter("a_total", "A.", ("x",))
    with pytest.raises(ValueError, match="has labels"):
        family.labels("1", "2")
    with pytest.raises(ValueError, match="declared twice"):
        registry.gauge("a_total", "A.")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (1.0, "1"), (-3.0, "-3"), (0.005, "0.005"), (999999.0, "999999"), (1e6, "1e+06"),
        (1234567.0, "1.234567e+06"),
        (305123328.0, "3.05123328e+08"), (1e21, "1e+21"), (1e-5, "1e-05"), (0.0001, "0.0001"), (1.25, "1.25"),
        (123456.789, "123456.789"), (math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN"), (10.5, "10.5"),
    ],
)  # fmt: skip
def test_numbers_as_go_prints_them(value: float, text: str) -> None:
    assert number(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_keep_their_value(value: float) -> None:
    assert float(number(value)) == value


def test_catalog_has_the_names_labels_and_buckets_of_the_reference() -> None:
    if not FACTS.exists():
        pytest.skip("facts are not here")
    facts = json.loads(FACTS.read_text())
    known = facts["slis"] | facts["metrics"]
    metrics = Metrics()
    process.register(metrics.registry)
    for name, family in metrics.registry.families.items():
        if name.startswith("fastapi_core_"):
            continue
        assert name in known, name
        fact = known[name]
        assert family.kind == fact["type"], name
        assert sorted(family.label_names) == sorted(fact["labels"]), name
        assert family.stability.lower() == fact["stability"], name
        if family.kind == "histogram":
            values = ("x",) * len(family.label_names)
            child = family.labels(*values)
            assert isinstance(child, Histogram)
            assert list(child.bounds) == [float(bound) for bound in fact["buckets"]], name


def test_process_metrics_are_read_from_the_kernel() -> None:
    registry = Registry()
    process.register(registry)
    lines = dict(line.split(" ") for line in registry.expose().decode().splitlines() if not line.startswith("#"))
    assert float(lines["process_resident_memory_bytes"]) > 1e6
    assert float(lines["process_start_time_seconds"]) > 1e9
    assert float(lines["process_open_fds"]) >= 1

"""Jobs: statuses that fit together, indexes, and templates that a suspended job may still change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core.apis.validation import indexes
from fastapi_core.apis.validation.batch import job_update
from fastapi_core.apis.validation.job_status import job_status
from fastapi_core.apis.validation.rules import Report

Tree = dict[str, Any]
TIME = "2024-01-01T00:00:00Z"


def conditions(*kinds: str) -> list[Tree]:
    return [{"type": kind, "status": "True"} for kind in kinds]


def told(new: Tree, old: Tree | None = None, **spec: Any) -> list[str]:
    report = Report({"spec": spec, "status": old or {}})
    job_status({"spec": spec, "status": new}, "", report)
    return [str(error) for error in report]


@pytest.mark.parametrize(
    ("new", "spec", "expected"),
    [
        ({"active": -1}, {}, "status.active: Invalid value: -1"),
        ({"ready": 2, "active": 1}, {}, "cannot set more ready pods than active"),
        ({"completionTime": TIME}, {}, "cannot set completionTime when there is no Complete=True condition"),
        ({"completedIndexes": "0"}, {"completions": 2}, "non-indexed completion mode"),
        ({"completedIndexes": "5"}, {"completions": 2, "completionMode": "Indexed"}, 'too large index: "5"'),
        ({"failedIndexes": "0"}, {"completions": 2}, "backoffLimitPerIndex is null"),
        ({"uncountedTerminatedPods": {"succeeded": ["a", "a"]}}, {}, 'Duplicate value: "a"'),
        ({"conditions": conditions("Failed"), "startTime": TIME}, {}, "without the FailureTarget=true condition"),
        (
            {"conditions": conditions("Failed", "FailureTarget"), "startTime": TIME, "active": 1},
            {},
            "active>0 is invalid for finished job",
        ),
        ({"conditions": conditions("Failed", "FailureTarget")}, {}, "startTime is required for finished job"),
    ],
)
def test_statuses(new: Tree, spec: Tree, expected: str) -> None:
    problems = told(new, **spec)
    assert len(problems) == 1
    assert expected in problems[0]


def test_an_end_is_an_end() -> None:
    done = {"conditions": conditions("Complete", "SuccessCriteriaMet"), "startTime": TIME, "completionTime": TIME}
    assert told(done) == []
    assert told(done, done) == []
    assert [text.rpartition(": ")[2] for text in told({"startTime": TIME}, done)] == [
        "cannot disable the terminal Complete=True condition",
        "cannot disable the SuccessCriteriaMet=True condition",
    ]
    assert told({"failed": 1}, {"failed": 2}) == ["status.failed: Invalid value: 1: cannot decrease the failed counter"]


numbers = st.lists(st.integers(0, 30), unique=True, max_size=8).map(sorted)


@given(numbers, numbers)
def test_overlaps_are_found(one: list[int], other: list[int]) -> None:
    both = sorted(set(one) & set(other))
    texts = [",".join(map(str, each)) for each in (one, other)]
    assert indexes.overlap(texts[0], texts[1], 31) == (both[0] if both else None)
    assert indexes.count(texts[0], 31) == len(one)


def test_a_suspended_job_may_be_steered() -> None:
    inner = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    old: Tree = {"spec": {"suspend": True, "template": {"spec": inner}}}
    steered: Tree = {"spec": {"suspend": True, "template": {"spec": {**inner, "nodeSelector": {"a": "b"}}}}}

    def about_template(before: Tree) -> list[str]:
        report = Report(before)
        job_update(steered, "", report)
        return [error.field for error in report if error.detail == "field is immutable" and "template" in error.field]

    assert about_template(old) == []
    assert about_template({**old, "status": {"startTime": TIME}}) == ["spec.template"]
    assert about_template({**old, "status": {"startTime": TIME, "conditions": conditions("Suspended")}}) == []
    assert about_template({"spec": {**old["spec"], "suspend": False}}) == ["spec.template"]

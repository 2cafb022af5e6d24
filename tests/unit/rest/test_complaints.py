"""Complaints about bodies as Warnings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fastapi_core.rest.body import warn

LINES = 'yaml: unmarshal errors:\n  line 2: key "a" already set in map\n  line 3: key "b" already set in map'


@pytest.mark.parametrize(
    ("complaint", "warnings"),
    [
        ('unknown field "x"', ['unknown field "x"']),
        (LINES, ['line 2: key "a" already set in map', 'line 3: key "b" already set in map']),
        ("error converting YAML to JSON: " + LINES[:60], ['line 2: key "a" already set in map']),
    ],
)  # fmt: skip
def test_lines_of_yaml_are_warnings_of_their_own(complaint: str, warnings: list[str]) -> None:
    found: list[str] = []
    warn(cast(Any, SimpleNamespace(warn=found.append)), complaint)
    assert found == warnings

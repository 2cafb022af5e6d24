"""Structural schemas: where types may stand inside anyOf."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.structural import problems

PAIR = [{"type": "integer"}, {"type": "string"}]


def complaints(schema: dict[str, Any]) -> list[str]:
    return [str(error) for error in problems({"type": "object", "properties": {"x": schema}}, "schema")]


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": PAIR},
        {"anyOf": PAIR, "pattern": "^[0-9]+$"},
        {"allOf": [{"anyOf": PAIR}]},
        {"allOf": [{"anyOf": PAIR}, {"pattern": "^a"}]},
        {},
    ],
)
def test_int_or_string_may_say_so(schema: dict[str, Any]) -> None:
    assert complaints({"x-kubernetes-int-or-string": True, **schema}) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "anyOf": PAIR[:1]},
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "boolean"}]},
        {"x-kubernetes-int-or-string": True, "oneOf": PAIR},
    ],
)
def test_types_stand_nowhere_else(schema: dict[str, Any]) -> None:
    assert any("must be empty to be structural" in text for text in complaints(schema))

"""Configurations are judged inside of what is owned as a whole, too."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.patch import conform
from fastapi_core.patch.shapes import from_schema, shape_of
from fastapi_core.schema.tables import type_of

POD = shape_of(type_of("core/v1.PodSpec"))
CUSTOM = from_schema(
    {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"type": "string"}},
            "whole": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "properties": {"a": {"type": "integer"}},
            },
            "map": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "additionalProperties": {"type": "string"},
            },
        },
    },
    shape_of(type_of("meta/v1.ObjectMeta")),
)


@pytest.mark.parametrize(
    ("tree", "found"),
    [
        ({"tolerations": [{"key": "a"}, None], "nodeSelector": {"a": "b"}}, []),
        ({"tolerations": [{"key": "a"}, {"foo": 1}]}, [(".tolerations[1].foo", "field not declared in schema")]),
        ({"tolerations": ["x"]}, [(".tolerations[0]", "expected map, got &{x}")]),
        (
            {"topologySpreadConstraints": [{"topologyKey": "k", "whenUnsatisfiable": "w", "labelSelector": {"x": 1}}]},
            [
                (
                    '.topologySpreadConstraints[topologyKey="k",whenUnsatisfiable="w"].labelSelector.x',
                    "field not declared in schema",
                )
            ],
        ),
    ],
)
def test_built_in(tree: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert conform.problems(POD, tree) == found


@pytest.mark.parametrize(
    ("tree", "found"),
    [
        ({"list": ["a"], "whole": {"a": 1}, "map": {"b": "c"}}, []),
        ({"list": [1]}, [(".list[0]", "expected string, got &value.valueUnstructured{Value:1}")]),
        ({"whole": {"b": 1}}, [(".whole.b", "field not declared in schema")]),
        ({"map": {"b": 1}}, [(".map.b", "expected string, got &value.valueUnstructured{Value:1}")]),
    ],
)
def test_custom(tree: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert conform.problems(CUSTOM, tree) == found

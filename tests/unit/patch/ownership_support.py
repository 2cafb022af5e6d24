"""Objects and shapes the ownership tests share."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from fastapi_core.patch.shapes import Shape, from_schema, shape_of
from fastapi_core.schema.tables import type_of


def _load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / "oracles" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


oracle = _load("ownership_oracle")

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "count": {"type": "integer"},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
                "list": {"type": "array", "items": {"type": "string"}},
                "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "items": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "properties": {
                            "port": {"type": "integer"},
                            "protocol": {"type": "string", "default": "TCP"},
                            "value": {"type": "string"},
                            "inner": {"type": "object", "additionalProperties": {"type": "string"}},
                        },
                    },
                },
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        }
    },
}


def custom_shape() -> Shape:
    """A custom resource with one field of every kind."""
    return from_schema(SCHEMA, shape_of(type_of("meta/v1.ObjectMeta")))


_texts = st.sampled_from(["a", "b", "c"])
_maps = st.dictionaries(_texts, _texts, max_size=3)
_json = st.recursive(
    st.one_of(st.booleans(), st.integers(-2, 2), _texts),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(_texts, inner, max_size=2)),
    max_leaves=4,
)
_item = st.fixed_dictionaries(
    {"port": st.integers(1, 3)},
    optional={"protocol": st.sampled_from(["TCP", "UDP"]), "value": _texts, "inner": _maps},
)


def _identity(item: dict[str, Any]) -> tuple[int, str]:
    return item["port"], item.get("protocol", "TCP")


specs = st.fixed_dictionaries(
    {},
    optional={
        "text": _texts,
        "count": st.integers(0, 2),
        "map": _maps,
        "whole": st.dictionaries(st.just("a"), _texts, max_size=1),
        "list": st.lists(_texts, max_size=2),
        "set": st.lists(_texts, unique=True, max_size=3),
        "items": st.lists(_item, max_size=3, unique_by=_identity),
        "any": st.dictionaries(_texts, _json, max_size=2),
    },
)
labels = st.dictionaries(_texts, _texts, max_size=2)


@st.composite
def objects(draw: Any) -> dict[str, Any]:
    """A custom object as a client would send it."""
    tree: dict[str, Any] = {"apiVersion": "x.example/v1", "kind": "X", "metadata": {"name": "n"}}
    if draw(st.booleans()):
        tree["metadata"]["labels"] = draw(labels)
    if draw(st.integers(0, 4)):
        tree["spec"] = draw(specs)
    return tree


def _solid(value: Any) -> Any:
    """A value without empty objects and lists: applied, they own a place and fill it with nothing."""
    if isinstance(value, dict):
        kept = {name: _solid(inner) for name, inner in value.items()}
        return {name: inner for name, inner in kept.items() if inner not in ({}, [])}
    if isinstance(value, list):
        return [item for item in map(_solid, value) if item not in ({}, [])]
    return value


solid_objects = objects().map(_solid)

elements = st.sampled_from(
    ["f:a", "f:b", "f:c", 'k:{"port":80}', 'k:{"port":8080}', 'k:{"name":"x"}', 'v:"a"', "v:1", "v:true", "i:2", "i:10"]
)
path_sets = st.frozensets(st.lists(elements, min_size=1, max_size=4).map(tuple), max_size=8)

"""The compiled field sets and walks equal the oracle, down to the order of members; so do the errors."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core._ext import fieldset
from fastapi_core.patch import conform
from fastapi_core.patch import fieldset as documents
from fastapi_core.patch.shapes import DEDUCED, Shape, from_schema, shape_of, without
from fastapi_core.schema.tables import type_of
from tests.oracles import fieldset as plain
from tests.oracles import fieldwalks

METADATA = shape_of(type_of("meta/v1.ObjectMeta"))
SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "number": {"type": "number"},
        "flag": {"type": "boolean"},
        "port": {"x-kubernetes-int-or-string": True},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
        "list": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "items": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {
                "type": "object",
                "properties": {
                    "port": {"type": "integer"},
                    "protocol": {"type": "string", "default": "TCP"},
                    "text": {"type": "string"},
                    "map": {"type": "object", "additionalProperties": {"type": "string"}},
                    "named": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {"type": "object", "properties": {"name": {"type": "string"}}},
                    },
                },
            },
        },
    },
}
CUSTOM = from_schema({"type": "object", "properties": {"spec": SCHEMA, "status": SCHEMA}}, METADATA)
SHAPES = st.sampled_from(
    [
        CUSTOM,
        without(CUSTOM, [("status",), ("metadata", "name"), ("spec", "map", "a")]),
        from_schema(None, METADATA),
        DEDUCED,
        shape_of(type_of("core/v1.Pod")),
        shape_of(type_of("apps/v1.Deployment")),
    ]
)

TEXTS = st.sampled_from(["", "a", "b", "a-b", 'q"', "é", "x" * 300])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-1, 2), st.sampled_from([1.0, 0.5]), TEXTS)
NAMES = st.sampled_from(["a", "b", "c", "nope"])
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=5
)


def odd(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what is expected, now and then anything."""
    return st.integers(0, 9).flatmap(lambda roll: JSON if roll == 0 else usual)


def some(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={name: odd(value) for name, value in members.items()})


MAPS = st.dictionaries(NAMES, TEXTS, max_size=3)
NAMED = st.lists(odd(some(name=TEXTS, value=TEXTS)), max_size=4)
ITEMS = st.lists(
    odd(
        some(
            port=st.integers(1, 3) | st.sampled_from([1.0, True]),
            protocol=st.sampled_from(["TCP", "UDP"]),
            text=TEXTS,
            map=MAPS,
            named=NAMED,
            name=TEXTS,
        )
    ),
    max_size=4,
)
SPECS = some(
    text=TEXTS,
    number=st.integers(0, 1) | st.just(1.0),
    flag=st.booleans(),
    port=st.integers(0, 1) | TEXTS,
    map=MAPS,
    whole=MAPS,
    list=st.lists(TEXTS, max_size=2),
    set=st.lists(TEXTS, max_size=4),
    any=JSON,
    items=ITEMS,
    containers=NAMED,
    securityContext=MAPS,
    strategy=MAPS,
    template=some(spec=some(containers=NAMED), metadata=some(labels=MAPS)),
    nope=JSON,
)
OBJECTS = some(
    kind=TEXTS,
    metadata=some(name=TEXTS, labels=MAPS, annotations=MAPS, finalizers=st.lists(TEXTS, max_size=3)),
    spec=SPECS,
    status=SPECS,
    data=JSON,
)


@st.composite
def changed(draw: Any, value: Any) -> Any:
    """Something like the value, in other objects."""
    roll = draw(st.integers(0, 9))
    if roll == 0:
        return draw(JSON)
    if isinstance(value, dict):
        out = {name: draw(changed(inner)) for name, inner in value.items() if draw(st.integers(0, 6))}
        return out if draw(st.booleans()) else dict(reversed(out.items()))
    if isinstance(value, list):
        kept = [draw(changed(item)) for item in value if draw(st.integers(0, 6))]
        return kept if draw(st.integers(0, 4)) else kept + kept[:1]
    return value


@st.composite
def pairs(draw: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two objects that have something in common."""
    one = draw(OBJECTS)
    other = draw(changed(one)) if draw(st.booleans()) else draw(OBJECTS)
    return one, other if isinstance(other, dict) else {}


ELEMENTS = st.sampled_from(
    [
        *("f:" + name for name in ("a", "b", "kind", "metadata", "labels", "spec", "items", "map", "named", "text", "whole")),
        *("f:" + name for name in ("containers", "name", "value", "strategy", "template", "finalizers", "set", "any")),
        'k:{"port":1,"protocol":"TCP"}', 'k:{"port":2,"protocol":"UDP"}', 'k:{"name":"a"}', 'k:{"name":"a-b"}',
        'k:{"name":"b"}', 'v:"a"', 'v:"a-b"', "v:1", "v:true", "v:[1]", "v:null", "i:2", "i:10",
    ]
)  # fmt: skip
SETS = st.frozensets(st.lists(ELEMENTS, min_size=1, max_size=5).map(tuple), max_size=8).map(
    lambda paths: documents.of(*paths)
)


def outcome(run: Callable[..., Any], *given_: Any) -> str:
    """The result with its order, or the error; what is given stays as it is."""
    before = copy.deepcopy(given_[1:])
    try:
        result = run(*given_)
    except (fieldset.ItemError, AttributeError, TypeError) as error:
        text = str(error) if isinstance(error, fieldset.ItemError) else "not the kind that was checked before"
        return f"error: {text}"
    finally:
        assert json.dumps(given_[1:]) == json.dumps(before)
    return json.dumps(result)


def owned(shape: Shape, tree: dict[str, Any]) -> dict[str, Any]:
    try:
        return fieldset.field_set(shape, tree)
    except fieldset.ItemError:
        return {}


@given(SETS, SETS)
@settings(max_examples=200)
def test_algebra(left: dict[str, Any], right: dict[str, Any]) -> None:
    for name in ("union", "intersection", "difference", "covers"):
        compiled, wanted = getattr(fieldset, name), getattr(plain, name)
        assert json.dumps(compiled(left, right)) == json.dumps(wanted(left, right)), name
        assert json.dumps(compiled(left, copy.deepcopy(left))) == json.dumps(wanted(left, left)), name
    assert fieldset.union(left, copy.deepcopy(left)) is left
    assert fieldset.difference(left, {}) is left


@given(st.lists(ELEMENTS | st.just("."), max_size=8, unique=True))
@settings(max_examples=100)
def test_order(elements: list[str]) -> None:
    node: dict[str, Any] = {element: {} for element in elements}
    assert list(fieldset.ordered(node)) == list(plain.ordered(node))
    assert [fieldset.rank(element) for element in elements] == [plain.rank(element) for element in elements]


@given(SHAPES, OBJECTS)
@settings(max_examples=200)
def test_paths(shape: Shape, tree: dict[str, Any]) -> None:
    assert outcome(fieldset.field_set, shape, tree) == outcome(fieldwalks.field_set, shape, tree)


@given(SHAPES, OBJECTS, SETS, OBJECTS)
@settings(max_examples=300)
def test_naming_just_these_paths(
    shape: Shape, tree: dict[str, Any], fields: dict[str, Any], other: dict[str, Any]
) -> None:
    own = owned(shape, tree)
    for known in (own, fields, owned(shape, other)):
        found = outcome(fieldset.names_just, shape, tree, known)
        if found == "true":
            assert fieldwalks.field_set(shape, tree) == known
        elif not found.startswith("error") and fieldset.conforms(shape, tree):
            assert fieldwalks.field_set(shape, tree) != known


@given(SHAPES, pairs())
@settings(max_examples=200)
def test_differences(shape: Shape, trees: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = trees
    assert outcome(fieldset.compare, shape, {}, new) == outcome(fieldwalks.compare, shape, {}, new)
    assert outcome(fieldset.compare, shape, old, new) == outcome(fieldwalks.compare, shape, old, new)


@given(SHAPES, pairs())
@settings(max_examples=200)
def test_merges(shape: Shape, trees: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, config = trees
    if not fieldset.conforms(shape, config):
        return
    got, wanted = outcome(fieldset.merge, shape, old, config), outcome(fieldwalks.merge, shape, old, config)
    assert without_order(got) == without_order(wanted)
    if not got.startswith("error"):
        merged = fieldset.merge(shape, old, config)
        assert fieldset.same(merged, old) == fieldwalks.same(merged, old)
        assert (merged is old) <= fieldset.same(merged, old)


def without_order(text: str) -> Any:
    return text if text.startswith("error") else json.loads(text)


@given(SHAPES, OBJECTS, SETS)
@settings(max_examples=200)
def test_removals(shape: Shape, tree: dict[str, Any], fields: dict[str, Any]) -> None:
    for gone in (fields, owned(shape, tree), fieldset.with_named(shape, owned(shape, tree))):
        assert outcome(fieldset.remove, shape, tree, gone) == outcome(fieldwalks.remove, shape, tree, gone)


@given(SHAPES, OBJECTS, SETS)
@settings(max_examples=200)
def test_sets_through_shapes(shape: Shape, tree: dict[str, Any], fields: dict[str, Any]) -> None:
    for given_ in (fields, owned(shape, tree)):
        for name in ("with_named", "reconciled"):
            compiled, wanted = getattr(fieldset, name), getattr(fieldwalks, name)
            assert outcome(compiled, shape, given_) == outcome(wanted, shape, given_), name


@given(SHAPES, OBJECTS)
@settings(max_examples=200)
def test_conformity_is_having_no_problems(shape: Shape, tree: dict[str, Any]) -> None:
    assert fieldset.conforms(shape, tree) == (not conform.named_problems(shape, tree))


@given(JSON, JSON)
@settings(max_examples=200)
def test_equality(left: Any, right: Any) -> None:
    assert fieldset.same(left, right) == fieldwalks.same(left, right)
    assert fieldset.same(left, copy.deepcopy(left))


def test_deep_objects_end_in_an_error() -> None:
    deep: dict[str, Any] = {"a": 1}
    other: dict[str, Any] = {"a": 2}
    for _ in range(100_000):
        deep, other = {"a": deep}, {"a": other}
    for run in (
        lambda: fieldset.compare(DEDUCED, {}, deep),
        lambda: fieldset.compare(DEDUCED, deep, other),
        lambda: fieldset.field_set(DEDUCED, deep),
        lambda: fieldset.merge(DEDUCED, deep, other),
        lambda: fieldset.same(deep, other),
    ):
        with pytest.raises(RecursionError):
            run()
    while deep:
        deep, other = deep["a"], other["a"]
        if not isinstance(deep, dict):
            break

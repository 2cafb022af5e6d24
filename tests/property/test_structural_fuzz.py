"""Any JSON as the schema of a definition: it is refused by the decoder, or judged without an exception, and what is
accepted serves any object."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.errors import FieldError
from fastapi_core.schema.errors import TypeMismatch
from fastapi_core.schema.normalize import normalize
from fastapi_core.schema.tables import type_of
from fastapi_core.structural import compiled, problems

SCHEMA = "apiextensions.k8s.io/v1.JSONSchemaProps"
NAMES = st.sampled_from(["a", "b", "metadata", "kind", "name", "status", "x y", "", "é", "a.b[c]"])
TEXTS = st.one_of(
    st.sampled_from(
        ["object", "array", "string", "integer", "number", "boolean", "null", "odd", "", "\n", "date", "int32"]
    ),
    st.sampled_from(
        ["map", "set", "atomic", "granular", "(", "^a+$", "(a*)*b", "self.a == oldSelf.a", "self.all(x, x > 0)"]
    ),
    st.sampled_from([".a", ".a['x y']", ".", "[", "['", "FieldValueForbidden", "self", "'m'", "true"]),
    st.text(max_size=4),
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False), TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)
RULES = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "rule": TEXTS,
            "message": TEXTS,
            "messageExpression": TEXTS,
            "reason": TEXTS,
            "fieldPath": TEXTS,
            "optionalOldSelf": st.booleans(),
        },
    ),
    max_size=2,
)


def _schema(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    sizes, flags, several = st.integers(-1, 5), st.booleans(), st.lists(inner, max_size=2)
    named = st.dictionaries(NAMES, inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("type", "format", "pattern", "title", "description", "id", "$ref", "$schema"), TEXTS),
            **dict.fromkeys(("x-kubernetes-list-type", "x-kubernetes-map-type"), TEXTS),
            **dict.fromkeys(
                ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), sizes
            ),
            **dict.fromkeys(("maximum", "minimum", "multipleOf"), st.one_of(sizes, st.floats(allow_nan=False))),
            **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "nullable", "uniqueItems"), flags),
            **dict.fromkeys(("x-kubernetes-int-or-string", "x-kubernetes-embedded-resource"), flags),
            "x-kubernetes-preserve-unknown-fields": flags,
            **dict.fromkeys(("allOf", "anyOf", "oneOf"), several),
            **dict.fromkeys(("properties", "definitions", "patternProperties"), named),
            "not": inner,
            "items": st.one_of(inner, several),
            **dict.fromkeys(("additionalProperties", "additionalItems"), st.one_of(flags, inner)),
            "dependencies": st.dictionaries(NAMES, st.one_of(inner, st.lists(NAMES, max_size=2)), max_size=2),
            **dict.fromkeys(("default", "example"), VALUES),
            "enum": st.lists(VALUES, max_size=3),
            **dict.fromkeys(("required", "x-kubernetes-list-map-keys"), st.lists(NAMES, max_size=3)),
            "x-kubernetes-validations": RULES,
            "externalDocs": st.fixed_dictionaries({}, optional={"url": TEXTS}),
        },
    )


SCHEMAS = st.recursive(st.one_of(st.just({"type": "string"}), VALUES), _schema, max_leaves=6)


@settings(max_examples=200, deadline=None)
@given(SCHEMAS, st.booleans(), VALUES, VALUES)
def test_any_schema(schema: Any, status: bool, first: Any, second: Any) -> None:
    try:
        tree = normalize(type_of(SCHEMA), schema).tree
    except TypeMismatch:
        return
    found = problems(tree, "spec.schema", status=status)
    assert all(isinstance(error, FieldError) and str(error) and error.cause() for error in found)
    made = compiled(tree, preserve=False)
    objects = [{"apiVersion": "x/v1", "kind": "W", "metadata": {"name": "n"}, "a": value} for value in (first, second)]
    for value in objects:
        made.prune(value)
        made.coerce(value, drop=True)
        made.default(value)
    new, old = objects
    for error in (*made.validate(new), *made.validate(new, old, status=status)):
        assert str(error)
        assert error.cause()


@pytest.mark.parametrize("depth", [150, 240])
def test_nesting_is_limited(depth: int) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    assert "nested deeper" in str(problems(schema, "s")[0])


def test_deep_schemas_within_the_limit() -> None:
    schema: dict[str, Any] = {"type": "string", "maxLength": 1, "default": "a"}
    tree: Any = "ab"
    for _ in range(100):
        schema = {"type": "object", "properties": {"a": schema}}
        tree = {"a": tree, "z": 1}
    assert problems(schema, "s") == []
    made = compiled(schema, preserve=False)
    assert len(made.prune(tree)) == 100
    made.default(tree)
    assert "Too long" in str(made.validate(tree)[0])
    assert made.validate(tree, copy.deepcopy(tree)) == []

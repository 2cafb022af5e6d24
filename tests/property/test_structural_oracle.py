"""Pruning, defaulting and validation over random structural schemas and objects against a slow oracle; and the two ways
of validating, which must agree."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.structural import compiled, embedded, problems, strict
from fastapi_core.structural.checks import check_of
from fastapi_core.structural.correlation import same
from tests.oracles import structural_oracle as oracle

PRESERVE = "x-kubernetes-preserve-unknown-fields"
NAMES = ["a", "b", "c", "d"]
Schema = dict[str, Any]

TEXTS = st.sampled_from(["", "a", "ab", "x1"])
REALS = st.sampled_from([1.5, 2.0, -1.0, 10**20])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 6), REALS, TEXTS)
METADATA = st.sampled_from([{}, {"name": "x"}, {"labels": {"l": "good"}}, {"labels": {"l": "b!d"}}])


def _resources(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """What may stand where an object inside of another is expected."""
    return st.fixed_dictionaries(
        {
            "kind": st.sampled_from(["Pod", "Pod", "", "pod_", 1]),
            "apiVersion": st.sampled_from(["v1", "a/v1", "a/b/c"]),
        },
        optional={"metadata": METADATA, **dict.fromkeys([*NAMES, "z"], inner)},
    )


VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from([*NAMES, "z"]), inner, max_size=5),
        _resources(inner),
    ),
    max_leaves=14,
)


def _some(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[Schema]:
    return st.fixed_dictionaries({}, optional=members)


LIMITS: dict[str, st.SearchStrategy[Schema]] = {
    "string": _some(
        maxLength=st.integers(0, 3), minLength=st.integers(0, 2), pattern=st.sampled_from(["^a", "b$", "[0-9]"]),
        enum=st.lists(st.sampled_from(["a", "ab", ""]), min_size=1, max_size=2),
    ),
    "integer": _some(
        minimum=st.integers(-2, 3), maximum=st.integers(0, 5), exclusiveMinimum=st.booleans(),
        exclusiveMaximum=st.booleans(), multipleOf=st.integers(1, 3), enum=st.lists(st.integers(0, 3), min_size=1, max_size=3),
    ),
    "number": _some(minimum=st.sampled_from([-1.5, 0.0, 2.0]), maximum=st.sampled_from([1.5, 4.0]), exclusiveMaximum=st.booleans()),
    "boolean": st.just({}),
    "array": _some(minItems=st.integers(0, 2), maxItems=st.integers(1, 4)),
    "object": _some(
        minProperties=st.integers(0, 1), maxProperties=st.integers(1, 4),
        required=st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
    ),
}  # fmt: skip


@st.composite
def value_schemas(draw: st.DrawFn, kind: str, depth: int = 1) -> Schema:
    """What may stand inside alternatives: limits, and those of members."""
    made = dict(draw(LIMITS[kind]))
    if kind == "object" and depth:
        made["properties"] = {
            name: draw(value_schemas("string", 0)) for name in draw(st.lists(st.sampled_from(NAMES), max_size=1))
        }
    return made


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> Schema:
    kinds = ["string", "integer", "number", "boolean", "any", "either"] + (
        ["object", "object", "array", "resource"] if depth else []
    )
    kind = draw(st.sampled_from(kinds))
    if kind == "any":
        return {"x-kubernetes-preserve-unknown-fields": True}
    if kind == "either":
        return draw(_either())
    if kind == "resource":
        return draw(_embedded(depth))
    made = {"type": kind, **draw(LIMITS[kind])}
    if draw(st.booleans()):
        made["nullable"] = True
    if kind == "object":
        made.update(draw(_object_parts(depth)))
    if kind == "array":
        made.update(draw(_array_parts(depth)))
    if draw(st.integers(0, 3)) == 0:
        junctor = draw(st.sampled_from(["allOf", "anyOf", "oneOf", "not"]))
        inner = value_schemas(kind)
        made[junctor] = draw(inner if junctor == "not" else st.lists(inner, min_size=1, max_size=3))
    return made


def _either() -> st.SearchStrategy[Schema]:
    """Integers or strings, as declared in each of the forms there are."""
    both = [{"type": "integer"}, {"type": "string"}]
    forms = [
        {},
        {"nullable": True},
        {"anyOf": both},
        {"allOf": [{"anyOf": both}, {"pattern": "^a"}]},
        {"pattern": "b$"},
    ]
    return st.sampled_from([{"x-kubernetes-int-or-string": True, **form} for form in forms])


@st.composite
def _embedded(draw: st.DrawFn, depth: int) -> Schema:
    """An object that stands inside of another one."""
    made: Schema = {"type": "object", "x-kubernetes-embedded-resource": True}
    if draw(st.booleans()):
        made["x-kubernetes-preserve-unknown-fields"] = True
    if len(made) < 3 or draw(st.booleans()):
        names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
        made["properties"] = {name: draw(schemas(depth - 1)) for name in names}
    return made | draw(st.sampled_from([{}, {"nullable": True}]))


def _with_default(schema: Schema, value: Any) -> Schema:
    """A schema with a default that has nothing unknown in it."""
    value = copy.deepcopy(value)
    oracle.prune(value, schema, root=False)
    return schema if value is None else {**schema, "default": value}


@st.composite
def _object_parts(draw: st.DrawFn, depth: int) -> Schema:
    if draw(st.integers(0, 3)) == 0:
        return {"additionalProperties": draw(st.one_of(st.just(True), schemas(depth - 1)))}
    properties = {}
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)):
        properties[name] = draw(schemas(depth - 1))
        if draw(st.integers(0, 2)) == 0:
            properties[name] = _with_default(properties[name], draw(VALUES))
    made: Schema = {"properties": properties}
    if draw(st.integers(0, 4)) == 0:
        made["x-kubernetes-preserve-unknown-fields"] = True
    return made


@st.composite
def _array_parts(draw: st.DrawFn, depth: int) -> Schema:
    items = draw(schemas(depth - 1))
    if items.get("type") == "object" and items.get("properties") and draw(st.booleans()):
        keys = draw(st.lists(st.sampled_from(sorted(items["properties"])), min_size=1, max_size=2, unique=True))
        return {"items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}
    modes = [{}, {}, {"x-kubernetes-list-type": "set"}, {"x-kubernetes-list-type": "atomic"}, {PRESERVE: True}]
    return {"items": items, **draw(st.sampled_from(modes))}


@st.composite
def fitting(draw: st.DrawFn, schema: Schema) -> Any:
    """A value such as the schema has in mind, mostly."""
    if draw(st.integers(0, 11)) == 0:
        return draw(VALUES)
    kind = schema.get("type")
    if kind == "object":
        return draw(_members_of(schema))
    if kind == "array":
        return draw(st.lists(fitting(schema["items"]), max_size=3))
    if schema.get("x-kubernetes-int-or-string"):
        return draw(st.sampled_from([1, "a", "ab", "b"]))
    return draw(
        {"string": TEXTS, "integer": st.integers(-3, 6), "number": REALS, "boolean": st.booleans()}.get(kind, VALUES)
    )  # type: ignore[arg-type, call-overload]


@st.composite
def _members_of(draw: st.DrawFn, schema: Schema) -> dict[str, Any]:
    known = {**(schema.get("properties") or {})}
    if isinstance(schema.get("additionalProperties"), dict):
        known = dict.fromkeys(draw(st.lists(st.sampled_from(NAMES), max_size=3)), schema["additionalProperties"])
    made = {name: draw(fitting(inner)) for name, inner in known.items() if draw(st.integers(0, 4))}
    if draw(st.integers(0, 3)) == 0:
        made["z"] = draw(VALUES)
    if schema.get("x-kubernetes-embedded-resource"):
        made |= draw(
            st.sampled_from([{"kind": "Pod", "apiVersion": "v1"}, {"kind": "Pod"}, {"kind": "", "apiVersion": "v1"}])
        )
        made |= draw(st.one_of(st.just({}), st.fixed_dictionaries({"metadata": METADATA})))
    return made


@st.composite
def cases(draw: st.DrawFn) -> tuple[Schema, dict[str, Any]]:
    schema: Schema = {"type": "object", **draw(_object_parts(3).filter(lambda parts: "properties" in parts))}
    if draw(st.integers(0, 3)) == 0:
        return schema, draw(st.dictionaries(st.sampled_from([*NAMES, "kind", "zz"]), VALUES, max_size=5))
    return schema, draw(_members_of(schema))


@settings(max_examples=200, deadline=None)
@given(cases())
def test_same_as_oracle(case: tuple[Schema, dict[str, Any]]) -> None:
    schema, tree = case
    made = compiled(schema, preserve=False)
    wanted = copy.deepcopy(tree)
    unknown = sorted(oracle.prune(wanted, schema))
    oracle.drop_nulls(wanted, schema)
    assert made.prune(tree) == unknown
    assert same(tree, wanted)
    oracle.default(wanted, schema)
    made.default(tree)
    assert same(tree, wanted)
    assert (made.validate(tree) == []) == oracle.valid(tree, schema)
    assert same(tree, wanted)


@settings(max_examples=200, deadline=None)
@given(cases())
def test_fast_and_exact_agree(case: tuple[Schema, dict[str, Any]]) -> None:
    schema, tree = case
    node = compiled(schema, preserve=False).node
    from fastapi_core.structural import listtypes

    exact = strict.errors_of(tree, node, None) + listtypes.duplicates(tree, node)
    exact += embedded.validate(tree, node, embedded=False)
    assert check_of(node)(tree) == (exact == [])


@settings(max_examples=100, deadline=None)
@given(cases(), VALUES)
def test_what_did_not_change_is_forgiven(case: tuple[Schema, dict[str, Any]], other: Any) -> None:
    """An update never finds more than a create, and with nothing but known members unchanged nothing at all."""
    schema, tree = case
    made = compiled(schema, preserve=False)
    made.prune(tree)
    errors = made.validate(tree)
    old = {**copy.deepcopy(tree), "a": other}
    assert {str(error) for error in made.validate(tree, old)} <= {str(error) for error in errors}
    if all(name in schema["properties"] for name in tree) and _has_schemas(tree, schema):
        # Whether objects inside say what they are is asked each time.
        assert made.validate(tree, copy.deepcopy(tree)) == embedded.validate(tree, made.node, embedded=False)


def _has_schemas(value: Any, schema: Any) -> bool:
    """Whether everything in a value is described, and lists are told apart by keys only where all items have them."""
    if isinstance(value, dict):
        return (
            all(_has_schemas(inner, oracle._member(schema, name)[1]) for name, inner in value.items())
            and schema is not None
        )
    return schema is not None and not isinstance(value, list)


@settings(max_examples=150, deadline=None)
@given(cases(), st.booleans())
def test_problems_of_random_schemas(case: tuple[Schema, dict[str, Any]], status: bool) -> None:
    """A list of errors that can be printed, the same every time, and none more than strictness allows on update."""
    schema, _ = case
    before = copy.deepcopy(schema)
    found = problems(schema, "schema", status=status)
    assert schema == before
    assert [str(error) for error in found] == [str(error) for error in problems(before, "schema", status=status)]
    assert len(problems(schema, "schema", status=status, old=[schema], unchanged=True)) <= len(found)

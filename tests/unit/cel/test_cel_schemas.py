"""Types from schemas: what expressions see of custom resources and of built-in types."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core import cel
from fastapi_core.cel import names
from fastapi_core.cel.decls import REQUEST_LIMIT
from fastapi_core.cel.environment import variables_decl
from fastapi_core.cel.lazy import LazyFields
from fastapi_core.cel.schemas import from_schema, from_type
from fastapi_core.cel.types import BOOL, DYN, INT, NULL, Type, optional_of
from fastapi_core.cel.values import Optional
from fastapi_core.schema.tables import type_of

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "when": {"type": "string", "format": "date-time"},
        "days": {"type": "array", "items": {"type": "string", "format": "date"}},
        "span": {"type": "string", "format": "duration"},
        "raw": {"type": "string", "format": "byte"},
        "number": {"type": "number"},
        "whole": {"type": "integer"},
        "maybe": {"type": "integer", "nullable": True},
        "either": {"x-kubernetes-int-or-string": True},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "table": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}},
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
        "a-b.c/d__e": {"type": "string"},
        "namespace": {"type": "string"},
        "free": {"x-kubernetes-preserve-unknown-fields": True},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "inner": {"type": "object", "x-kubernetes-embedded-resource": True},
        "9lives": {"type": "string"},
    },
}
TREE: dict[str, Any] = {
    "when": "2021-01-02T03:04:05Z",
    "days": ["2020-01-01", "2021-01-01"],
    "span": "1h",
    "raw": "aGk=",
    "number": 3,
    "whole": 4,
    "maybe": None,
    "either": "50%",
    "set": ["a", "b"],
    "table": [{"k": "a", "v": 1}, {"k": "b", "v": 2}],
    "labels": {"x": "1", "y": None},
    "a-b.c/d__e": "odd",
    "namespace": "ns",
    "inner": {"kind": "Pod", "metadata": {"name": "p"}},
}
OLD = {**TREE, "set": ["b", "a"], "table": [{"k": "b", "v": 2}, {"k": "a", "v": 1}]}


def environment(schema: dict[str, Any], *, root: bool = True) -> cel.Environment:
    decl = from_schema(schema, root=root)
    assert decl is not None
    decl = decl.named("selfType")
    return cel.Environment({"self": decl, "oldSelf": decl, "maybeOld": optional_of(decl.type)})


ENVIRONMENT = environment(SCHEMA)
TABLE: dict[str, Any] = {
    "self.when.getDate()": 2,
    "self.when < timestamp('2022-01-01T00:00:00Z')": True,
    "self.days.map(d, d.getFullYear())": [2020, 2021],
    "self.days[1] > self.days[0]": True,
    "timestamp('2020-01-01T00:00:00Z') in self.days": True,
    "self.days == [timestamp('2020-01-01T00:00:00Z'), timestamp('2021-01-01T00:00:00Z')]": True,
    "self.days.max().getFullYear()": 2021,
    "self.span == duration('60m')": True,
    "string(self.raw)": "hi",
    "type(self.number) == double && self.number == 3.0": True,
    "type(self.whole) == int": True,
    "type(self.either) == string ? self.either == '50%' : self.either > 5": True,
    "has(self.maybe)": False,
    "self.set == oldSelf.set && self.table == oldSelf.table": True,
    "self == oldSelf": True,
    "self.set + ['b', 'c']": ["a", "b", "c"],
    "self.table + oldSelf.table == self.table": True,
    "self.labels.x": "1",
    "dyn(self.labels.y) == null && has(self.labels.y)": True,
    "self.a__dash__b__dot__c__slash__d__underscores__e": "odd",
    "self.__namespace__ + self.namespace": "nsns",
    "self.inner.kind == 'Pod' && self.inner.metadata.name == 'p'": True,
    "has(self.kind) || has(self.metadata)": False,
    "maybeOld.?whole.orValue(7)": 4,
    "self.table.filter(t, t.v > 1).map(t, t.k)": ["b"],
    "self.table.exists(i, t, i == 1 && t.k == 'b')": True,
}


@pytest.mark.parametrize("text", TABLE)
def test_value(text: str) -> None:
    values = {"self": TREE, "oldSelf": OLD, "maybeOld": Optional(OLD)}
    assert cel.compile_expression(text, ENVIRONMENT).evaluate(values) == TABLE[text]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("self.free", "undefined field 'free'"),
        ("self.open.anything", "undefined field 'anything'"),
        ("self.whole == '4'", r"found no matching overload for '_==_' applied to '\(int, string\)'"),
        ("self.table.v", r"type 'list\(selfType.table.@idx\)' does not support field selection"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(cel.CompileError, match=message):
        cel.compile_expression(text, ENVIRONMENT)


def test_null_in_a_property_is_absence() -> None:
    with pytest.raises(cel.EvalError, match=r"^no such key: maybe$"):
        cel.compile_expression("self.maybe > 1", ENVIRONMENT).evaluate({"self": TREE})
    assert cel.compile_expression("self.?maybe.hasValue()", ENVIRONMENT).evaluate({"self": TREE}) is False


def test_data_that_is_not_what_its_schema_says() -> None:
    program = cel.compile_expression("self.when.getDate()", ENVIRONMENT)
    with pytest.raises(cel.EvalError, match="Invalid date-time formatted string soon"):
        program.evaluate({"self": {"when": "soon"}})
    with pytest.raises(cel.EvalError, match="no such overload"):
        cel.compile_expression("self.whole + 1", ENVIRONMENT).evaluate({"self": {"whole": "x"}})


def test_a_schema_of_one_value() -> None:
    program = cel.compile_expression("self.getFullYear() == 2021", environment({"type": "string", "format": "date"}))
    assert program.evaluate({"self": "2021-03-04"}) is True
    assert from_schema({"x-kubernetes-preserve-unknown-fields": True}) is None
    assert from_schema({"type": "array"}) is None


@pytest.mark.parametrize(
    ("schema", "most"),
    [
        ({"type": "string"}, REQUEST_LIMIT - 2),
        ({"type": "string", "maxLength": 5}, 20),
        ({"type": "string", "enum": ["a", "long"]}, 4),
        ({"type": "string", "format": "byte", "maxLength": 5}, 5),
        ({"type": "string", "format": "date"}, 12),
        ({"type": "array", "items": {"type": "integer"}}, (REQUEST_LIMIT - 2) // 2),
        ({"type": "array", "items": {"type": "integer"}, "maxItems": 7}, 7),
        ({"type": "object", "additionalProperties": {"type": "string"}}, (REQUEST_LIMIT - 2) // 8),
        ({"type": "integer"}, 0),
    ],
)
def test_sizes(schema: dict[str, Any], most: int) -> None:
    decl = from_schema(schema)
    assert decl is not None
    assert decl.max_elements == most


def test_built_in_types() -> None:
    decl = from_type(type_of("apps/v1.Deployment"))
    typed = cel.Environment({"object": decl})
    tree = {
        "metadata": {"namespace": "ns", "creationTimestamp": "2021-01-01T00:00:00Z"},
        "spec": {"replicas": 3, "template": {"spec": {"containers": [{"image": "x/y"}]}}},
    }
    for text in (
        "object.spec.replicas == 3",
        "object.metadata.namespace == 'ns'",
        "object.metadata.creationTimestamp.getFullYear() == 2021",
        "object.spec.template.spec.containers.all(c, c.image.startsWith('x'))",
    ):
        assert cel.compile_expression(text, typed, [BOOL]).evaluate({"object": tree}) is True
    with pytest.raises(cel.CompileError, match="undefined field 'replicaz'"):
        cel.compile_expression("object.spec.replicaz", typed)


def test_variables_are_made_when_asked_for() -> None:
    made: list[str] = []

    def number() -> int:
        made.append("n")
        return 5

    def failing() -> int:
        made.append("f")
        raise cel.EvalError('composited variable "f" fails to evaluate: x')

    fields = {"n": INT, "f": INT, "z": NULL}
    env = cel.Environment({"variables": variables_decl(fields)})
    values = {"variables": LazyFields({"n": number, "f": failing, "z": lambda: None})}
    assert cel.compile_expression("variables.n + variables.n", env).evaluate(values) == 10
    assert cel.compile_expression("variables.z == null", env).evaluate(values) is True
    assert cel.compile_expression("has(variables.f)", env).evaluate(values) is True
    assert made == ["n"]
    for _ in range(2):
        with pytest.raises(cel.EvalError, match="composited variable"):
            cel.compile_expression("variables.f", env).evaluate(values)
    assert made == ["n", "f"]


def test_variables_of_a_program() -> None:
    program = cel.compile_expression("self.whole >= oldSelf.whole", ENVIRONMENT)
    assert program.variables == {"self", "oldSelf"}


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("plain", "plain"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("in", "__in__"),
        ("namespace", "__namespace__"),
        ("true", "__true__"),
        ("_x", "_x"),
        ("9a", None),
        ("", None),
        ("a b", None),
    ],
)
def test_escaping(name: str, escaped: str | None) -> None:
    assert names.escape(name) == escaped
    if escaped is not None:
        assert names.unescape(escaped) == name


def test_environments_take_plain_types() -> None:
    kinds: dict[str, Type] = {"d": DYN}
    assert cel.compile_expression("d", cel.Environment(kinds).extended({"n": INT})).type == DYN

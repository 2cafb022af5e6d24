"""Expressions in schemas, and what an update forgives."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from fastapi_core.structural import Schema, compiled, problems
from fastapi_core.structural.fieldpath import PathError, follow, resolve

Tree = dict[str, Any]


def schema_of(**properties: Any) -> Schema:
    return compiled({"type": "object", "properties": properties}, preserve=False)


def texts(schema: Schema, tree: Tree, old: Tree | None = None, **more: Any) -> list[str]:
    return [str(error) for error in schema.validate(tree, old, **more)]


def ruled(kind: str, *rules: Tree | str, **more: Any) -> Tree:
    made = [{"rule": rule, "message": "no"} if isinstance(rule, str) else rule for rule in rules]
    return {"type": kind, **more, "x-kubernetes-validations": made}


def test_places_and_values() -> None:
    inner = ruled("integer", "self > 1")
    schema = schema_of(
        l={"type": "array", "items": inner}, m={"type": "object", "additionalProperties": inner}, n=inner
    )
    assert texts(schema, {"l": [2, 1], "m": {"k": 0}, "n": 1}) == [
        "l[1]: Invalid value: 1: no",
        "m[k]: Invalid value: 0: no",
        "n: Invalid value: 1: no",
    ]


def test_rule_of_the_root_sees_names() -> None:
    schema = compiled({**ruled("object", "self.metadata.name.startsWith('w')")}, preserve=False)
    tree = {"apiVersion": "x/v1", "kind": "W", "metadata": {"name": "a"}}
    assert texts(schema, tree) == ["<nil>: Invalid value: no"]


def test_message_expressions() -> None:
    rules: list[Tree] = [
        {"rule": "self < 1", "messageExpression": "'got ' + string(self)"},
        {"rule": "self < 1", "messageExpression": "''", "message": "fallback"},
        {"rule": "self < 1", "messageExpression": "string(self / 0)"},
    ]
    assert texts(schema_of(n=ruled("integer", *rules)), {"n": 3}) == [
        "n: Invalid value: 3: got 3",
        "n: Invalid value: 3: fallback",
        "n: Invalid value: 3: failed rule: self < 1",
    ]


def test_old_values() -> None:
    grows: Tree = {"rule": "self >= oldSelf", "message": "grows"}
    optional: Tree = {"rule": "!oldSelf.hasValue() || oldSelf.value() < 5", "optionalOldSelf": True, "message": "low"}
    new: Tree = {"rule": "oldSelf.hasValue() || self == 1", "optionalOldSelf": True, "message": "first"}
    schema = schema_of(n=ruled("integer", grows, optional, new))
    assert texts(schema, {"n": 1}) == []
    assert texts(schema, {"n": 2}) == ["n: Invalid value: 2: first"]
    assert texts(schema, {"n": 6}, {"n": 7}) == ["n: Invalid value: 6: grows", "n: Invalid value: 6: low"]


def test_items_keep_their_old_values_by_key() -> None:
    item = {
        "type": "object",
        "properties": {"k": {"type": "string"}, "v": ruled("integer", "self >= oldSelf")},
        "required": ["k"],
    }
    keyed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    schema = schema_of(l=keyed)
    old = {"l": [{"k": "a", "v": 5}, {"k": "b", "v": 1}]}
    assert texts(schema, {"l": [{"k": "b", "v": 2}, {"k": "a", "v": 4}, {"k": "c", "v": 0}]}, old) == [
        "l[1].v: Invalid value: 4: no"
    ]


def test_forgiven_expressions_are_warnings() -> None:
    schema = schema_of(n=ruled("integer", "self < 3"), s={"type": "string"})
    warned: list[str] = []
    assert texts(schema, {"n": 5, "s": "b"}, {"n": 5, "s": "a"}, warn=warned.append) == []
    assert warned == ["n: Invalid value: 5: no"]
    assert texts(schema, {"n": 6}, {"n": 5}, warn=warned.append) == ["n: Invalid value: 6: no"]


def test_expressions_wait_for_sound_objects() -> None:
    schema = schema_of(n=ruled("integer", "self < 3"), s={"type": "string", "maxLength": 1})
    skipped = "some validation rules were not checked because the object was invalid"
    assert skipped in texts(schema, {"n": 5, "s": "long"})[-1]
    assert texts(schema_of(n=ruled("integer", "self < 3", minimum=6)), {"n": 5})[1] == "n: Invalid value: 5: no"


def test_one_budget() -> None:
    dear = {"rule": "self.all(a, self.all(b, a == b))", "message": "no"}
    schema = schema_of(l=ruled("array", *[dear] * 40, items={"type": "integer"}))
    [*_, last] = texts(schema, {"l": [1] * 300})
    assert last == (
        'l: Invalid value: "array": validation failed due to running out of cost budget, no further validation rules '
        "will be run"
    )


def test_unchanged_parts_are_forgiven() -> None:
    part = {"type": "object", "properties": {"x": {"type": "integer", "maximum": 1}, "y": {"type": "string"}}}
    schema = schema_of(o=part, p={"type": "array", "items": {"type": "string", "maxLength": 1}})
    old = {"o": {"x": 5}, "p": ["long"]}
    assert texts(schema, {"o": {"x": 5, "y": "z"}, "p": ["long"]}, old) == []
    assert texts(schema, {"o": {"x": 6}, "p": ["long"]}, old) == [
        "o.x: Invalid value: 6: o.x in body should be less than or equal to 1"
    ]
    assert texts(schema, {"o": {"x": 5}, "p": ["long", "a"]}, old) == ["p[0]: Too long: may not be more than 1 byte"]
    assert texts(schema, {"o": {"x": 5.0}, "p": []}, old) != []


def test_old_duplicates_are_forgiven_as_a_whole() -> None:
    schema = schema_of(l={"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"})
    assert texts(schema, {"l": ["b", "b"]}, {"l": ["a", "a"]}) == []
    assert texts(schema, {"l": ["b", "b"]}, {"l": ["a"]}) == ['l[1]: Duplicate value: "b"']


def test_nothing_of_expressions_is_loaded_without_one() -> None:
    program = (
        "import sys\n"
        "from fastapi_core.structural import compiled, problems\n"
        "schema = {'type': 'object', 'properties': {'a': {'type': 'string', 'pattern': '^a', 'default': 'ab'}}}\n"
        "assert problems(schema, 's') == []\n"
        "made = compiled(schema, preserve=False)\n"
        "assert made.validate({'a': 'b'})\n"
        "print([name for name in sys.modules if name.startswith('fastapi_core.cel.') and 'regex' not in name])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['fastapi_core.cel.errors']"


def test_equal_schemas_are_one() -> None:
    part = {"type": "object", "properties": {"x": {"type": "string", "description": "one"}}}
    same = {"type": "object", "properties": {"x": {"description": "two", "type": "string"}}}
    first, second = schema_of(a=part, b=same), schema_of(a=part, b=same)
    assert first is second
    assert first.node.properties["a"] is first.node.properties["b"]


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ({"rule": "self.zz"}, "rule: Invalid value: {"),
        ({"rule": "self.a"}, "cel expression must evaluate to a bool"),
        ({"rule": "true", "messageExpression": "1"}, "messageExpression must evaluate to a string"),
        ({"rule": "true", "reason": "Odd"}, "Unsupported value"),
        ({"rule": "true", "optionalOldSelf": True}, "may not be set if oldSelf is not used in rule"),
        ({"rule": "true\n&& true"}, "message must be specified if rule contains line breaks"),
        ({"rule": "true", "fieldPath": ".zz"}, "must be a valid path"),
        ({"rule": " "}, "rule is not specified"),
    ],
)
def test_rules_of_definitions(rule: Tree, wanted: str) -> None:
    part = {"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [rule]}
    found = problems({"type": "object", "properties": {"spec": part}}, "s")
    assert wanted in str(found[0])


@pytest.mark.parametrize(
    ("member", "wanted"),
    [
        ({"type": "string", "default": 1}, 'x.default: Invalid value: "integer":  in body must be of type string'),
        ({"type": "string", "pattern": "("}, 'x.pattern: Invalid value: "(": must be a valid regular expression'),
        ({"type": "null"}, "x.type: Unsupported value"),
        ({}, "x.type: Required value: must not be empty for specified object fields"),
        ({"type": "array"}, "x.items: Required value: must be specified"),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}},
            'x.default: Invalid value: {"b":1}: must not have unknown fields',
        ),
        (
            {**ruled("integer", "self < 3"), "default": 5},
            "x.default: Invalid value: 5: no",
        ),
        (
            {"type": "array", "items": {"type": "string", "nullable": True}, "x-kubernetes-list-type": "set"},
            "x.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set",
        ),
    ],
)
def test_members_of_definitions(member: Tree, wanted: str) -> None:
    found = [
        str(error).replace("s.properties[x]", "x")
        for error in problems({"type": "object", "properties": {"x": member}}, "s")
    ]
    assert any(text.startswith(wanted) for text in found), found


def test_what_old_definitions_got_wrong_stays_allowed() -> None:
    loose = {
        "type": "object",
        "properties": {"l": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}}},
    }
    loose["properties"]["l"] |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}  # type: ignore[index]
    assert problems(loose, "s")
    assert problems(loose, "s", old=[loose]) == []
    changed = {**loose, "description": "x"}
    assert problems(changed, "s", old=[loose]) == []


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        (".a", "a"),
        (".a['x y'].c", "a.x y.c"),
        ("['a']", "a"),
        (".m['k']", "m[k]"),
        ("a", "expected [ or . but got: a"),
        (".zz", "does not refer to a valid field"),
        (".a[0]", "expected single quoted string but got 0"),
        (".", "unexpected end of JSON path"),
        (".a['x y'", "unexpected end of JSON path"),
    ],
)
def test_field_paths(path: str, wanted: str) -> None:
    inner = {"type": "object", "properties": {"c": {"type": "string"}}}
    schema = {
        "properties": {
            "a": {"type": "object", "properties": {"x y": inner}},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
        }
    }
    if " " in wanted and "x y" not in wanted:
        assert resolve(path, schema) is None
        with pytest.raises(PathError) as error:
            follow(path, schema)
        assert str(error.value) == wanted
    else:
        assert follow(path, schema).path == wanted

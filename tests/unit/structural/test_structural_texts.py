"""What clients are told about objects, keyword by keyword: types, fields and texts of the reference, in order."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from fastapi_core.structural import compiled

HEAD = {"apiVersion": "x.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}


def told(schema: dict[str, Any], value: Any, **more: Any) -> list[str]:
    made = compiled({"type": "object", "properties": {"a": schema, **more}}, preserve=False)
    return [str(error) for error in made.validate({**HEAD, "a": value})]


def text(keyword: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"type": "string", keyword: value, **more}


@pytest.mark.parametrize(
    ("schema", "value", "wanted"),
    [
        ({"type": "string"}, 1, ['a: Invalid value: "integer": a in body must be of type string: "integer"']),
        ({"type": "string"}, None, ['a: Invalid value: "null": a in body must be of type string: "null"']),
        ({"type": "string", "nullable": True}, None, []),
        (text("enum", ["x"], nullable=True), None, ['a: Unsupported value: null: supported values: "x"']),
        (
            {"type": "integer"},
            1.5,
            [
                'a: Invalid value: "number": a in body must be of type integer: "number"',
                '<nil>: Invalid value: "": Checked value must be of type integer (default format) in a',
            ],
        ),
        ({"type": "integer"}, 3.0, []),
        ({"type": "number"}, 3, []),
        ({"x-kubernetes-int-or-string": True}, "5%", []),
        (
            {"x-kubernetes-int-or-string": True},
            True,
            ['a: Invalid value: "boolean": a in body must be of type integer,string: "boolean"'],
        ),
        (text("maxLength", 1), "äö", ["a: Too long: may not be more than 1 byte"]),
        (text("maxLength", 2), "äö", []),
        (text("minLength", 3), "ab", ['a: Invalid value: "ab": a in body should be at least 3 chars long']),
        (text("pattern", "^[a-z]+$"), "A", ["a: Invalid value: \"A\": a in body should match '^[a-z]+$'"]),
        (text("maxLength", 1, pattern="^b"), "aa", ["a: Too long: may not be more than 1 byte"]),
        (text("enum", ["x", "y"]), "z", ['a: Unsupported value: "z": supported values: "x", "y"']),
        (
            {"type": "integer", "enum": [1, 2]},
            3,
            ['a: Unsupported value: 3: supported values: "1", "2"'],
        ),
        (
            {"type": "number", "minimum": 0.5, "maximum": 1e6},
            2e6,
            ["a: Invalid value: 2e+06: a in body should be less than or equal to 1e+06"],
        ),
        (
            {"type": "integer", "minimum": 5, "exclusiveMinimum": True, "multipleOf": 2},
            5,
            [
                "a: Invalid value: 5: a in body should be a multiple of 2",
                "a: Invalid value: 5: a in body should be greater than 5",
            ],
        ),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 2},
            ["a"],
            ["a: Invalid value: 1: a in body should have at least 2 items"],
        ),
        (
            {"type": "array", "items": {"type": "string"}, "maxItems": 1},
            ["a", 1],
            [
                'a[1]: Invalid value: "integer": a[1] in body must be of type string: "integer"',
                "a: Too many: 2: must have at most 1 item",
            ],
        ),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 1},
            {"x": "1", "y": 1},
            [
                "a: Too many: 2: must have at most 1 item",
                'a.x: Invalid value: "string": a.x in body must be of type integer: "string"',
            ],
        ),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1},
            {},
            ["a: Invalid value: 0: a in body should have at least 1 properties"],
        ),
        (
            {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["y", "x"]},
            {},
            ["a.y: Required value", "a.x: Required value"],
        ),
        (
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            ["x", "y", "x", "x"],
            ['a[2]: Duplicate value: "x"'],
        ),
        (
            {"type": "integer", "not": {"minimum": 3}},
            4,
            ['<nil>: Invalid value: "": "a" must not validate the schema (not)'],
        ),
        (
            {"type": "string", "allOf": [{"minLength": 3}, {"pattern": "^z"}]},
            "a",
            [
                'a: Invalid value: "a": a in body should be at least 3 chars long',
                "a: Invalid value: \"a\": a in body should match '^z'",
                '<nil>: Invalid value: "": "a" must validate all the schemas (allOf). None validated',
            ],
        ),
        ({"type": "string", "format": "date"}, [], []),
    ],
)
def test_texts(schema: dict[str, Any], value: Any, wanted: list[str]) -> None:
    assert told(schema, value) == wanted


def test_alternatives_tell_of_the_one_that_got_furthest() -> None:
    shapes = [{"properties": {"x": {"enum": ["1"]}}, "required": ["y"]}, {"properties": {"x": {"enum": ["2"]}}}]
    schema = {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}}, "anyOf": shapes}
    assert told(schema, {"x": "3"}) == [
        '<nil>: Invalid value: "": "a" must validate at least one schema (anyOf)',
        'a.x: Unsupported value: "3": supported values: "1"',
        "a.y: Required value",
    ]


def test_map_lists_compare_keys() -> None:
    item = {"type": "object", "properties": {"p": {"type": "integer"}, "q": {"type": "string"}}}
    keyed = {"type": "array", "items": item, "x-kubernetes-list-type": "map"}
    two = {**keyed, "x-kubernetes-list-map-keys": ["p", "q"]}
    one = {**keyed, "x-kubernetes-list-map-keys": ["p"]}
    assert told(two, [{"p": 1}, {"p": 1, "q": "x"}, {"p": 1}]) == ['a[2]: Duplicate value: {"p":1}']
    assert told(one, [{}, {"q": "x"}]) == ["a[1]: Duplicate value: {}"]
    assert told(one, [{"p": 1}, {"p": 1, "q": "x"}]) == ['a[1]: Duplicate value: {"p":1}']


FORMATS: dict[str, tuple[list[str], list[str]]] = {
    "date": (["2024-02-29", "0000-01-01"], ["2023-02-29", "24-01-01", "2024-1-1"]),
    "date-time": (
        ["2024-01-01T00:00:00Z", "2024-01-01t23:59:59.5+01:00"],
        ["2024-01-01", "2024-01-01T24:00:00Z", "2024-01-01T00:00:00", "2024-01-01 00:00:00Z"],
    ),
    "duration": (["1h30m", "22 ns", "3 days", "1w"], ["5 parsecs", "", "1"]),
    "byte": (["YQ==", "abcd"], ["", "***", "a"]),
    "uuid": (["f0e1d2c3-0000-4000-8000-0123456789AB", "f0e1d2c3000040008000012345678901"], ["1234"]),
    "uuid3": (["f0e1d2c3-0000-3000-0000-0123456789ab"], ["f0e1d2c3-0000-4000-8000-0123456789ab"]),
    "uuid4": (["f0e1d2c3-0000-4000-8000-0123456789ab"], ["f0e1d2c3-0000-4000-7000-0123456789ab"]),
    "email": (["a@b.c", "A B <a@b>", '"x y"@z', "a+b@c-d.e"], ["nobody", "a@", "@b", "a b@c", "a@b@c"]),
    "hostname": (["localhost", "a-b.example.com", "x", "ü.example.com"], ["-bad-", "a.b1", "my-host-x", "a..com", ""]),
    "ipv4": (["1.2.3.4", "001.2.3.4"], ["1.2.3", "::1", "1.2.3.256"]),
    "ipv6": (["::1", "fe80::1"], ["1.2.3.4", "fe80::1%eth0", ":"]),
    "cidr": (["10.0.0.1/8", "::/0", "010.0.0.0/8"], ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/x"]),
    "mac": (["01:23:45:67:89:ab", "01-23-45-67-89-AB", "0123.4567.89ab"], ["01:23:45:67:89", "01:23-45:67:89:ab"]),
    "uri": (["http://a/b", "/path", "mailto:x"], ["not a uri", "", "a/b"]),
    "isbn10": (["0321751043", "0-321-75104-3"], ["0321751044"]),
    "isbn13": (["978-0321751041"], ["978-0321751042"]),
    "isbn": (["0321751043", "978-0321751041"], ["1"]),
    "creditcard": (["4111 1111 1111 1111"], ["4111 1111 1111 1112", "1"]),
    "ssn": (["123-45-6789", "123 45 6789"], ["123456789", "12-345-6789"]),
    "hexcolor": (["#fff", "ABCDEF"], ["#ffff"]),
    "rgbcolor": (["rgb(0, 25, 255)"], ["rgb(0,0,256)", "rgb(1,2)"]),
    "bsonobjectid": (["507f1f77bcf86cd799439011"], ["507f"]),
    "password": (["", "anything"], []),
    "k8s-short-name": (["a-1"], ["A", "a_b", "a" * 64]),
    "k8s-long-name": (["a.b-1", "a" * 100], ["a..b", "A"]),
    "unknown": (["anything"], []),
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats(name: str) -> None:
    good, bad = FORMATS[name]
    for value in good:
        assert told({"type": "string", "format": name}, value) == [], value
    for value in bad:
        [error] = told({"type": "string", "format": name}, value)
        assert f"a in body must be of type {name}" in error


def test_metadata_is_coerced() -> None:
    schema = compiled({"type": "object"}, preserve=False)
    tree: dict[str, Any] = {"metadata": {"name": "w", "labels": {"a": 1}, "odd": 1, "creationTimestamp": None}}
    [error] = schema.coerce(copy.deepcopy(tree), drop=False).errors
    assert error.field == "metadata"
    made = schema.coerce(tree, drop=True)
    assert (made.errors, made.unknown) == ([], ["metadata.odd"])
    assert tree == {"metadata": {"name": "w"}}


def test_embedded_objects() -> None:
    inner = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    schema = compiled(
        {"type": "object", "properties": {"m": {"type": "object", "additionalProperties": inner}}}, preserve=False
    )
    tree: dict[str, Any] = {"m": {"k": {"metadata": {"name": "a/b", "zz": 1}, "apiVersion": "", "x": {"y": 1}}}}
    assert schema.prune(tree) == []
    assert schema.coerce(tree, drop=False).unknown == ["m[k].metadata.zz"]
    assert [str(error) for error in schema.validate(tree)] == [
        "m[k].kind: Required value",
        'm[k].apiVersion: Invalid value: "": must not be empty',
        "m[k].metadata.name: Invalid value: \"a/b\": may not contain '/'",
    ]


def test_status_is_looked_at_alone() -> None:
    part = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 1}}, "required": ["m"]}
    schema = compiled({"type": "object", "properties": {"spec": part, "status": part}}, preserve=False)
    tree = {"spec": {"n": 5}, "status": {"n": 5}}
    assert [str(error) for error in schema.validate(tree, {}, status=True)] == [
        "status.n: Invalid value: 5: n in body should be less than or equal to 1",
        "status.m: Required value",
    ]
    assert schema.validate({"spec": {}}, {}, status=True) == []

"""What messages show of custom values, and which formats count for defaults."""

from __future__ import annotations

from typing import Any

from fastapi_core import structural
from fastapi_core.rest.custom import _in_order
from fastapi_core.structural.coercion import coerce
from fastapi_core.structural.nodes import node_of

Tree = dict[str, Any]


def errors(tree: Tree, schema: Tree) -> list[str]:
    return [str(error) for error in structural.compiled(schema, preserve=False).validate(tree)]


def one(member: Tree) -> Tree:
    return {"type": "object", "properties": {"a": member}}


def test_keys_of_lists_are_told_in_order_and_with_the_numbers_of_json() -> None:
    item = {"type": "object", "properties": {"name": {"type": "string"}, "b": {"type": "number"}}}
    schema = one(
        {
            "type": "array",
            "items": item,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "b"],
        }
    )
    tree = {"a": [{"name": "x", "b": 1.0}, {"name": "x", "b": 1.0}]}
    assert errors(tree, schema) == ['a[1]: Duplicate value: {"b":1,"name":"x"}']
    tree = {"a": [{"name": "x", "b": 9.223372036854776e18}] * 2}
    assert errors(tree, schema) == ['a[1]: Duplicate value: {"b":9223372036854776000,"name":"x"}']


def test_limits_below_zero() -> None:
    assert errors({"a": []}, one({"type": "array", "items": {"type": "string"}, "maxItems": -1})) == [
        "a: Too many: 0: has too many items"
    ]
    assert errors({"a": "x"}, one({"type": "string", "maxLength": -1})) == ["a: Too long: value is too long"]


def test_members_of_enums_are_told_as_json() -> None:
    schema = one({"type": "number", "enum": [1.0, 2.5]})
    assert errors({"a": 3}, schema) == ['a: Unsupported value: 3: supported values: "1", "2.5"']


def test_unknown_members_come_by_where_they_are_found() -> None:
    tree = {"metadata": {"zz": 1, "ownerReferences": [{"zz": 1}]}, "z": {}}
    found = coerce(tree, node_of({"type": "object"}), drop=False)
    assert found.unknown == ["metadata.ownerReferences[0].zz", "metadata.zz"]
    assert _in_order(["a", "z"], ["emb.metadata.x", "metadata.b"]) == ["metadata.b", "a", "z", "emb.metadata.x"]


def test_defaults_are_judged_by_formats_as_they_are_written() -> None:
    def told(member: Tree) -> list[str]:
        return [str(error) for error in structural.problems(one(member), "s")]

    odd = {"type": "number", "not": {"format": "float"}, "default": 1}
    assert told(odd) == []
    odd = {"type": "integer", "allOf": [{"format": "float"}], "default": 1}
    assert told(odd) == [
        's.properties[a].default: Invalid value: "int64":  in body must be of type float: "int64"',
        's.properties[a].default: Invalid value: "": "" must validate all the schemas (allOf). None validated',
    ]


def test_metadata_of_the_root_says_nothing_but_names() -> None:
    for extra in ({"additionalProperties": False}, {"minProperties": 0}):
        schema = {"type": "object", "properties": {"metadata": {"type": "object", **extra}}}
        [found] = structural.problems(schema, "s")
        assert "must not specify anything other than name and generateName" in str(found)

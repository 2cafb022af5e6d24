"""OpenAPI of backends: what is let in, cut, merged, renamed, converted; and any tree at all."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.aggregation import entries, swagger
from fastapi_core.openapi import protobuf_v2

WORDS = (
    "paths", "definitions", "get", "parameters", "$ref", "items", "versions", "metadata", "name", "/apis/g/v1",
    "resources", "schema", "type",
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(WORDS),
        inner, max_size=3,
    ),
    max_leaves=12,
)  # fmt: skip


BODY = {"name": "body", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Thing"}}


def document(group: str, kind: Any, **more: Any) -> dict[str, Any]:
    path = f"/apis/{group}/v1/things"
    operation = {"responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/Thing"}}}}
    return {
        "swagger": "2.0",
        "info": {"title": "t", "version": "v0"},
        "paths": {path: {"get": operation}},
        "definitions": {"Thing": kind, "Unused": {"type": "string"}},
        **more,
    }


def test_only_the_own_part_is_taken() -> None:
    tree = document("a", {"properties": {"x": {"$ref": "#/definitions/Deep"}}})
    tree["definitions"]["Deep"] = {"type": "object"}
    tree["paths"]["/apis/other/v1/x"] = {"get": {"responses": {}}}
    tree["paths"]["/apis/a/v10/x"] = {"get": {"responses": {}}}
    part = swagger.own_part(tree, ["/apis/a/v1"])
    assert list(part["paths"]) == ["/apis/a/v1/things"]
    assert set(part["definitions"]) == {"Thing", "Deep"}


def test_equal_models_are_one_and_others_get_a_name_of_their_own() -> None:
    kinds = lambda group: [{"group": group, "version": "v1", "kind": "Thing"}]  # noqa: E731
    whole: dict[str, Any] = {"paths": {}, "definitions": {}, "parameters": {}}
    swagger.merge(whole, document("a", {"type": "object", swagger.KINDS: kinds("a")}))
    swagger.merge(whole, document("b", {"type": "object", swagger.KINDS: kinds("b")}))
    assert whole["definitions"]["Thing"][swagger.KINDS] == kinds("a") + kinds("b")
    swagger.merge(whole, document("c", {"type": "array"}))
    swagger.merge(whole, document("d", {"type": "array"}))
    swagger.merge(whole, document("e", {"type": "number"}))
    refs = {
        p.split("/")[2]: i["get"]["responses"]["200"]["schema"]["$ref"].rpartition("/")[2]
        for p, i in whole["paths"].items()
    }
    assert refs == {"a": "Thing", "b": "Thing", "c": "Thing_v2", "d": "Thing_v2", "e": "Thing_v3"}
    before = copy.deepcopy(whole)
    swagger.merge(whole, {"paths": {"/apis/a/v1/things": {"get": {"summary": "other"}}}})
    assert whole == before, "a path belongs to whom it was first"
    protobuf_v2.encode({"swagger": "2.0", "info": {"title": "", "version": ""}, **whole})


def test_v2_becomes_v3() -> None:
    tree = document("a", {"type": "object"})
    tree["parameters"] = {"shared": {"name": "q", "in": "query", "type": "string", "uniqueItems": True}}
    tree["paths"]["/apis/a/v1/things"]["post"] = {
        "consumes": ["application/json"],
        "parameters": [{"$ref": "#/parameters/shared"}, BODY],
        "responses": {"201": {"description": "Created"}},
        "x-kubernetes-action": "post",
    }  # fmt: skip
    made = swagger.to_v3(swagger.own_part(tree, ["/apis/a/v1"]))
    post = made["paths"]["/apis/a/v1/things"]["post"]
    reference = {"schema": {"$ref": "#/components/schemas/Thing"}}
    assert made["openapi"] == "3.0.0"
    assert list(made["components"]["schemas"]) == ["Thing"]
    assert post["requestBody"] == {"content": {"application/json": reference}, "required": True}
    assert post["parameters"] == [{"name": "q", "in": "query", "schema": {"type": "string", "uniqueItems": True}}]
    assert post["x-kubernetes-action"] == "post"
    assert post["responses"] == {"201": {"description": "Created"}}
    get = made["paths"]["/apis/a/v1/things"]["get"]["responses"]["200"]
    assert get == {"description": "OK", "content": {"application/json": reference}}


@pytest.mark.parametrize(
    "tree", [None, [], "x", {"paths": []}, {"paths": {"x": {}}}, {"paths": {"/x": 1}}, {"definitions": 3}]
)
def test_nonsense_is_left_out(tree: Any) -> None:
    with pytest.raises(ValueError, match=r"no object|another type|is none"):
        swagger.checked(tree)


def test_depth_is_limited() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(ValueError, match="deeply"):
        swagger.checked({"definitions": {"x": deep}})


def test_index_keeps_what_is_a_path() -> None:
    good = {"serverRelativeURL": "/openapi/v3/apis/a/v1?hash=1"}
    tree = {
        "paths": {
            "apis/a/v1": good,
            "b": {"serverRelativeURL": "http://evil/"},
            "c": 1,
            "d": {"serverRelativeURL": "/openapi/v3/\r\nX: y"},
        }
    }
    assert swagger.index(tree) == {"apis/a/v1": "/openapi/v3/apis/a/v1?hash=1"}


@given(JSON)
@settings(max_examples=200, deadline=None)
def test_any_tree_is_taken_whole_or_refused(tree: Any) -> None:
    for check in (swagger.checked, swagger.checked_v3, swagger.index, entries.aggregated, entries.legacy):
        try:
            made = check(tree)
        except ValueError:
            continue
        if check is swagger.checked:
            part = swagger.own_part(made, ["/apis/g/v1"])
            swagger.to_v3(part)
            whole: dict[str, Any] = {}
            swagger.merge(whole, part)
            swagger.merge(whole, part)


def test_legacy_lists_become_entries() -> None:
    made = entries.legacy(
        {"resources": [
            {"name": "a/status", "namespaced": True, "kind": "A", "verbs": ["get"]},
            {"name": "a", "singularName": "one", "namespaced": True, "kind": "A", "group": "x", "version": "v2",
             "verbs": ["get"], "shortNames": ["s"]},
            {"name": "b", "kind": "B", "verbs": None},
        ]}
    )  # fmt: skip
    assert [entry["resource"] for entry in made] == ["a", "b"]
    assert made[0]["responseKind"] == {"group": "x", "version": "v2", "kind": "A"}
    assert made[0]["shortNames"] == ["s"]
    assert [sub["subresource"] for sub in made[0]["subresources"]] == ["status"]
    assert made[1] == {
        "resource": "b", "responseKind": {"group": "", "version": "", "kind": "B"}, "scope": "Cluster",
        "singularResource": "", "verbs": [],
    }  # fmt: skip

"""What documents say of definitions' kinds beyond what is common to all kinds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson

from fastapi_core.apis.resources import builtin
from fastapi_core.openapi.custom import CustomKind, _published
from fastapi_core.openapi.documents import OpenAPIDocuments
from fastapi_core.openapi.schemas import SchemaWriter

Tree = dict[str, Any]
EITHER = [{"type": "integer"}, {"type": "string"}]


def published(schema: Tree, *, v2: bool = False) -> Tree:
    return _published(schema, SchemaWriter(v2=v2, everywhere=[], custom=()))


def test_int_or_string_is_said_in_words_of_the_standard() -> None:
    odd: Tree = {"x-kubernetes-int-or-string": True}
    assert published(odd)["anyOf"] == EITHER
    assert published({**odd, "anyOf": EITHER}) == {**odd, "anyOf": EITHER}
    assert published({**odd, "allOf": [{"anyOf": EITHER}]}) == {**odd, "allOf": [{"anyOf": EITHER}]}
    made = published({**odd, "anyOf": [{"minimum": 1}], "allOf": [{"maximum": 2}]})
    assert made == {**odd, "anyOf": [{"minimum": 1}], "allOf": [{"anyOf": EITHER}, {"maximum": 2}]}
    assert published(odd, v2=True) == odd


def test_the_older_dialect_has_no_defaults() -> None:
    schema: Tree = {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}
    assert published(schema)["properties"]["a"]["default"] == "x"
    assert "default" not in published(schema, v2=True)["properties"]["a"]


def test_the_document_of_a_definition_and_its_operations() -> None:
    lease = next(definition for definition in builtin() if definition.kind == "Lease" and definition.version == "v1")
    order = replace(
        lease,
        group="shop.example.com",
        plural="orders",
        kind="Order",
        list_kind="OrderList",
        custom=True,
        subresources={},
    )
    made = OpenAPIDocuments([lease], custom=[CustomKind(order, "1", lambda: {"type": "object"}, False)])
    document = orjson.loads(made.documents["apis/shop.example.com/v1"].body())
    assert document["info"] == {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
    assert "securitySchemes" not in document["components"]
    collection = document["paths"]["/apis/shop.example.com/v1/namespaces/{namespace}/orders"]["delete"]
    names = {parameter["name"] for parameter in collection["parameters"]}
    assert {"watch", "limit"} <= names
    assert "dryRun" not in names
    assert "requestBody" not in collection
    item = document["paths"]["/apis/shop.example.com/v1/namespaces/{namespace}/orders/{name}"]["get"]
    assert [parameter["name"] for parameter in item["parameters"]] == ["resourceVersion"]

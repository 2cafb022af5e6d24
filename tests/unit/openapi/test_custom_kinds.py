"""Custom kinds in OpenAPI documents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from fastapi_core.apis.resources import builtin
from fastapi_core.openapi.custom import CustomKind
from fastapi_core.openapi.documents import PROTOBUF, OpenAPIDocuments
from fastapi_core.registry.definition import ResourceDefinition, Subresource

LEASES = [definition for definition in builtin() if definition.group == "coordination.k8s.io"]
NAME = "com.example.shop.v1.Order"


def declared(plural: str = "orders") -> ResourceDefinition:
    return replace(
        LEASES[0], group="shop.example.com", version="v1", plural=plural, kind="Order", list_kind="OrderList",
        custom=True, subresources={}, selectable_fields={"spec.color": ("spec", "color")},
    )  # fmt: skip


def kind(schema: dict[str, Any] | None, digest: str = "1", *, preserve: bool = False) -> CustomKind:
    return CustomKind(declared(), digest, lambda: schema, preserve)


def documents(*kinds: CustomKind, previous: OpenAPIDocuments | None = None) -> OpenAPIDocuments:
    return OpenAPIDocuments(LEASES, custom=kinds, previous=previous)


def v3(made: OpenAPIDocuments) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(made.documents["apis/shop.example.com/v1"].body())
    return document


def v2(made: OpenAPIDocuments) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(made.v2.body())
    return document


SPEC = {
    "type": "object",
    "required": ["n", "kept"],
    "properties": {
        "n": {"type": "integer", "nullable": True, "anyOf": [{"minimum": 1}]},
        "kept": {"type": "string", "not": {"enum": ["x"]}},
        "any": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"a": {"type": "string"}},
        },
        "list": {
            "type": "array",
            "items": {"type": "string", "nullable": True},
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "whole": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}},
    },
}


def test_the_newer_dialect_tells_a_schema_as_it_is_declared() -> None:
    schema = {"type": "object", "properties": {"spec": SPEC, "metadata": {"type": "object", "description": "own"}}}
    shown = v3(documents(kind(schema)))["components"]["schemas"][NAME]
    spec = shown["properties"]["spec"]
    assert spec["properties"]["n"] == SPEC["properties"]["n"]  # type: ignore[index]
    reference = {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]}
    assert shown["properties"]["metadata"] == reference
    assert spec["properties"]["whole"]["properties"]["metadata"] == reference
    assert shown["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.color"}]
    assert shown["x-kubernetes-group-version-kind"] == [{"group": "shop.example.com", "kind": "Order", "version": "v1"}]


def test_the_older_dialect_leaves_out_what_it_cannot_say() -> None:
    schema = {"type": "object", "properties": {"spec": SPEC}}
    spec = v2(documents(kind(schema)))["definitions"][NAME]["properties"]["spec"]
    assert spec["required"] == ["kept"]
    assert spec["properties"]["n"] == {}
    assert spec["properties"]["kept"] == {"type": "string"}
    assert spec["properties"]["any"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert spec["properties"]["list"] == {"x-kubernetes-preserve-unknown-fields": True}


def test_open_kinds_have_no_properties_in_the_older_dialect() -> None:
    for made in (
        kind({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        kind(None),
        kind(SPEC, preserve=True),
    ):
        shown = v2(documents(made))["definitions"][NAME]
        assert shown["type"] == "object"
        assert "properties" not in shown


def test_operations_are_those_of_custom_resources() -> None:
    paths = v3(documents(kind(SPEC)))["paths"]
    root = "/apis/shop.example.com/v1/"
    assert set(paths) == {
        root + "orders",
        root + "namespaces/{namespace}/orders",
        root + "namespaces/{namespace}/orders/{name}",
    }
    patch = paths[root + "namespaces/{namespace}/orders/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    assert set(patch["responses"]) == {"200", "401"}
    assert set(patch["responses"]["200"]["content"]) == {"application/json", "application/yaml"}


def test_a_change_of_one_kind_leaves_the_other_documents_alone() -> None:
    first = documents(kind(SPEC))
    second = documents(kind(SPEC, "2"), previous=first)
    third = documents(previous=second)
    lease = "apis/coordination.k8s.io/v1"
    assert first.documents[lease] is second.documents[lease] is third.documents[lease]
    own = "apis/shop.example.com/v1"
    assert first.documents[own].hash != second.documents[own].hash
    assert own not in third.documents
    assert len({first.v2.hash, second.v2.hash, third.v2.hash}) == 3
    assert third.v2.hash == documents().v2.hash


def test_every_keyword_has_a_place_in_protobuf() -> None:
    made = documents(kind({"type": "object", "properties": {"spec": SPEC}}))
    assert NAME.encode() in made.documents["apis/shop.example.com/v1"].body(PROTOBUF)
    assert NAME.encode() in made.v2.body(PROTOBUF)


@pytest.mark.parametrize("verbs", [("get",), ("create",), ("create", "get")])
def test_names_of_built_in_subresources_mean_nothing_here(verbs: tuple[str, ...]) -> None:
    names = sorted({name for definition in builtin() for name in definition.subresources})
    assert {"log", "exec", "attach", "portforward", "proxy", "eviction", "binding", "token"} <= set(names)
    subs = {name: Subresource(name, verbs, "Order", "shop.example.com", "v1") for name in names}
    definition = replace(declared(), subresources=subs)
    made = documents(CustomKind(definition, "1", lambda: {"type": "object"}, False))
    for paths in (v2(made)["paths"], v3(made)["paths"]):
        found = {path.rpartition("/")[2]: set(item) for path, item in paths.items() if "/orders/{name}/" in path}
        methods = {{"get": "get", "create": "post"}[verb] for verb in verbs}
        assert {name: item - {"parameters"} for name, item in found.items()} == dict.fromkeys(names, methods)

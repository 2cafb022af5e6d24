"""Reads the protobuf form of OpenAPI documents back into JSON, from field numbers written down a second time.

Per message: number -> (member, kind). Kinds: `s` text, `b` boolean, `y` a value as YAML, a message name, `=M` for the
content of a message M with one field taken in its place; with `*` repeated, with `{}` a list of (name, value) made an
object.
"""

from __future__ import annotations

import json
import struct
from typing import Any

METHODS = ["get", "put", "post", "delete", "options", "head", "patch"]

V3: dict[str, dict[int, tuple[str, str]]] = {
    "Document": {1: ("openapi", "s"), 2: ("info", "Info"), 4: ("paths", "=Paths"), 5: ("components", "Components")},
    "Info": {1: ("title", "s"), 6: ("version", "s")},
    "Paths": {1: ("", "{}PathItem")},
    "PathItem": {
        **{number: (method, "Operation") for number, method in enumerate(METHODS, 4)},
        13: ("parameters", "*=ParameterOrReference"),
    },
    "ParameterOrReference": {1: ("", "Parameter")},
    "Parameter": {1: ("name", "s"), 2: ("in", "s"), 4: ("required", "b"), 10: ("schema", "=SchemaOrReference")},
    "Operation": {
        1: ("tags", "*s"),
        5: ("operationId", "s"),
        6: ("parameters", "*=ParameterOrReference"),
        7: ("requestBody", "=RequestBodyOrReference"),
        8: ("responses", "=Responses"),
        13: ("", "x"),
    },
    "RequestBodyOrReference": {1: ("", "RequestBody")},
    "RequestBody": {2: ("content", "=MediaTypes"), 3: ("required", "b")},
    "MediaTypes": {1: ("", "{}MediaType")},
    "MediaType": {1: ("schema", "=SchemaOrReference")},
    "Responses": {2: ("", "{}=ResponseOrReference")},
    "ResponseOrReference": {1: ("", "Response")},
    "Response": {1: ("description", "s"), 3: ("content", "=MediaTypes")},
    "Components": {1: ("schemas", "=SchemasOrReferences"), 7: ("securitySchemes", "=SecuritySchemesOrReferences")},
    "SchemasOrReferences": {1: ("", "{}=SchemaOrReference")},
    "SecuritySchemesOrReferences": {1: ("", "{}=SecuritySchemeOrReference")},
    "SecuritySchemeOrReference": {1: ("", "SecurityScheme")},
    "SecurityScheme": {1: ("type", "s"), 3: ("name", "s"), 4: ("in", "s")},
    "SchemaOrReference": {1: ("", "Schema"), 2: ("", "Reference")},
    "Reference": {1: ("$ref", "s")},
    "Schema": {
        20: ("uniqueItems", "b"),
        23: ("required", "*s"),
        24: ("enum", "*y"),
        25: ("type", "s"),
        26: ("allOf", "*=SchemaOrReference"),
        27: ("oneOf", "*=SchemaOrReference"),
        30: ("items", "=ItemsItem"),
        31: ("properties", "=Properties"),
        32: ("additionalProperties", "=AdditionalPropertiesItem"),
        33: ("default", "=DefaultType"),
        35: ("format", "s"),
        36: ("", "x"),
    },
    "ItemsItem": {1: ("", "=SchemaOrReference")},
    "Properties": {1: ("", "{}=SchemaOrReference")},
    "AdditionalPropertiesItem": {1: ("", "=SchemaOrReference"), 2: ("", "b")},
    "DefaultType": {1: ("", "d"), 2: ("", "b"), 3: ("", "s")},
}

V2: dict[str, dict[int, tuple[str, str]]] = {
    "Document": {
        1: ("swagger", "s"),
        2: ("info", "Info"),
        8: ("paths", "=Paths"),
        9: ("definitions", "=Definitions"),
        10: ("parameters", "=ParameterDefinitions"),
        12: ("security", "*=SecurityRequirement"),
        13: ("securityDefinitions", "=SecurityDefinitions"),
    },
    "Info": {1: ("title", "s"), 2: ("version", "s")},
    "Paths": {2: ("", "{}PathItem")},
    "PathItem": {
        **{number: (method, "Operation") for number, method in enumerate(METHODS, 2)},
        9: ("parameters", "*=ParametersItem"),
    },
    "ParametersItem": {1: ("", "=Parameter"), 2: ("", "JsonReference")},
    "JsonReference": {1: ("$ref", "s")},
    "Parameter": {1: ("", "BodyParameter"), 2: ("", "=NonBodyParameter")},
    "NonBodyParameter": {3: ("", "Query"), 4: ("", "Path")},
    "BodyParameter": {2: ("name", "s"), 3: ("in", "s"), 4: ("required", "b"), 5: ("schema", "Schema")},
    "Query": {2: ("in", "s"), 4: ("name", "s"), 6: ("type", "s"), 20: ("uniqueItems", "b")},
    "Path": {1: ("required", "b"), 2: ("in", "s"), 4: ("name", "s"), 5: ("type", "s"), 19: ("uniqueItems", "b")},
    "ParameterDefinitions": {1: ("", "{}=Parameter")},
    "Operation": {
        1: ("tags", "*s"),
        5: ("operationId", "s"),
        6: ("produces", "*s"),
        7: ("consumes", "*s"),
        8: ("parameters", "*=ParametersItem"),
        9: ("responses", "=Responses"),
        10: ("schemes", "*s"),
        13: ("", "x"),
    },
    "Responses": {1: ("", "{}=ResponseValue")},
    "ResponseValue": {1: ("", "Response")},
    "Response": {1: ("description", "s"), 2: ("schema", "=SchemaItem")},
    "SchemaItem": {1: ("", "Schema")},
    "Definitions": {1: ("", "{}Schema")},
    "SecurityRequirement": {1: ("", "{}=StringArray")},
    "StringArray": {1: ("", "*s")},
    "SecurityDefinitions": {1: ("", "{}=SecurityDefinitionsItem")},
    "SecurityDefinitionsItem": {2: ("", "ApiKeySecurity")},
    "ApiKeySecurity": {1: ("type", "s"), 2: ("name", "s"), 3: ("in", "s")},
    "Schema": {
        1: ("$ref", "s"),
        2: ("format", "s"),
        19: ("required", "*s"),
        20: ("enum", "*y"),
        21: ("additionalProperties", "=AdditionalPropertiesItem"),
        22: ("type", "=TypeItem"),
        23: ("items", "=ItemsItem"),
        25: ("properties", "=Properties"),
        31: ("", "x"),
    },
    "AdditionalPropertiesItem": {1: ("", "Schema"), 2: ("", "b")},
    "TypeItem": {1: ("", "s")},
    "ItemsItem": {1: ("", "Schema")},
    "Properties": {1: ("", "{}Schema")},
}


def fields(data: bytes) -> list[tuple[int, Any]]:
    out, at = [], 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            out.append((tag >> 3, varint()))
        elif tag & 7 == 1:
            out.append((tag >> 3, struct.unpack("<d", data[at : at + 8])[0]))
            at += 8
        else:
            assert tag & 7 == 2
            size = varint()
            assert at + size <= len(data)
            out.append((tag >> 3, data[at : at + size]))
            at += size
    return out


def decode(data: bytes, table: dict[str, dict[int, tuple[str, str]]], message: str = "Document") -> Any:
    out: dict[str, Any] = {}
    for number, value in fields(data):
        member, kind = table[message][number]
        if kind == "x":
            name, text = [content for _, content in fields(value)]
            out[name.decode()] = yaml(text)
        elif kind.startswith("*"):
            out.setdefault(member, []).append(single(value, kind[1:], table))
        elif kind.startswith("{}"):
            name, content = [content for _, content in fields(value)]
            out.setdefault(member, {})[name.decode()] = single(content, kind[2:], table)
        else:
            out[member] = single(value, kind, table)
    return out


def single(value: Any, kind: str, table: dict[str, dict[int, tuple[str, str]]]) -> Any:
    if kind == "s":
        return value.decode()
    if kind == "b":
        return bool(value)
    if kind == "d":
        return value
    if kind == "y":
        return yaml(value)
    if kind.startswith("="):
        return decode(value, table, kind[1:]).get("")
    return decode(value, table, kind)


def yaml(data: bytes) -> Any:
    [(number, text)] = fields(data)
    assert number == 2
    return json.loads(text)

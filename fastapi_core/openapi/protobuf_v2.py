"""Messages of `openapi_v2`, as far as the document uses them."""

from __future__ import annotations

from typing import Any

from fastapi_core.openapi.protobuf import (
    Encoder,
    Message,
    any_value,
    boolean,
    each,
    inside,
    members,
    named,
    number,
    text,
    texts,
    whole,
)

_schema = Message(31)


def _additional(number: int) -> Encoder:
    schema, flag = inside(number, _schema(1)), inside(number, boolean(2))
    return lambda value: flag(value) if isinstance(value, bool) else schema(value)


_schema.fields.update(
    {
        "$ref": text(1),
        "format": text(2),
        "description": text(4),
        "required": texts(19),
        "enum": each(any_value(20)),
        "additionalProperties": _additional(21),
        "type": inside(22, text(1)),
        "items": inside(23, _schema(1)),
        "properties": members(25, _schema(2)),
        "title": text(3),
        "default": any_value(5),
        "multipleOf": number(6),
        "maximum": number(7),
        "exclusiveMaximum": boolean(8),
        "minimum": number(9),
        "exclusiveMinimum": boolean(10),
        "maxLength": whole(11),
        "minLength": whole(12),
        "pattern": text(13),
        "maxItems": whole(14),
        "minItems": whole(15),
        "maxProperties": whole(17),
        "minProperties": whole(18),
        "externalDocs": Message(3, {"description": text(1), "url": text(2)})(29),
        "example": any_value(30),
    }
)

_reference = Message(fields={"$ref": text(1)})
_body = Message(6, {"name": text(2), "in": text(3), "required": boolean(4), "schema": _schema(5)})
_query = Message(23, {"in": text(2), "name": text(4), "type": text(6), "uniqueItems": boolean(20)})
_in_path = Message(
    22, {"required": boolean(1), "in": text(2), "name": text(4), "type": text(5), "uniqueItems": boolean(19)}
)


def _parameter(number: int) -> Encoder:
    kinds = {
        "body": inside(number, _body(1)),
        "query": inside(number, inside(2, _query(3))),
        "path": inside(number, inside(2, _in_path(4))),
    }
    return lambda value: kinds[value["in"]](value)


def _parameter_or_reference(number: int) -> Encoder:
    parameter, reference = inside(number, _parameter(1)), inside(number, _reference(2))
    return lambda value: reference(value) if "$ref" in value else parameter(value)


_response = Message(5, {"description": text(1), "schema": inside(2, _schema(1))})
_operation = Message(
    13,
    {
        "tags": texts(1),
        "operationId": text(5),
        "produces": texts(6),
        "consumes": texts(7),
        "parameters": each(_parameter_or_reference(8)),
        "responses": inside(9, named(1, inside(2, _response(1)))),
        "schemes": texts(10),
    },
)
_path = Message(
    10,
    {
        **{
            method: _operation(number)
            for number, method in enumerate(("get", "put", "post", "delete", "options", "head", "patch"), 2)
        },
        "parameters": each(_parameter_or_reference(9)),
    },
)
_key = Message(5, {"type": text(1), "name": text(2), "in": text(3)})
_info = Message(7, {"title": text(1), "version": text(2)})
_document = Message(
    16,
    {
        "swagger": text(1),
        "info": _info(2),
        "paths": inside(8, named(2, _path(2))),
        "definitions": members(9, _schema(2)),
        "parameters": members(10, _parameter(2)),
        "security": each(inside(12, named(1, inside(2, texts(1))))),
        "securityDefinitions": members(13, inside(2, _key(2))),
    },
)


def encode(document: dict[str, Any]) -> bytes:
    """The v2 document as an `openapi.v2.Document`."""
    return _document.encode(document)

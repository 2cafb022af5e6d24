"""Messages of `openapi_v3`, as far as the documents use them."""

from __future__ import annotations

import struct
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

_schema = Message(36)
_reference = Message(fields={"$ref": text(1)})


def _schema_or_reference(number: int) -> Encoder:
    schema, reference = inside(number, _schema(1)), inside(number, _reference(2))
    return lambda value: reference(value) if "$ref" in value else schema(value)


def _additional(number: int) -> Encoder:
    schema, flag = inside(number, _schema_or_reference(1)), inside(number, boolean(2))
    return lambda value: flag(value) if isinstance(value, bool) else schema(value)


def _default(number: int) -> Encoder:
    """Numbers, booleans and strings; the message has no place for other values and stays empty for them."""
    flag, string = inside(number, boolean(2)), inside(number, text(3))

    def encode(value: Any) -> bytes:
        if isinstance(value, bool):
            return flag(value)
        if isinstance(value, str):
            return string(value)
        if isinstance(value, int | float):
            return inside(number, _double)(value)
        return inside(number, lambda _: b"")(value)

    return encode


def _double(value: float) -> bytes:
    return b"\x09" + struct.pack("<d", value)


_schema.fields.update(
    {
        "required": texts(23),
        "enum": each(any_value(24)),
        "type": text(25),
        "allOf": each(_schema_or_reference(26)),
        "oneOf": each(_schema_or_reference(27)),
        "items": inside(30, _schema_or_reference(1)),
        "properties": members(31, _schema_or_reference(2)),
        "additionalProperties": _additional(32),
        "default": _default(33),
        "format": text(35),
        "uniqueItems": boolean(20),
        "nullable": boolean(1),
        "externalDocs": Message(3, {"description": text(1), "url": text(2)})(6),
        "example": any_value(7),
        "title": text(9),
        "multipleOf": number(10),
        "maximum": number(11),
        "exclusiveMaximum": boolean(12),
        "minimum": number(13),
        "exclusiveMinimum": boolean(14),
        "maxLength": whole(15),
        "minLength": whole(16),
        "pattern": text(17),
        "maxItems": whole(18),
        "minItems": whole(19),
        "maxProperties": whole(21),
        "minProperties": whole(22),
        "anyOf": each(_schema_or_reference(28)),
        "not": _schema(29),
        "description": text(34),
    }
)

_media_type = Message(5, {"schema": _schema_or_reference(1)})
_parameter = Message(14, {"name": text(1), "in": text(2), "required": boolean(4), "schema": _schema_or_reference(10)})
_body = Message(4, {"content": members(2, _media_type(2)), "required": boolean(3)})
_response = Message(5, {"description": text(1), "content": members(3, _media_type(2))})
_operation = Message(
    13,
    {
        "tags": texts(1),
        "operationId": text(5),
        "parameters": each(inside(6, _parameter(1))),
        "requestBody": inside(7, _body(1)),
        "responses": inside(8, named(2, inside(2, _response(1)))),
    },
)
_path = Message(
    14,
    {
        **{
            method: _operation(number)
            for number, method in enumerate(("get", "put", "post", "delete", "options", "head", "patch"), 4)
        },
        "parameters": each(inside(13, _parameter(1))),
    },
)
_scheme = Message(9, {"type": text(1), "name": text(3), "in": text(4)})
_components = Message(
    10, {"schemas": members(1, _schema_or_reference(2)), "securitySchemes": members(7, inside(2, _scheme(1)))}
)
_info = Message(7, {"title": text(1), "version": text(6)})
_document = Message(
    9, {"openapi": text(1), "info": _info(2), "paths": members(4, _path(2)), "components": _components(5)}
)


def encode(document: dict[str, Any]) -> bytes:
    """A v3 document as an `openapi.v3.Document`."""
    return _document.encode(document)

"""Type tables as structural schemas: what they refer to is written in place."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.extension.models.base import ANYTHING, PRESERVE, Tree
from fastapi_core.schema.types import ABSENT, Field, Type

_SCALARS: Final[dict[str, Tree]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
}
_INT_OR_STRING: Final[Tree] = {
    "x-kubernetes-int-or-string": True,
    "anyOf": [{"type": "integer"}, {"type": "string"}],
}
#: Types with a form of their own in JSON.
_FORMS: Final[dict[str, Tree]] = {
    "quantity": _INT_OR_STRING,
    "intOrString": _INT_OR_STRING,
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "duration": {"type": "string"},
}


def schema_of(type: Type) -> Tree:
    """The schema of a table; a type inside of itself is anything, for no structural schema can say more."""
    return _schema(type, ())


def _schema(type: Type, outer: tuple[str, ...]) -> Tree:
    if type.json in _FORMS:
        return dict(_FORMS[type.json])
    if type.ref in outer or (type.json and type.json != "list"):
        return dict(ANYTHING)
    inside = (*outer, type.ref)
    if type.json == "list":
        return _member(type.declared[0], inside)
    schema: Tree = {"type": "object"}
    properties = {name: _member(field, inside) for name, field in type.fields.items()}
    if properties:
        schema["properties"] = properties
    else:
        schema[PRESERVE] = True
    required = [name for name, field in type.fields.items() if field.required]
    if required:
        schema["required"] = required
    if type.map_type:
        schema["x-kubernetes-map-type"] = type.map_type
    return schema


def _member(field: Field, outer: tuple[str, ...]) -> Tree:
    inner: Any = dict(_SCALARS[field.scalar]) if field.scalar else _schema(field.type, outer) if field.type else {}
    if field.enum:
        inner = {**inner, "enum": list(field.enum)}
    if field.card == "map":
        made: Tree = {"type": "object", "additionalProperties": inner}
        if field.map_type:
            made["x-kubernetes-map-type"] = field.map_type
    elif field.card == "list":
        made = {"type": "array", "items": inner}
        if field.list_type:
            made["x-kubernetes-list-type"] = field.list_type
            if field.list_keys:
                made["x-kubernetes-list-map-keys"] = list(field.list_keys)
                _require(inner, field.list_keys)
    else:
        made = inner
    if field.default is not ABSENT and field.default is not None:
        made["default"] = field.default
    return made


def _require(item: Tree, keys: tuple[str, ...]) -> None:
    """Keys of a list must be there, or have defaults."""
    properties = item.get("properties") or {}
    lacking = [key for key in keys if key in properties and "default" not in properties[key]]
    item["required"] = list(dict.fromkeys([*(item.get("required") or ()), *lacking]))

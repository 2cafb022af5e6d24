"""Declarations from schemas: of custom resources (OpenAPI) and from the type tables of built-in types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastapi_core.cel import times
from fastapi_core.cel.decls import (
    BOOL_DECL,
    DOUBLE_DECL,
    INT_DECL,
    REQUEST_LIMIT,
    STRING_DECL,
    Decl,
    Field,
    list_decl,
    map_decl,
    object_decl,
)
from fastapi_core.cel.names import escape
from fastapi_core.cel.types import BYTES, DURATION, DYN, STRING, TIMESTAMP
from fastapi_core.schema.types import Type as SchemaType

Schema = Mapping[str, Any]

_ROOT: Final[dict[str, Schema]] = {
    "kind": {"type": "string"},
    "apiVersion": {"type": "string"},
    "metadata": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
    },
}
#: Longest and shortest JSON of times and spans, with their quotes.
_TIME_SIZE: Final = 32
_DATE_SIZE: Final = 12
_MIN_TIME: Final = 21
_MIN_DURATION: Final = 3
_TEXT_LIMIT: Final = REQUEST_LIMIT - 2


def from_schema(schema: Schema, *, root: bool = False) -> Decl | None:
    """The declaration of an OpenAPI schema; None when expressions cannot see it.

    `root`: the schema of a whole object (or an embedded one), whose kind, apiVersion and names are always there.
    Objects are named `object` until `Decl.named` gives them the path they are found at.
    """
    if schema.get("x-kubernetes-int-or-string"):
        limit = schema.get("maxLength")
        size = _TEXT_LIMIT if limit is None else max(limit, 0) * 4
        return Decl(DYN, min_size=1, max_elements=size, nullable=bool(schema.get("nullable")))
    if root:
        schema = _with_root(schema)
    match schema.get("type"):
        case "array":
            return _array(schema)
        case "object":
            return _object(schema)
        case "string":
            return _string(schema)
        case "boolean":
            return _plain(BOOL_DECL, schema)
        case "number":
            return _plain(DOUBLE_DECL, schema)
        case "integer":
            return _plain(INT_DECL, schema)
    return None


def _plain(decl: Decl, schema: Schema) -> Decl:
    if not schema.get("nullable"):
        return decl
    return Decl(decl.type, min_size=decl.min_size, convert=decl.convert, nullable=True)


def _with_root(schema: Schema) -> Schema:
    properties = dict(schema.get("properties") or {})
    metadata = properties.get("metadata") or {}
    names = metadata.get("properties") or {}
    if (
        all((properties.get(name) or {}).get("type") == "string" for name in ("kind", "apiVersion"))
        and metadata.get("type") == "object"
        and all((names.get(name) or {}).get("type") == "string" for name in ("name", "generateName"))
    ):
        return schema
    return {**schema, "properties": {**properties, **_ROOT}}


def _is_embedded(schema: Schema) -> bool:
    return bool(schema.get("x-kubernetes-embedded-resource"))


def _array(schema: Schema) -> Decl | None:
    items = schema.get("items")
    if not isinstance(items, Mapping):
        return None
    element = from_schema(items, root=_is_embedded(items))
    if element is None:
        return None
    limit = schema.get("maxItems")
    most = (REQUEST_LIMIT - 2) // (element.min_size + 1) if limit is None else max(limit, 0)
    order = schema.get("x-kubernetes-list-type", "")
    return list_decl(
        element,
        most,
        order=order if order in ("set", "map") else "",
        keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
    )


def _object(schema: Schema) -> Decl | None:
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping) and values:
        element = from_schema(values, root=_is_embedded(values))
        if element is None:
            return None
        limit = schema.get("maxProperties")
        most = (REQUEST_LIMIT - 2) // (element.min_size + 6) if limit is None else max(limit, 0)
        return map_decl(element, most)
    fields: dict[str, Decl | Field] = {}
    required = set(schema.get("required") or ())
    least = 2
    for name, prop in (schema.get("properties") or {}).items():
        decl = from_schema(prop, root=_is_embedded(prop))
        if decl is None:
            continue
        escaped = escape(name)
        if escaped is not None:
            fields[escaped] = Field(name, decl)
        if name in required and prop.get("default") is None:
            least += len(name.encode()) + decl.min_size + 4
    return object_decl("object", fields, least)


def _string(schema: Schema) -> Decl:
    limit = schema.get("maxLength")
    nullable = bool(schema.get("nullable"))
    match schema.get("format"):
        case "byte":
            size = _TEXT_LIMIT if limit is None else max(limit, 0)
            return Decl(BYTES, min_size=2, max_elements=size, convert=times.from_byte, nullable=nullable)
        case "duration":
            return Decl(
                DURATION,
                min_size=_MIN_DURATION,
                max_elements=_TIME_SIZE,
                convert=times.from_duration,
                nullable=nullable,
            )
        case "date":
            return Decl(
                TIMESTAMP, min_size=_DATE_SIZE, max_elements=_DATE_SIZE, convert=times.from_date, nullable=nullable
            )
        case "date-time":
            return Decl(
                TIMESTAMP, min_size=_MIN_TIME, max_elements=_TIME_SIZE, convert=times.from_date_time, nullable=nullable
            )
    if limit is not None:
        size = max(limit, 0) * 4
    elif schema.get("enum"):
        size = max((len(value.encode()) for value in schema["enum"] if isinstance(value, str)), default=0)
    else:
        size = _TEXT_LIMIT
    return Decl(STRING, min_size=2, max_elements=size, nullable=nullable)


# Built-in types.

_SCALARS: Final = {
    "string": STRING_DECL,
    "bool": BOOL_DECL,
    "int32": INT_DECL,
    "int64": INT_DECL,
    "double": DOUBLE_DECL,
    "bytes": Decl(BYTES, min_size=2, max_elements=_TEXT_LIMIT, convert=times.from_byte),
}
_TIMES: Final = Decl(TIMESTAMP, min_size=_MIN_TIME, max_elements=_TIME_SIZE, convert=times.from_date_time)
_SPANS: Final = Decl(STRING, min_size=2, max_elements=_TEXT_LIMIT)
_FORMS: Final = {"time": _TIMES, "microtime": _TIMES, "duration": _SPANS, "quantity": STRING_DECL}


def from_type(type_: SchemaType, *, prefix: str = "") -> Decl:
    """The declaration of a built-in type, objects named after it; what has no fields of its own is dyn."""
    return _Tables(prefix).declare(type_)


class _Tables:
    """Declarations of one type and of those in it, each made once, so that types may contain themselves."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._made: dict[str, Decl] = {}

    def declare(self, type_: SchemaType) -> Decl:
        if type_.json:
            return _FORMS.get(type_.json) or Decl(DYN, min_size=1, max_elements=_TEXT_LIMIT)
        made = self._made.get(type_.ref)
        if made is not None:
            return made
        fields: dict[str, Decl | Field] = {}
        decl = object_decl(f"{self._prefix}{type_.ref}", {})
        decl.fields = _LazyFields(self, type_, fields)
        self._made[type_.ref] = decl
        return decl

    def field(self, field: Any) -> Decl:
        inner = _SCALARS[field.scalar] if field.scalar else self.declare(field.type)
        if field.card == "list":
            order = field.list_type if field.list_type in ("set", "map") else ""
            return list_decl(inner, order=order, keys=tuple(field.list_keys))
        return map_decl(inner) if field.card == "map" else inner


class _LazyFields(dict[str, Field]):
    """The fields of a built-in type, declared when one is asked for."""

    def __init__(self, tables: _Tables, type_: SchemaType, known: Mapping[str, Any]) -> None:
        super().__init__()
        self._tables = tables
        self._type = type_
        self._known = known

    def get(self, name: str, default: Any = None) -> Any:
        if name in self:
            return super().__getitem__(name)
        return default

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name):
            return True
        for raw, field in self._type.fields.items():
            if escape(raw) == name:
                super().__setitem__(str(name), Field(raw, self._tables.field(field)))
                return True
        return False

    def __getitem__(self, name: str) -> Field:
        if name not in self:
            raise KeyError(name)
        return super().__getitem__(name)

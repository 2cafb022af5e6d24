"""What field ownership sees of a type: which values have paths below them, and what tells list items apart.

A `Shape` is made once from a type table (`shape_of`) or from the schema of a custom resource (`from_schema`); `DEDUCED`
stands where nothing is known: objects are taken apart, lists are one value. `Shape` itself and the walks along it are
compiled (`_ext/fieldset.pyx`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, Final

from fastapi_core._ext.fieldset import ABSENT, ItemError, Member, Shape
from fastapi_core.patch import fieldset
from fastapi_core.schema import types
from fastapi_core.schema.types import Field, Type

__all__ = ["ABSENT", "DEDUCED", "LEAF", "Kind", "Member", "Shape", "from_schema", "shape_of", "without"]


class Kind(IntEnum):
    LEAF = 0
    """One value: a scalar, or an object or list that is owned as a whole."""
    OBJECT = 1
    """A struct or map; members have paths of their own."""
    KEYED = 2
    """A list whose items are told apart by some of their members."""
    SET = 3
    """A list of different scalars."""
    DEDUCED = 4
    """Anything."""


LEAF: Final = Shape(Kind.LEAF)
DEDUCED: Final = Shape(Kind.DEDUCED)
_SCALARS: Final = {name: Shape(Kind.LEAF, scalar=name) for name in ("string", "number", "boolean", "any")}
_WHOLE_LIST: Final = Shape(Kind.LEAF, scalar="list")
_SCALAR_NAMES: Final = {
    "string": "string",
    "bytes": "string",
    "bool": "boolean",
    "int32": "number",
    "int64": "number",
    "double": "number",
}
_ZEROES: Final[dict[str, Any]] = {"string": "", "bytes": None, "bool": False, "int32": 0, "int64": 0, "double": 0}
_FORMS: Final[dict[str, tuple[Shape, Any]]] = {
    "time": (_SCALARS["any"], None),
    "microtime": (_SCALARS["any"], None),
    "duration": (_SCALARS["string"], "0s"),
    "quantity": (_SCALARS["any"], "0"),
    "intOrString": (_SCALARS["any"], 0),
    "rawObject": (LEAF, None),
    "rawAny": (DEDUCED, None),
    "fields": (DEDUCED, None),
    "list": (_WHOLE_LIST, None),
    "schemaOrBool": (DEDUCED, False),
    "schemaOrSchemaList": (DEDUCED, None),
    "schemaOrStringList": (DEDUCED, None),
}


# Path elements of list items

_HASHABLE: Final = (str, int, bool, float)


def identify_value(shape: Shape, item: Any) -> str:
    """Element of an item of a set."""
    if item.__class__ in _HASHABLE:
        return fieldset.valued(item)
    if item is None:
        raise ItemError("associative list without keys has an element that's an explicit null")
    if item.__class__ is list:
        raise ItemError("not supported: associative list with lists as elements")
    raise ItemError("associative list without keys has an element that's a map type")


def identify_keyed(shape: Shape, item: Any) -> str:
    """Element of an item of a keyed list, defaults of its keys included."""
    if item.__class__ is not dict:
        what = "a null element" if item is None else "non-map elements"
        raise ItemError(f"associative list with keys may not have {what}")
    known = {**shape.defaults, **item}
    key = {name: known[name] for name in shape.keys if name in known}
    if not key:
        listed = " ".join(f'"{name}"' for name in shape.keys)
        raise ItemError(
            f"associative list with keys has an element that omits all key fields [{listed}] "
            "(and doesn't have default values for any key fields)"
        )
    return fieldset.keyed(key)


# Type tables


def shape_of(type_: Type) -> Shape:
    """The shape of a type of the tables, or the one a custom type was given."""
    shape: Shape | None = type_.shape
    if shape is None:
        shape = type_.shape = _make(type_)
    return shape


def _make(type_: Type) -> Shape:
    if type_.json:
        return _FORMS[type_.json][0]
    if type_.map_type == "atomic":
        return _whole_object(lambda: _taken_apart(type_))
    return _taken_apart(type_)


def _taken_apart(type_: Type) -> Shape:
    def members() -> Mapping[str, Member]:
        known = {name: _member(field) for name, field in type_.fields.items()}
        if type_.kind:
            for name in ("apiVersion", "kind"):
                known[name] = Member(name, _SCALARS["string"])
        return known

    return Shape(Kind.OBJECT, members=members)


def _member(field: Field) -> Member:
    return Member(field.name, _field_shape(field), _implied(field))


def _field_shape(field: Field) -> Shape:
    if field.card == "list":
        return _list_shape(field)
    if field.map_type == "atomic":
        return _whole_object(lambda: _apart(field))
    if field.card == "map":
        return Shape(Kind.OBJECT, rest=_value_shape(field))
    if field.map_type == "granular" and field.type is not None:
        return _taken_apart(field.type)
    return _value_shape(field)


def _apart(field: Field) -> Shape:
    """What is in an object that is owned as a whole."""
    if field.card == "map":
        return Shape(Kind.OBJECT, rest=_value_shape(field))
    assert field.type is not None
    return _taken_apart(field.type)


def _whole_object(content: Callable[[], Shape]) -> Shape:
    return Shape(Kind.LEAF, scalar="object", item=content)


def _whole_list(item: Callable[[], Shape]) -> Shape:
    return Shape(Kind.LEAF, scalar="list", item=item)


def _value_shape(field: Field) -> Shape:
    if field.scalar:
        return _SCALARS[_SCALAR_NAMES[field.scalar]]
    assert field.type is not None
    return shape_of(field.type)


def _list_shape(field: Field) -> Shape:
    if field.list_type == "set":
        return Shape(Kind.SET, item=lambda: _value_shape(field), identify=identify_value)
    if field.list_type != "map":
        return _whole_list(lambda: _value_shape(field))
    type_ = field.type
    assert type_ is not None
    defaults = {
        key: type_.fields[key].default
        for key in field.list_keys
        if key in type_.fields and type_.fields[key].default is not types.ABSENT
    }
    return _keyed(field.list_keys, defaults, lambda: shape_of(type_))


def _keyed(keys: tuple[str, ...], defaults: Mapping[str, Any], item: Callable[[], Shape]) -> Shape:
    return Shape(Kind.KEYED, keys=keys, defaults=defaults, item=item, identify=identify_keyed)


def _implied(field: Field) -> Any:
    """What the reference's struct holds when the member is not given; nothing when it would not be printed."""
    if field.pointer or field.card:
        return ABSENT if field.omit else None
    if field.scalar:
        return ABSENT if field.omit else _ZEROES[field.scalar]
    if field.omit == "empty+zero":
        return ABSENT
    assert field.type is not None
    form = field.type.json
    if form == "list":
        return ABSENT if field.omit else None
    return _FORMS[form][1] if form else {}


# Schemas of custom resources


def from_schema(schema: Mapping[str, Any] | None, metadata: Shape) -> Shape:
    """The shape of a custom resource from its structural OpenAPI schema (None: no schema).

    `metadata` is the shape of ObjectMeta. Understood are type, properties, additionalProperties, items, default and
    `x-kubernetes-` list-type, list-map-keys, map-type, embedded-resource and preserve-unknown-fields
    (which holds for everything below).
    """
    reader = _SchemaReader(metadata)
    known = dict(reader.object(schema, False).members) if schema else {}
    known.update(reader.embedded())
    known["metadata"] = Member("metadata", known["metadata"].shape, {})
    free = not schema or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    return Shape(Kind.OBJECT, members=lambda: known, rest=DEDUCED if free else None)


class _SchemaReader:
    """Turns the nodes of one schema into shapes; `preserve` tells that an outer node keeps unknown fields."""

    def __init__(self, metadata: Shape) -> None:
        self._metadata = metadata

    def embedded(self) -> dict[str, Member]:
        """The members every object has."""
        text = _SCALARS["string"]
        return {
            "apiVersion": Member("apiVersion", text),
            "kind": Member("kind", text),
            "metadata": Member("metadata", self._metadata),
        }

    def shape(self, schema: Mapping[str, Any], preserve: bool) -> Shape:
        kind = schema.get("type")
        if kind == "object":
            return self.object(schema, preserve)
        if kind == "array":
            return self._list(schema, preserve)
        if kind == "string":
            return _SCALARS["string" if schema.get("format", "") in ("", "byte") else "any"]
        if kind in ("integer", "number"):
            return _SCALARS["number"]
        return _SCALARS["boolean"] if kind == "boolean" else DEDUCED

    def object(self, schema: Mapping[str, Any], preserve: bool) -> Shape:
        preserve = preserve or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        if schema.get("x-kubernetes-map-type") == "atomic":
            apart = {name: value for name, value in schema.items() if name != "x-kubernetes-map-type"}
            return _whole_object(lambda: self.object(apart, preserve))
        embedded = bool(schema.get("x-kubernetes-embedded-resource"))
        properties: Mapping[str, Any] = schema.get("properties") or {}
        more = schema.get("additionalProperties")
        rest: Shape | None = None
        if isinstance(more, Mapping):
            rest = self.shape(more, preserve)
        elif more is True or (more is None and (preserve or not (properties or embedded))):
            rest = DEDUCED

        def members() -> Mapping[str, Member]:
            made = {name: Member(name, self.shape(member, preserve)) for name, member in properties.items()}
            return {**made, **self.embedded()} if embedded else made

        return Shape(Kind.OBJECT, members=members, rest=rest)

    def _list(self, schema: Mapping[str, Any], preserve: bool) -> Shape:
        kind = schema.get("x-kubernetes-list-type")
        items: Mapping[str, Any] = schema.get("items") or {}
        if kind == "set":
            return Shape(Kind.SET, item=lambda: self.shape(items, preserve), identify=identify_value)
        if kind != "map":
            return _whole_list(lambda: self.shape(items, preserve))
        properties: Mapping[str, Any] = items.get("properties") or {}
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        defaults = {key: properties[key]["default"] for key in keys if "default" in properties.get(key, ())}
        return _keyed(keys, defaults, lambda: self.shape(items, preserve))


# Parts of a shape


def without(shape: Shape, paths: Iterable[tuple[str, ...]]) -> Shape:
    """The same shape with some members taken out, each named by its path of member names."""
    listed = [path for path in paths if path]
    if not listed or shape.kind not in (Kind.OBJECT, Kind.DEDUCED):
        return shape
    gone = frozenset(path[0] for path in listed if len(path) == 1)
    members = {name: member for name, member in shape.members.items() if name not in gone}
    rest = DEDUCED if shape.kind is Kind.DEDUCED else shape.rest
    for name in {path[0] for path in listed} - gone:
        inner = [path[1:] for path in listed if path[0] == name]
        member = members.get(name)
        if member is not None:
            members[name] = Member(name, without(member.shape, inner), member.implied)
        elif rest is not None:
            members[name] = Member(name, without(rest, inner))
    return Shape(Kind.OBJECT, members=lambda: members, rest=rest, hidden=gone | shape.hidden)

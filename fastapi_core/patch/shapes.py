"""What field ownership sees of a type: which values have paths below them, and what tells list items apart.

A `Shape` is made once from a type table (`shape_of`) or from the schema of a custom resource (`from_schema`); `DEDUCED`
stands where nothing is known: objects are taken apart, lists are one value. Walks over shapes are in `typed.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, Final, NamedTuple

from fastapi_core.schema.types import ABSENT, Field, Type


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


class Member(NamedTuple):
    """A named member of an object: its path element, its shape, and what a missing one amounts to (`ABSENT`: nothing).

    Structs that are no pointers are always there in the reference, so are lists and maps that print null when unset.
    """

    element: str
    shape: Shape
    implied: Any


class Shape:
    """See the module. `scalar` names what a leaf must be: string, number, boolean, any (any scalar), whole (anything),
    object, list; `rest` is the shape of members without a name (of a map's values), None where there are none."""

    __slots__ = (
        "_item",
        "_load",
        "_make_item",
        "_members",
        "defaults",
        "hidden",
        "keys",
        "kind",
        "rest",
        "scalar",
        "sorted_keys",
    )

    def __init__(
        self,
        kind: Kind,
        *,
        members: Callable[[], Mapping[str, Member]] | None = None,
        rest: Shape | None = None,
        item: Callable[[], Shape] | None = None,
        keys: tuple[str, ...] = (),
        defaults: Mapping[str, Any] | None = None,
        scalar: str = "whole",
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        self.kind = kind
        self._load = members
        self._members: Mapping[str, Member] | None = None if members is not None else {}
        self.rest = rest
        self._make_item = item
        self._item: Shape | None = None
        self.keys = keys
        self.sorted_keys = tuple(sorted(keys))
        self.defaults: Mapping[str, Any] = defaults or {}
        self.scalar = scalar
        self.hidden = hidden
        """Members that are not looked at although `rest` would take them."""

    @property
    def members(self) -> Mapping[str, Member]:
        if self._members is None:
            assert self._load is not None
            self._members = self._load()
        return self._members

    @property
    def item(self) -> Shape:
        """Shape of the items of a list."""
        if self._item is None:
            assert self._make_item is not None
            self._item = self._make_item()
        return self._item

    def __repr__(self) -> str:
        return f"<Shape {self.kind.name}>"


LEAF: Final = Shape(Kind.LEAF)
DEDUCED: Final = Shape(Kind.DEDUCED)
_SCALARS: Final = {name: Shape(Kind.LEAF, scalar=name) for name in ("string", "number", "boolean", "any")}
_WHOLE_OBJECT: Final = Shape(Kind.LEAF, scalar="object")
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
        return _WHOLE_OBJECT

    def members() -> Mapping[str, Member]:
        known = {name: _member(field) for name, field in type_.fields.items()}
        if type_.kind:
            for name in ("apiVersion", "kind"):
                known[name] = Member("f:" + name, _SCALARS["string"], ABSENT)
        return known

    return Shape(Kind.OBJECT, members=members)


def _member(field: Field) -> Member:
    return Member("f:" + field.name, _field_shape(field), _implied(field))


def _field_shape(field: Field) -> Shape:
    if field.card == "list":
        return _list_shape(field)
    if field.map_type == "atomic":
        return _WHOLE_OBJECT
    if field.card == "map":
        return Shape(Kind.OBJECT, rest=_value_shape(field))
    return _value_shape(field)


def _value_shape(field: Field) -> Shape:
    if field.scalar:
        return _SCALARS[_SCALAR_NAMES[field.scalar]]
    assert field.type is not None
    return shape_of(field.type)


def _list_shape(field: Field) -> Shape:
    if field.list_type == "set":
        return Shape(Kind.SET, item=lambda: _value_shape(field))
    if field.list_type != "map":
        return _WHOLE_LIST
    type_ = field.type
    assert type_ is not None
    defaults = {
        key: type_.fields[key].default
        for key in field.list_keys
        if key in type_.fields and type_.fields[key].default is not ABSENT
    }
    return Shape(Kind.KEYED, keys=field.list_keys, defaults=defaults, item=lambda: shape_of(type_))


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
    `x-kubernetes-` list-type, list-map-keys, map-type, int-or-string, embedded-resource and preserve-unknown-fields
    (which holds for everything below).
    """
    reader = _SchemaReader(metadata)
    known = dict(reader.object(schema, False).members) if schema else {}
    known.update(reader.embedded())
    known["metadata"] = known["metadata"]._replace(implied={})
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
            "apiVersion": Member("f:apiVersion", text, ABSENT),
            "kind": Member("f:kind", text, ABSENT),
            "metadata": Member("f:metadata", self._metadata, ABSENT),
        }

    def shape(self, schema: Mapping[str, Any], preserve: bool) -> Shape:
        kind = schema.get("type")
        if schema.get("x-kubernetes-int-or-string"):
            return _SCALARS["any"]
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
            return _WHOLE_OBJECT
        embedded = bool(schema.get("x-kubernetes-embedded-resource"))
        properties: Mapping[str, Any] = schema.get("properties") or {}
        more = schema.get("additionalProperties")
        rest: Shape | None = None
        if isinstance(more, Mapping):
            rest = self.shape(more, preserve)
        elif more is True or (more is None and (preserve or not (properties or embedded))):
            rest = DEDUCED

        def members() -> Mapping[str, Member]:
            made = {
                name: Member("f:" + name, self.shape(member, preserve), ABSENT) for name, member in properties.items()
            }
            return {**made, **self.embedded()} if embedded else made

        return Shape(Kind.OBJECT, members=members, rest=rest)

    def _list(self, schema: Mapping[str, Any], preserve: bool) -> Shape:
        kind = schema.get("x-kubernetes-list-type")
        items: Mapping[str, Any] = schema.get("items") or {}
        if kind == "set":
            return Shape(Kind.SET, item=lambda: self.shape(items, preserve))
        if kind != "map":
            return _WHOLE_LIST
        properties: Mapping[str, Any] = items.get("properties") or {}
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        defaults = {key: properties[key]["default"] for key in keys if "default" in properties.get(key, ())}
        return Shape(Kind.KEYED, keys=keys, defaults=defaults, item=lambda: self.shape(items, preserve))


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
            members[name] = member._replace(shape=without(member.shape, inner))
        elif rest is not None:
            members[name] = Member("f:" + name, without(rest, inner), ABSENT)
    return Shape(Kind.OBJECT, members=lambda: members, rest=rest, hidden=gone | shape.hidden)

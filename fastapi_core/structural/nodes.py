"""The nodes of a structural schema.

A node is made from its JSON once; equal ones are the same object for as long as anybody holds them, whatever their
descriptions say. What walks need (tables, closures) is put into a node when a walk first gets there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Final
from weakref import WeakValueDictionary

import orjson

Json = dict[str, Any]
Check = Callable[[Any], bool]

PREFIX: Final = "x-kubernetes-"
#: What only describes, and so makes no difference.
_DESCRIBING: Final = frozenset(
    {"description", "title", "example", "externalDocs", "$schema", "id", "definitions", "dependencies", "$ref"}
    | {"patternProperties", "additionalItems"}
)
_NESTED: Final = frozenset({"properties", "additionalProperties", "items", "allOf", "anyOf", "oneOf", "not"})
#: Formats of strings that are checked, without dashes.
FORMATS: Final = frozenset(
    {"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5"}
    | {"isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration"}
    | {"datetime", "k8sshortname", "k8slongname"}
)
META: Final = frozenset({"apiVersion", "kind", "metadata"})


def canonical_format(name: str) -> str:
    """Formats are known by their names without dashes."""
    return name.replace("-", "")


class Node:
    """One schema. `properties` has no entry for what is no schema; `extra` is the schema of other members, `open` tells
    that members without one are kept (`additionalProperties: true`), `closed` that they are refused (`false`)."""

    __slots__ = (
        "__weakref__",
        "all_of",
        "any_of",
        "check",
        "closed",
        "default",
        "embedded",
        "enum",
        "exclusive_maximum",
        "exclusive_minimum",
        "extra",
        "format",
        "has_defaults",
        "has_embedded",
        "has_lists",
        "has_rules",
        "items",
        "list_keys",
        "list_type",
        "map_type",
        "max_items",
        "max_length",
        "max_properties",
        "maximum",
        "min_items",
        "min_length",
        "min_properties",
        "minimum",
        "multiple_of",
        "none_of",
        "nullable",
        "one_of",
        "open",
        "pattern",
        "preserve",
        "properties",
        "required",
        "rules",
        "types",
        "unique",
        "walks",
        "written",
    )

    def __init__(self, schema: Mapping[str, Any], children: _Children) -> None:
        self.types = types_of(schema)
        self.properties = children.properties
        self.extra = children.extra
        more = schema.get("additionalProperties")
        self.open = more is not None
        self.closed = more is False
        self.items = children.items
        self.all_of, self.any_of, self.one_of = children.all_of, children.any_of, children.one_of
        self.none_of = children.none_of
        self.nullable = bool(schema.get("nullable"))
        self.default: Any = schema.get("default")
        self.preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        self.embedded = bool(schema.get("x-kubernetes-embedded-resource"))
        self.list_type: str = schema.get("x-kubernetes-list-type") or ""
        self.list_keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self.map_type: str = schema.get("x-kubernetes-map-type") or ""
        self.rules: tuple[Json, ...] = tuple(schema.get("x-kubernetes-validations") or ())
        self._keywords(schema)
        below = [*self.properties.values(), *(node for node in (self.extra, self.items) if node is not None)]
        self.has_defaults: bool = any(node.default is not None or node.has_defaults for node in below)
        self.has_embedded: bool = self.embedded or any(node.has_embedded for node in below)
        self.has_lists: bool = self.list_type in ("set", "map") or any(node.has_lists for node in below)
        self.has_rules: bool = bool(self.rules) or any(node.has_rules for node in below)
        self.check: Check | None = None
        #: Tables of the walks, by walk.
        self.walks: dict[str, Any] = {}

    def _keywords(self, schema: Mapping[str, Any]) -> None:
        self.enum: tuple[Any, ...] = tuple(schema.get("enum") or ())
        form, kind = schema.get("format") or "", schema.get("type") or ""
        #: Types and format as the schema has them.
        self.written: tuple[tuple[str, ...], str] = ((kind,) if kind else (), form)
        self.format = effective_format(form, self.types)
        self.pattern: str = schema.get("pattern") or ""
        self.max_length: int | None = schema.get("maxLength")
        self.min_length: int | None = schema.get("minLength")
        self.maximum: float | None = schema.get("maximum")
        self.minimum: float | None = schema.get("minimum")
        self.exclusive_maximum = bool(schema.get("exclusiveMaximum"))
        self.exclusive_minimum = bool(schema.get("exclusiveMinimum"))
        self.multiple_of: float | None = schema.get("multipleOf")
        self.max_items: int | None = schema.get("maxItems")
        self.min_items: int | None = schema.get("minItems")
        self.unique = bool(schema.get("uniqueItems"))
        self.max_properties: int | None = schema.get("maxProperties")
        self.min_properties: int | None = schema.get("minProperties")
        self.required: tuple[str, ...] = tuple(schema.get("required") or ())

    @property
    def kind(self) -> str:
        """The type as it was written, empty without one."""
        return self.types[0] if len(self.types) == 1 else ""

    def member(self, name: str) -> Node | None:
        """The schema of a member."""
        return self.properties.get(name) or self.extra


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The types a schema allows; none allows all."""
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    kind = schema.get("type") or ""
    return (kind,) if kind else ()


def effective_format(name: str, types: tuple[str, ...]) -> str:
    """A format that is checked for the type; others are only notes."""
    if not name:
        return ""
    kind = types[0] if len(types) == 1 else ""
    if kind in ("", "string"):
        return name if canonical_format(name) in FORMATS else ""
    if kind == "integer":
        return name if name in ("int32", "int64") else ""
    if kind == "number":
        return name if name in ("float", "double") else ""
    return ""


class _Children:
    """The schemas inside of one."""

    __slots__ = ("all_of", "any_of", "extra", "items", "none_of", "one_of", "properties")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.properties = {
            name: node_of(member)
            for name, member in sorted((schema.get("properties") or {}).items())
            if isinstance(member, dict)
        }
        extra, items, none_of = schema.get("additionalProperties"), schema.get("items"), schema.get("not")
        self.extra = node_of(extra) if isinstance(extra, dict) else None
        self.items = node_of(items) if isinstance(items, dict) else None
        self.none_of = node_of(none_of) if isinstance(none_of, dict) else None
        self.all_of = self._several(schema, "allOf")
        self.any_of = self._several(schema, "anyOf")
        self.one_of = self._several(schema, "oneOf")

    @staticmethod
    def _several(schema: Mapping[str, Any], name: str) -> tuple[Node, ...]:
        return tuple(node_of(item) for item in schema.get(name) or () if isinstance(item, dict))

    def key(self) -> tuple[Any, ...]:
        return (
            tuple(self.properties.items()),
            self.extra,
            self.items,
            self.none_of,
            self.all_of,
            self.any_of,
            self.one_of,
        )


_NODES: WeakValueDictionary[tuple[Any, ...], Node] = WeakValueDictionary()


def node_of(schema: Mapping[str, Any]) -> Node:
    """The node of a schema, shared with all that are equal."""
    own = {name: value for name, value in schema.items() if name not in _NESTED and name not in _DESCRIBING}
    more = schema.get("additionalProperties")
    children = _Children(schema)
    key = (
        canonical(own),
        more if isinstance(more, bool) else None,
        children.key(),
    )
    node = _NODES.get(key)
    if node is None:
        node = _NODES[key] = Node(schema, children)
    return node


def canonical(value: Any) -> bytes:
    """The same bytes for equal JSON, whatever the order of members."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # integers of more than 64 bits
        return json.dumps(value, sort_keys=True).encode()


def shown(value: Any) -> Any:
    """A value for messages, which have the members of objects without a type in order."""
    return orjson.loads(canonical(value)) if type(value) in (dict, list) else value


def digest(value: Any) -> bytes:
    """The same few bytes for equal JSON."""
    return blake2b(canonical(value), digest_size=16).digest()


def copy_json(value: Any) -> Any:
    """A deep copy."""
    kind = type(value)
    if kind is dict:
        return {name: copy_json(inner) for name, inner in value.items()}
    if kind is list:
        return [copy_json(inner) for inner in value]
    return value

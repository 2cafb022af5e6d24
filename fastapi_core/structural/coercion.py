"""Metadata of objects, also of those inside of others: what is no field of it goes, what has the wrong type is an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from fastapi_core.errors import FieldError
from fastapi_core.schema.errors import TypeMismatch
from fastapi_core.schema.normalize import normalize
from fastapi_core.schema.tables import type_of
from fastapi_core.structural.nodes import Json, Node, shown

_MUST_BE_STRING = "must be a string"


class Coerced(NamedTuple):
    """The errors (the first one only, as in the reference) and the paths of unknown members of metadata."""

    errors: list[FieldError]
    unknown: list[str]


def coerce(tree: Json, node: Node, *, drop: bool) -> Coerced:
    """In place. `drop`: members of wrong types are dropped instead of reported."""
    walk = _Walk(drop)
    try:
        walk.metadata(tree, "")
        if node.has_embedded:
            walk.value(tree, node, "", node.embedded)
    except _WrongType as wrong:
        return Coerced([wrong.error], walk.unknown)
    return Coerced([], sorted(walk.unknown))


def problems(value: Any, node: Node, path: str, *, embedded: bool) -> list[FieldError]:
    """What is wrong with the metadata in a value, which is coerced (a default of a definition)."""
    walk = _Walk(False)
    try:
        walk.value(value, node, path, embedded)
    except _WrongType as wrong:
        return [wrong.error]
    return []


class _WrongType(Exception):  # noqa: N818 - a way out of the walk
    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


class _Walk:
    def __init__(self, drop: bool) -> None:
        self._drop = drop
        self.unknown: list[str] = []

    def value(self, value: Any, node: Node | None, path: str, embedded: bool) -> None:
        if node is None or not (embedded or node.has_embedded):
            return
        if type(value) is dict:
            if embedded:
                self._type_meta(value, path)
                self.metadata(value, path)
            for part, inner, member in children(value, node):
                self.value(inner, member, join(path, part), member.embedded)
        elif type(value) is list and node.items is not None:
            for index, inner in enumerate(value):
                self.value(inner, node.items, f"{path}[{index}]", node.items.embedded)

    def _type_meta(self, tree: Json, path: str) -> None:
        for name in ("apiVersion", "kind"):
            if name in tree and type(tree[name]) is not str:
                if not self._drop:
                    raise _WrongType(FieldError("Invalid value", join(path, name), _MUST_BE_STRING, shown(tree[name])))
                del tree[name]

    def metadata(self, tree: Json, path: str) -> None:
        """ObjectMeta at a path."""
        if "metadata" not in tree:
            return
        value, at = tree["metadata"], join(path, "metadata")
        try:
            made, unknown = normalize(type_of("meta/v1.ObjectMeta"), value)
        except TypeMismatch as error:
            if not self._drop:
                raise _WrongType(FieldError("Invalid value", at, str(error), shown(value))) from None
            if type(value) is not dict:
                return
            made, unknown = _field_by_field(value)
        self.unknown.extend(f"{at}.{name}" for name in sorted(unknown))
        if made.get("creationTimestamp", "") is None:
            del made["creationTimestamp"]
        tree["metadata"] = made


def _field_by_field(metadata: Json) -> tuple[Json, list[str]]:
    """What can be read of metadata in which some members have wrong types."""
    type_ = type_of("meta/v1.ObjectMeta")
    good: Json = {}
    for name, value in metadata.items():
        try:
            normalize(type_, {name: value})
        except TypeMismatch:
            continue
        good[name] = value
    made = normalize(type_, good)
    return made.tree, made.unknown


def children(tree: Json, node: Node) -> Iterator[tuple[str, Any, Node]]:
    """Members that have a schema, with the part they add to a path: `.name`, or `[key]` of a map."""
    for name, value in sorted(tree.items()):
        member = node.properties.get(name)
        if member is not None:
            yield f".{name}", value, member
        elif node.extra is not None:
            yield f"[{name}]", value, node.extra


def join(path: str, part: str) -> str:
    """A path and one more part of it (`name`, `.name` or `[key]`)."""
    if not path:
        return part.removeprefix(".")
    return path + part if part[:1] in ".[" else f"{path}.{part}"

"""Sets of field paths in the form managedFields stores them (FieldsV1), and the algebra on them.

A set is a tree of dicts. Keys are path elements: `f:NAME` a member of a struct or map, `k:{"name":"x"}` an item of a
keyed list, `v:"x"` an item of a set, `i:N` a place in a list. What stands under an element says whether its path is in
the set: `{}` the path alone; with the key `.` the path and the paths below; otherwise only the paths below. The root is
no path: an empty root is the empty set.

Sets are values: nothing changes one in place, and results share what they can. Elements stand in the reference's order,
which every operation keeps; canonical sets have no node that only holds `.`. The algebra is compiled
(`_ext/fieldset.pyx`); here are path elements as texts, and documents of clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import orjson

from fastapi_core._ext.fieldset import (
    LEAF,
    SELF,
    covers,
    difference,
    intersection,
    ordered,
    rank,
    union,
)
from fastapi_core.codec import json as json_codec
from fastapi_core.errors import go_quote

__all__ = [
    "LEAF",
    "SELF",
    "FieldSet",
    "FieldsError",
    "canonical",
    "covers",
    "difference",
    "has",
    "intersection",
    "is_member",
    "keyed",
    "of",
    "ordered",
    "parse",
    "paths",
    "rank",
    "shown",
    "union",
    "valued",
]

FieldSet: TypeAlias = dict[str, Any]
_MAX_DEPTH = 200


class FieldsError(ValueError):
    """A FieldsV1 document that is not one."""


# Path elements


def keyed(key: dict[str, Any]) -> str:
    """Element of an item of a keyed list."""
    return "k:" + json_codec.encode({name: key[name] for name in sorted(key)}).decode()


def valued(value: Any) -> str:
    """Element of an item of a set."""
    return "v:" + json_codec.encode(value).decode()


def shown(element: str) -> str:
    """An element as conflicts print it: `.spec`, `[name="main"]`, `[="a"]`, `[0]`."""
    kind, text = element[:2], element[2:]
    if kind == "f:":
        return "." + text
    if kind == "k:":
        key = orjson.loads(text)
        return "[" + ",".join(f"{name}={_shown_value(key[name])}" for name in sorted(key)) + "]"
    return f"[={_shown_value(orjson.loads(text))}]" if kind == "v:" else f"[{text}]"


def _shown_value(value: Any) -> str:
    return go_quote(value) if isinstance(value, str) else json_codec.encode(value).decode()


# Sets


def is_member(node: FieldSet) -> bool:
    """Whether a node's own path is in the set."""
    return not node or SELF in node


def of(*paths: Iterable[str]) -> FieldSet:
    """The set of some paths, each a sequence of elements."""
    out: FieldSet = {}
    for path in paths:
        node = LEAF
        for element in reversed(tuple(path)):
            node = {element: node}
        out = union(out, node)
    return out


def paths(fields: FieldSet) -> Iterator[tuple[str, ...]]:
    """Every path of a set; those that end at a node before those below, as the reference walks."""
    for element, node in fields.items():
        if element != SELF and is_member(node):
            yield (element,)
    for element, node in fields.items():
        for path in paths(node):
            yield (element, *path)


def has(fields: FieldSet, path: Iterable[str]) -> bool:
    node: FieldSet | None = fields
    for element in path:
        node = node.get(element) if node is not None else None
    return node is not None and is_member(node)


# Documents


def parse(document: Any) -> FieldSet:
    """A FieldsV1 document of a client as a canonical set; FieldsError when it is none.

    Elements of a kind nobody knows are left out, as the reference skips what a later version may have written.
    """
    if not isinstance(document, dict):
        raise FieldsError("fields are not an object")
    return {element: node for element, node in _parse(document, 0).items() if element != SELF}


def _parse(document: FieldSet, depth: int) -> FieldSet:
    if depth > _MAX_DEPTH:
        raise FieldsError("fields are nested too deep")
    out: FieldSet = {}
    for text, below in document.items():
        if not isinstance(below, dict):
            raise FieldsError(f"what stands under {text} is not an object")
        if text == SELF:
            out[SELF] = LEAF
            continue
        element = canonical(text)
        node = _parse(below, depth + 1)
        if element is None or (not node and below):
            continue
        if len(node) == 1 and SELF in node:
            node = LEAF
        known = out.get(element)
        out[element] = node if known is None else union({element: known}, {element: node})[element]
    return ordered(out)


def canonical(text: str) -> str | None:
    """A client's path element as it is written here; None for an unknown kind, FieldsError for no element at all."""
    if len(text) < 2 or text[1] != ":":
        raise FieldsError(f"missing colon: {text}")
    kind, content = text[0], text[2:]
    if kind == "f":
        return text
    try:
        if kind == "i":
            return f"i:{int(content)}"
        if kind not in "kv":
            return None
        value = orjson.loads(content)
    except ValueError as error:
        raise FieldsError(str(error)) from error
    if kind == "v":
        return valued(value)
    if not isinstance(value, dict):
        raise FieldsError(f"not a key: {text}")
    return keyed(value)

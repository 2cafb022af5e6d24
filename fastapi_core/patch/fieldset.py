"""Sets of field paths in the form managedFields stores them (FieldsV1), and the algebra on them.

A set is a tree of dicts. Keys are path elements: `f:NAME` a member of a struct or map, `k:{"name":"x"}` an item of a
keyed list, `v:"x"` an item of a set, `i:N` a place in a list. What stands under an element says whether its path is in
the set: `{}` the path alone; with the key `.` the path and the paths below; otherwise only the paths below. The root is
no path: an empty root is the empty set.

Sets are values: nothing here changes one in place, and results share what they can. Elements stand in the reference's
order, which every operation keeps; canonical sets have no node that only holds `.`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import orjson

from fastapi_core.codec import json as json_codec
from fastapi_core.errors import go_quote

FieldSet: TypeAlias = dict[str, Any]

LEAF: FieldSet = {}
"""A path of the set with nothing below; shared, never changed."""
SELF = "."
_MAX_DEPTH = 200


class FieldsError(ValueError):
    """A FieldsV1 document that is not one."""


# Path elements


def field(name: str) -> str:
    return "f:" + name


@lru_cache(maxsize=8192, typed=True)
def keyed(names: tuple[str, ...], *values: Any) -> str:
    """Element of an item of a keyed list; `names` sorted, one scalar value for each (values of other kinds: `keyed_by`)."""
    return "k:" + json_codec.encode(dict(zip(names, values, strict=True))).decode()


def keyed_by(key: dict[str, Any]) -> str:
    """As `keyed`, for keys with values that cannot be hashed."""
    return "k:" + json_codec.encode({name: key[name] for name in sorted(key)}).decode()


@lru_cache(maxsize=8192, typed=True)
def valued(value: Any) -> str:
    """Element of an item of a set."""
    return "v:" + json_codec.encode(value).decode()


@lru_cache(maxsize=8192)
def rank(element: str) -> tuple[Any, ...]:
    """Sort key of an element: `.`, then fields, keys, values and places, each by content."""
    kind = element[:2]
    if kind == "f:":
        return (1, element)
    if kind == "k:":
        key = orjson.loads(element[2:])
        return (2, *((name, *_value_rank(key[name])) for name in sorted(key)))
    if kind == "v:":
        return (3, *_value_rank(orjson.loads(element[2:])))
    return (4, int(element[2:])) if kind == "i:" else (0,)


def _value_rank(value: Any) -> tuple[int, Any]:
    """Order of JSON values: numbers, texts, truth values, then the rest."""
    if value is True or value is False:
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    return (5, "") if value is None else (3, json_codec.encode(value).decode())


def ordered(node: FieldSet) -> FieldSet:
    """The node with its elements in order."""
    for element in node:
        if element[:1] in "kvi":
            return {element: node[element] for element in sorted(node, key=rank)}
    return {element: node[element] for element in sorted(node)}


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


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Paths of either set."""
    if not left:
        return right
    return _union(left, right) if right else left


def _union(left: FieldSet, right: FieldSet) -> FieldSet:
    if left == right:
        return left
    if not left:
        return right if SELF in right else {SELF: LEAF, **right}
    if not right:
        return left if SELF in left else {SELF: LEAF, **left}
    out = dict(left)
    grown = False
    for element, node in right.items():
        known = out.get(element)
        if known is None:
            out[element] = node
            grown = True
        elif known is not node:
            out[element] = _union(known, node)
    return ordered(out) if grown else out


def covers(left: FieldSet, right: FieldSet) -> bool:
    """Whether every path of `right` is one of `left`."""
    for element, below in right.items():
        mine = left.get(element)
        if mine is None or not (covers(mine, below) if below else is_member(mine)):
            return False
    return True


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Paths of both sets."""
    out: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        if other is not None and element != SELF:
            common = _intersection(node, other)
            if common is not None:
                out[element] = common
    return out


def _intersection(left: FieldSet, right: FieldSet) -> FieldSet | None:
    below = intersection(left, right) if left and right else LEAF
    if is_member(left) and is_member(right):
        return {SELF: LEAF, **below} if below else LEAF
    return below or None


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Paths of the left set that are not in the right one; paths below a path of the right one stay."""
    out: FieldSet = {}
    changed = False
    for element, node in left.items():
        other = right.get(element)
        if other is None or element == SELF:
            out[element] = node
            continue
        rest = _difference(node, other)
        if rest is not node:
            changed = True
        if rest is not None:
            out[element] = rest
    return out if changed else left


def _difference(left: FieldSet, right: FieldSet) -> FieldSet | None:
    if not left:
        return None if is_member(right) else left
    below = difference(left, right) if right else left
    if SELF not in left:
        return below or None
    if not is_member(right):
        return below if len(below) > 1 else LEAF
    below = {element: node for element, node in below.items() if element != SELF}
    return below or None


def recursive_difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Paths of the left set that are neither in the right one nor below a path of it."""
    out: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        if other is None or element == SELF:
            out[element] = node
        elif not is_member(other):
            rest = recursive_difference(node, other)
            if rest or not node:
                out[element] = LEAF if len(rest) == 1 and SELF in rest else rest
    return out


def matching(fields: FieldSet, patterns: Iterable[tuple[str, ...]]) -> FieldSet:
    """Paths that begin like one of the patterns: field names, or `*` for any item of a list."""
    listed = list(patterns)
    out: FieldSet = {}
    for element, node in fields.items():
        name = element[2:] if element[:2] == "f:" else "*"
        below = [pattern[1:] for pattern in listed if pattern[0] == name and element != SELF]
        if any(not pattern for pattern in below):
            out[element] = node
        elif below:
            kept = matching(node, below)
            if kept:
                out[element] = kept
    return out


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
        out[element] = node if known is None else _union(known, node)
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
        return "v:" + json_codec.encode(value).decode()
    if not isinstance(value, dict):
        raise FieldsError(f"not a key: {text}")
    return keyed_by(value)

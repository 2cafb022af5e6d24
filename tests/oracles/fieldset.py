"""Field sets the plain way: what `_ext/fieldset.pyx` does, written for reading."""

from __future__ import annotations

import json
from typing import Any

FieldSet = dict[str, Any]
LEAF: FieldSet = {}
SELF = "."


def rank(element: str) -> tuple[Any, ...]:
    """`.`, then fields, keys, values and places, each by content."""
    kind = element[:2]
    if kind == "f:":
        return (1, element)
    if kind == "k:":
        key = json.loads(element[2:])
        return (2, *((name, *_value_rank(key[name])) for name in sorted(key)))
    if kind == "v:":
        return (3, *_value_rank(json.loads(element[2:])))
    return (4, int(element[2:])) if kind == "i:" else (0,)


def _value_rank(value: Any) -> tuple[int, Any]:
    """Order of JSON values: numbers, texts, truth values, then the rest."""
    if value is True or value is False:
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    return (5, "") if value is None else (3, json.dumps(value, separators=(",", ":")))


def ordered(node: FieldSet) -> FieldSet:
    return {element: node[element] for element in sorted(node, key=rank)}


def is_member(node: FieldSet) -> bool:
    return not node or SELF in node


def union(left: FieldSet, right: FieldSet) -> FieldSet:
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

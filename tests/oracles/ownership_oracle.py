"""Field sets as plain sets of paths, and the paths of objects, the slow way.

A path is a tuple of path elements. Nothing here shares code with `fastapi_core.patch`, except that shapes are read.
"""

from __future__ import annotations

import json
from typing import Any

Path = tuple[str, ...]
Paths = frozenset[Path]
MISSING = object()


def paths_of(document: dict[str, Any], prefix: Path = ()) -> Paths:
    """The paths a FieldsV1 document stands for."""
    found: set[Path] = set()
    for element, below in document.items():
        if element == ".":
            if prefix:
                found.add(prefix)
            continue
        path = (*prefix, element)
        if not below:
            found.add(path)
        found |= paths_of(below, path)
    return frozenset(found)


def document_of(paths: Paths) -> dict[str, Any]:
    """The FieldsV1 document of some paths, in no special order."""
    root: dict[str, Any] = {}
    for path in paths:
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return _tidy(root)


def _tidy(node: dict[str, Any]) -> dict[str, Any]:
    return {
        element: {} if set(below) == {"."} else _tidy(below) if element != "." else {}
        for element, below in node.items()
    }


def recursive_difference(left: Paths, right: Paths) -> Paths:
    return frozenset(path for path in left if not any(path[:size] in right for size in range(1, len(path) + 1)))


def element(shape: Any, item: Any) -> str:
    """Path element of a list item."""
    if shape.kind.name == "SET":
        return "v:" + json.dumps(item, separators=(",", ":"))
    key = {name: item.get(name, shape.defaults.get(name)) for name in sorted(shape.keys)}
    return "k:" + json.dumps({name: value for name, value in key.items() if value is not None}, separators=(",", ":"))


def nodes(shape: Any, value: Any, prefix: Path = ()) -> dict[Path, Any]:
    """Every path of an object with what stands there: a leaf's value, `...` for what has paths below, `()` for an
    empty list of identifiable items."""
    found: dict[Path, Any] = {}
    kind = shape.kind.name
    if kind == "DEDUCED":
        kind = "OBJECT" if isinstance(value, dict) else "LEAF"
    if kind == "LEAF" or not value:
        return {prefix: () if value == [] and kind != "LEAF" else value} if prefix else {}
    if prefix:
        found[prefix] = ...
    if kind == "OBJECT":
        for name, inner in value.items():
            member = shape.members.get(name) if shape.kind.name == "OBJECT" else None
            below = member.shape if member is not None else shape if shape.kind.name == "DEDUCED" else shape.rest
            if below is not None:
                found |= nodes(below, inner, (*prefix, "f:" + name))
        return found
    for item in value:
        found |= nodes(shape.item, item, (*prefix, element(shape, item)))
    return found


def changes(shape: Any, old: dict[str, Any], new: dict[str, Any]) -> tuple[Paths, Paths]:
    """(added or changed, removed): leaves by value, what has paths below only when it comes or goes."""
    before, after = nodes(shape, old), nodes(shape, new)
    touched = {path for path, value in after.items() if path not in before or _replaced(before[path], value)}
    return frozenset(touched), frozenset(before.keys() - after.keys())


def _replaced(old: Any, new: Any) -> bool:
    """Whether one value took the place of another; what has paths below is replaced only by a value of another kind."""
    if old is ... or new is ...:
        other = new if old is ... else old
        return other is not ... and other is not None and other not in ({}, ())
    return not _same(old, new)


def _same(left: Any, right: Any) -> bool:
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def named(shape: Any, config: dict[str, Any]) -> Paths:
    """What an applied configuration owns: leaves, items, values of maps, empty objects; not structs, nor the lists."""
    found = set()
    for path, value in nodes(shape, config).items():
        last = path[-1]
        is_leaf = value is not ...
        item = last[:2] in ("k:", "v:")
        if item or (is_leaf and value != ()) or _map_value(shape, path):
            found.add(path)
    return frozenset(found)


def _map_value(shape: Any, path: Path) -> bool:
    """Whether the last element of a path is a key of a map."""
    for step in path[:-1]:
        if step[:2] != "f:":
            shape = shape.item
        elif shape.kind.name != "DEDUCED":
            member = shape.members.get(step[2:])
            shape = member.shape if member is not None else shape.rest
    return path[-1][:2] == "f:" and (shape.kind.name == "DEDUCED" or path[-1][2:] not in shape.members)

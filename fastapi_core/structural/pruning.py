"""Unknown members are dropped, and nulls where null means nothing."""

from __future__ import annotations

from typing import Any

from fastapi_core.structural.nodes import META, Json, Node, copy_json

_NOTHING: dict[str, Node] = {}


def prune(tree: Json, node: Node) -> list[str]:
    """Prune a whole object in place; the sorted paths of what was unknown."""
    found = _object(tree, node, True)
    return sorted(found) if found else []


def prune_value(value: Any, node: Node) -> bool:
    """Prune a value as a member of an object; whether anything was unknown."""
    if type(value) is dict:
        return bool(_object(value, node, node.embedded))
    return type(value) is list and bool(_list(value, node, node.preserve))


def drop_unknown(value: Any) -> list[str]:
    """Everything is unknown in what has no schema: all members of objects, also of those in lists."""
    found: list[str] = []
    if type(value) is dict:
        found.extend(value)
        value.clear()
    elif type(value) is list:
        for index, item in enumerate(value):
            found.extend(_under(f"[{index}]", drop_unknown(item)))
    return found


def _under(prefix: str, paths: list[str]) -> list[str]:
    return [prefix + path if path.startswith("[") else f"{prefix}.{path}" for path in paths]


def _object(tree: Json, node: Node, embedded: bool) -> list[str] | None:
    found: list[str] | None = None
    gone: list[str] | None = None
    properties = node.properties
    for name, value in tree.items():
        member = properties.get(name)
        if member is None:
            if embedded and name in META:
                continue
            member = node.extra
            if member is None:
                if node.preserve and not node.open:
                    continue
                if not node.open:
                    if gone is None:
                        gone = []
                    gone.append(name)
                    if found is None:
                        found = []
                    found.append(name)
                    continue
                paths = drop_unknown(value)
                if paths:
                    found = [*(found or ()), *_under(name, paths)]
                continue
        if value is None:
            if not member.nullable and member.default is None:
                if gone is None:
                    gone = []
                gone.append(name)
            continue
        kind = type(value)
        if kind is not dict and kind is not list or (embedded and name in META):
            continue
        inner = _object(value, member, member.embedded) if kind is dict else _list(value, member, member.preserve)
        if inner:
            found = [*(found or ()), *_under(name, inner)]
    if gone is not None:
        for name in gone:
            del tree[name]
    return found


def _list(items: list[Any], node: Node, preserve: bool) -> list[str] | None:
    """`preserve`: an outer list keeps what is unknown; that holds for the objects in it, but not for their members."""
    item = node.items
    found: list[str] | None = None
    if item is None:
        if preserve:
            return None
        paths = drop_unknown(items)
        return paths or None
    keep = preserve or item.preserve
    for index, value in enumerate(items):
        kind = type(value)
        if kind is dict:
            inner = _kept(value, item) if keep and not item.preserve else _object(value, item, item.embedded)
        elif kind is list:
            inner = _list(value, item, keep)
        else:
            continue
        if inner:
            found = [*(found or ()), *_under(f"[{index}]", inner)]
    return found


def _kept(tree: Json, node: Node) -> list[str] | None:
    """An object in a list that keeps what is unknown: its own unknown members stay, known ones are pruned."""
    known = {name: value for name, value in tree.items() if node.open or node.member(name) is not None}
    before = set(known)
    found = _object(known, node, node.embedded)
    for name in before - set(known):
        del tree[name]
    return found


def pruned_default(node: Node) -> Any:
    """The default of a node without what is unknown to its schema (older definitions may have such ones)."""
    if "default" not in node.walks:
        value = copy_json(node.default)
        prune_value(value, node)
        node.walks["default"] = value
    return node.walks["default"]

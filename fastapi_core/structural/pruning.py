"""Unknown members are dropped, and nulls where null means nothing."""

from __future__ import annotations

from typing import Any

from fastapi_core._ext.structwalk import Clean
from fastapi_core.structural.nodes import META, Json, Node, copy_json


def prune(tree: Json, node: Node) -> list[str]:
    """Prune a whole object in place; the sorted paths of what was unknown."""
    if _clean(node).of_object(tree, True):
        return []
    return sorted(_object(tree, node, True) or ())


def _clean(node: Node) -> Clean:
    """The walk that finds out whether there is anything to prune."""
    made: Clean | None = node.walks.get("clean")
    if made is None:

        def tables() -> tuple[dict[str, Clean], Clean | None, Clean | None]:
            members = {name: _clean(member) for name, member in node.properties.items()}
            extra = None if node.extra is None else _clean(node.extra)
            return members, extra, None if node.items is None else _clean(node.items)

        made = node.walks["clean"] = Clean(
            tables,
            embedded=node.embedded,
            preserve=node.preserve and not node.open,
            drops_null=not node.nullable and node.default is None,
        )
    return made


def prune_default(value: Any, node: Node) -> bool:
    """Prune a default of a node, whose nulls stay; whether anything was unknown."""
    if type(value) is dict:
        return bool(_object(value, node, node.embedded, False))
    return type(value) is list and bool(_list(value, node, node.preserve, False))


def drop_unknown(value: Any) -> list[str]:
    """Everything is unknown in what has no schema: all members of objects, also of those in lists."""
    found: list[str] = []
    pending: list[tuple[str, Any]] = [("", value)]
    while pending:
        path, inner = pending.pop()
        if type(inner) is dict:
            found.extend(f"{path}.{name}" if path else name for name in inner)
            inner.clear()
        elif type(inner) is list:
            pending.extend((f"{path}[{index}]", item) for index, item in enumerate(inner))
    return found


def _under(prefix: str, paths: list[str]) -> list[str]:
    return [prefix + path if path.startswith("[") else f"{prefix}.{path}" for path in paths]


def _object(tree: Json, node: Node, embedded: bool, nulls: bool = True) -> list[str] | None:
    found: list[str] | None = None
    gone: list[str] | None = None
    properties, extra = node.properties, node.extra
    for name, value in tree.items():
        member = properties.get(name, extra)
        if member is None:
            paths, stays = _without_schema(name, value, node, embedded)
            if not stays:
                gone = [*(gone or ()), name]
        elif value is None:
            if nulls and not member.nullable and member.default is None:
                gone = [*(gone or ()), name]
            continue
        else:
            kind = type(value)
            if kind is dict:
                paths = None if embedded and name in META else _object(value, member, member.embedded, nulls)
            elif kind is list:
                paths = None if embedded and name in META else _list(value, member, member.preserve, nulls)
            else:
                continue
            if paths:
                paths = _under(name, paths)
        if paths:
            found = [*(found or ()), *paths]
    if gone is not None:
        for name in gone:
            del tree[name]
    return found


def _without_schema(name: str, value: Any, node: Node, embedded: bool) -> tuple[list[str] | None, bool]:
    """What is unknown of a member that no schema describes, and whether it stays."""
    if embedded and name in META:
        return None, True
    if node.open:
        return _under(name, drop_unknown(value)), True
    return (None, True) if node.preserve else ([name], False)


def _list(items: list[Any], node: Node, preserve: bool, nulls: bool = True) -> list[str] | None:
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
            inner = (
                _kept(value, item, nulls) if keep and not item.preserve else _object(value, item, item.embedded, nulls)
            )
        elif kind is list:
            inner = _list(value, item, keep, nulls)
        else:
            continue
        if inner:
            found = [*(found or ()), *_under(f"[{index}]", inner)]
    return found


def _kept(tree: Json, node: Node, nulls: bool) -> list[str] | None:
    """An object in a list that keeps what is unknown: its own unknown members stay, known ones are pruned."""
    known = {name: value for name, value in tree.items() if node.open or node.member(name) is not None}
    before = set(known)
    found = _object(known, node, node.embedded, nulls)
    for name in before - set(known):
        del tree[name]
    return found


def pruned_default(node: Node) -> Any:
    """The default of a node without what is unknown to its schema (older definitions may have such ones)."""
    if "default" not in node.walks:
        value = copy_json(node.default)
        prune_default(value, node)
        node.walks["default"] = value
    return node.walks["default"]

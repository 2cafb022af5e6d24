"""Defaults are filled in where members are missing, also in what defaults themselves bring."""

from __future__ import annotations

from typing import Any

from fastapi_core.structural.nodes import Json, Node, copy_json
from fastapi_core.structural.pruning import pruned_default


def apply(tree: Any, node: Node) -> None:
    """In place. Nulls that are no values of theirs give way to a default."""
    if not node.has_defaults:
        return
    kind = type(tree)
    if kind is dict:
        _object(tree, node)
    elif kind is list and node.items is not None:
        _list(tree, node.items)


def _table(node: Node) -> tuple[list[tuple[str, Any, bool]], dict[str, Node]]:
    """Members with defaults (name, default, nullable), and members with defaults below them."""
    own = [
        (name, pruned_default(member), member.nullable)
        for name, member in node.properties.items()
        if member.default is not None
    ]
    below = {name: member for name, member in node.properties.items() if member.has_defaults}
    table = node.walks["defaults"] = (own, below)
    return table


def _object(tree: Json, node: Node) -> None:
    own, below = node.walks.get("defaults") or _table(node)
    for name, default, nullable in own:
        if name not in tree or (tree[name] is None and not nullable):
            tree[name] = copy_json(default)
    for name, member in below.items():
        value = tree.get(name)
        if value is not None:
            kind = type(value)
            if kind is dict:
                _object(value, member)
            elif kind is list and member.items is not None:
                _list(value, member.items)
    extra = node.extra
    if extra is not None and (extra.default is not None or extra.has_defaults):
        properties = node.properties
        for name, value in tree.items():
            if name not in properties:
                if value is None and not extra.nullable and extra.default is not None:
                    value = tree[name] = copy_json(pruned_default(extra))
                apply(value, extra)


def _list(items: list[Any], item: Node) -> None:
    if item.default is not None and not item.nullable:
        for index, value in enumerate(items):
            if value is None:
                items[index] = copy_json(pruned_default(item))
    if item.has_defaults:
        for value in items:
            apply(value, item)

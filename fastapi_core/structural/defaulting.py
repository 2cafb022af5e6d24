"""Defaults are filled in where members are missing, also in what defaults themselves bring.

Nulls that are no values of theirs give way to a default. The walk is compiled (`_ext/structwalk.pyx`); here it gets its
tables, and maps and lists with defaults of their own, which are rare, are completed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi_core._ext.structwalk import Defaults
from fastapi_core.structural.nodes import Node, copy_json
from fastapi_core.structural.pruning import pruned_default


def apply(tree: Any, node: Node) -> None:
    """In place."""
    if node.has_defaults:
        _walk(node)(tree)


def _walk(node: Node) -> Defaults:
    made: Defaults | None = node.walks.get("defaults")
    if made is None:

        def tables() -> Any:
            own = tuple(
                (name, pruned_default(member), member.nullable)
                for name, member in node.properties.items()
                if member.default is not None
            )
            below = tuple((name, _walk(member)) for name, member in node.properties.items() if member.has_defaults)
            items = node.items
            return own, below, _walk(items) if items is not None and items.has_defaults else None, _rest(node)

        made = node.walks["defaults"] = Defaults(tables)
    return made


def _rest(node: Node) -> Callable[[Any], None] | None:
    """Completes members of a map and items of a list that are null."""
    extra, item = node.extra, node.items
    in_map = extra is not None and (extra.default is not None or extra.has_defaults)
    in_list = item is not None and item.default is not None and not item.nullable
    if not in_map and not in_list:
        return None

    def rest(value: Any) -> None:
        if type(value) is dict and extra is not None and in_map:
            _map(value, node, extra)
        elif type(value) is list and item is not None and in_list:
            for index, inner in enumerate(value):
                if inner is None:
                    value[index] = copy_json(pruned_default(item))

    return rest


def _map(tree: dict[str, Any], node: Node, extra: Node) -> None:
    for name, value in tree.items():
        if name not in node.properties:
            if value is None and not extra.nullable and extra.default is not None:
                value = tree[name] = copy_json(pruned_default(extra))
            apply(value, extra)

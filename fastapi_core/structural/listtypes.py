"""Lists that are sets, and lists whose items are told apart by keys: no item twice."""

from __future__ import annotations

from typing import Any

from fastapi_core._ext.structwalk import are_different
from fastapi_core.errors import FieldError
from fastapi_core.structural.coercion import children, join
from fastapi_core.structural.nodes import Node, canonical, shown

_NOT_OBJECT = "must be an object for an array of list-type map"


def duplicates(value: Any, node: Node, path: str = "") -> list[FieldError]:
    """Every second item of its kind, in all lists of a value."""
    if not node.has_lists:
        return []
    errors: list[FieldError] = []
    if type(value) is dict:
        for part, inner, member in children(value, node):
            errors += duplicates(inner, member, join(path, part))
    elif type(value) is list:
        errors += of_list(value, node, path)
        if node.items is not None:
            for index, item in enumerate(value):
                errors += duplicates(item, node.items, f"{path}[{index}]")
    return errors


def of_list(items: list[Any], node: Node, path: str = "") -> list[FieldError]:
    """Those of one list."""
    if node.list_type == "set":
        return [FieldError("Duplicate value", f"{path}[{index}]", "", shown(items[index])) for index in _second(items)]
    if node.list_type != "map":
        return []
    for index, item in enumerate(items):
        if item is not None and type(item) is not dict:
            return [FieldError("Invalid value", f"{path}[{index}]", _NOT_OBJECT, shown(item))]
    if len(items) < 2:
        return []
    keys = [_key(item or {}, node.list_keys) for item in items]
    return [FieldError("Duplicate value", f"{path}[{index}]", "", shown(keys[index])) for index in _second(keys)]


def all_different(items: list[Any], node: Node) -> bool:
    """Whether a list breaks no rule of its type: `of_list` finds nothing, only faster."""
    if node.list_type == "set":
        return are_different(items, "") or not of_list(items, node)
    if len(node.list_keys) == 1 and node.list_keys[0] and are_different(items, node.list_keys[0]):
        return True
    return not of_list(items, node)


def _key(item: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: item[name] for name in names if name in item}


def _second(values: list[Any]) -> list[int]:
    """Where a value stands for the second time; a third is not told again."""
    if len(values) < 2:
        return []
    seen: dict[Any, int] = {}
    found: list[int] = []
    for index, value in enumerate(values):
        key = identity(value)
        times = seen[key] = seen.get(key, 0) + 1
        if times == 2:
            found.append(index)
    return found


def identity(value: Any) -> Any:
    """Something hashable that is equal for equal values and no others: 1, 1.0 and true are three values."""
    kind = type(value)
    if kind is str:
        return value
    if kind is dict or kind is list:
        return canonical(value)
    return kind, value

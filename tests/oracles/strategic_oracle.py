"""Strategic merge as its rules read: full copies, plain scans, no sharing. Slow on purpose.

A shape is a nested dict: member -> (strategy, merge key, shape of the members below). Patches must be well formed.
"""

from __future__ import annotations

import copy
from typing import Any

Shape = dict[str, tuple[str, str, Any]]


def same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and left == right


def oracle(current: dict[str, Any], patch: dict[str, Any], shape: Shape) -> dict[str, Any]:
    current, patch = copy.deepcopy(current), copy.deepcopy(patch)
    if patch.get("$patch") == "replace":
        del patch["$patch"]
        return patch
    if patch.get("$patch") == "delete":
        return {}
    if "$retainKeys" in patch:
        names = patch.pop("$retainKeys")
        current = {key: value for key, value in current.items() if key in names}
    orders = {key.split("/")[1]: patch.pop(key) for key in list(patch) if key.startswith("$setElementOrder/")}
    for key, wanted in orders.items():
        merged_alone = key in patch
        before = current.get(key, [])
        if key in current and merged_alone:
            merged = merge_member(current[key], patch.pop(key), shape.get(key, ("", "", {})))
        elif merged_alone:
            merged = clean(patch.pop(key))
        elif key in current:
            merged = current[key]
        else:
            continue
        current[key] = in_order(merged, wanted, before, shape[key][1])
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.split("/")[1]
            if isinstance(current.get(name), list):
                current[name] = [item for item in current[name] if not any(same(item, gone) for gone in value)]
        elif value is None:
            current.pop(key, None)
        elif key in current and type(current[key]) is type(value):
            current[key] = merge_member(current[key], value, shape.get(key, ("", "", {})))
        else:
            value = without_nulls(value)
            if isinstance(value, dict) and "$patch" in value:
                current.pop(key, None)
            else:
                current[key] = clean(value)
    return current


def merge_member(current: Any, value: Any, rule: tuple[str, str, Any]) -> Any:
    strategy, merge_key, shape = rule
    if isinstance(value, dict):
        return value if strategy == "replace" else oracle(current, value, shape)
    if isinstance(value, list) and strategy == "merge":
        return merge_list(current, value, merge_key, shape)
    return value


def merge_list(current: list[Any], patch: list[Any], merge_key: str, shape: Shape) -> list[Any]:
    if not merge_key:
        union: list[Any] = []
        for item in current + patch:
            if not any(same(item, other) for other in union):
                union.append(item)
        return in_order(union, patch, current, "")
    plain = [item for item in patch if "$patch" not in item]
    if any(item.get("$patch") == "replace" for item in patch):
        current, plain = plain, []
    else:
        for item in patch:
            if item.get("$patch") == "delete":
                current = [other for other in current if not same(other.get(merge_key), item[merge_key])]
    merged = list(current)
    for item in plain:
        for place, other in enumerate(merged):
            if same(other[merge_key], item[merge_key]):
                merged[place] = oracle(other, item, shape)
                break
        else:
            merged.append(item)
    return in_order(merged, plain, current, merge_key)


def in_order(merged: list[Any], wanted: list[Any], before: list[Any], merge_key: str) -> list[Any]:
    def place(item: Any, items: list[Any]) -> int:
        for index, other in enumerate(items):
            if same(item[merge_key], other[merge_key]) if merge_key else same(item, other):
                return index
        return -1

    named = sorted((item for item in merged if place(item, wanted) >= 0), key=lambda item: place(item, wanted))
    others = sorted((item for item in merged if place(item, wanted) < 0), key=lambda item: place(item, before))
    result = []
    while named and others:
        stood = place(named[0], before)
        first = others if stood >= 0 and place(others[0], before) < stood else named
        result.append(first.pop(0))
    return result + named + others


def clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: clean(v) for k, v in value.items() if not (isinstance(v, dict) and "$patch" in v)}
    if isinstance(value, list):
        return [clean(v) for v in value if not (isinstance(v, dict) and "$patch" in v)]
    return value


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [without_nulls(v) for v in value]
    return value

"""Filling in defaults the plain way: what `_ext/defaulting.pyx` does."""

from __future__ import annotations

import copy
from typing import Any

UNSET, ZERO, EMPTY = range(3)
SINGLE, LIST, MAP = range(3)


def fill(tree: dict[str, Any], name: str, value: Any, when: int) -> None:
    known = tree.get(name)
    missing = known is None
    if when == ZERO:
        missing = missing or (not isinstance(known, dict | list) and not known)
    if when == EMPTY:
        missing = not known
    if missing:
        tree[name] = copy.deepcopy(value)


def run(plan: dict[str, Any], tree: dict[str, Any]) -> None:
    """`plan` has `pairs`, and `members`: name -> (kind, plan)."""
    for name, value, when in plan["pairs"]:
        fill(tree, name, value, when)
    for name, (card, inner) in plan["members"].items():
        value = tree.get(name)
        found = [value] if card == SINGLE else value if card == LIST and isinstance(value, list) else []
        if card == MAP and isinstance(value, dict):
            found = list(value.values())
        for item in found:
            if isinstance(item, dict):
                run(inner, item)

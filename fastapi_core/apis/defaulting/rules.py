"""The words in which defaults are declared: each makes a function that completes one object in place.

`absent` follows pointers (unset), `empty` plain members (unset or zero), as the reference's defaulting functions do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi_core._ext.defaulting import EMPTY, UNSET, Fill

Tree = dict[str, Any]
Rule = Callable[[Tree], None]
Condition = Callable[[Tree], bool]


def fresh(value: Any) -> Any:
    """A copy that shares nothing mutable with the declaration."""
    if isinstance(value, dict):
        return {key: fresh(item) for key, item in value.items()}
    if isinstance(value, list):
        return [fresh(item) for item in value]
    return value


def absent(**values: Any) -> Rule:
    """Set each member that is not there."""
    return Fill(*((name, value, UNSET) for name, value in values.items()))


def empty(**values: Any) -> Rule:
    """Set each member that is missing or holds its zero value."""
    return Fill(*((name, value, EMPTY) for name, value in values.items()))


def when(condition: Condition, *rules: Rule) -> Rule:
    """Rules that hold only under a condition on the same object."""

    def rule(tree: Tree) -> None:
        if condition(tree):
            for inner in rules:
                inner(tree)

    return rule


def within(name: str, *rules: Rule) -> Rule:
    """Rules for the object at member `name`, which is made when it is missing."""

    def rule(tree: Tree) -> None:
        inner = tree.get(name)
        if inner is None:
            inner = tree[name] = {}
        for each in rules:
            each(inner)

    return rule


def equals(name: str, *values: Any) -> Condition:
    """The member is one of the values."""
    return lambda tree: tree.get(name) in values


def has(name: str) -> Condition:
    return lambda tree: tree.get(name) is not None


def lacks(name: str) -> Condition:
    return lambda tree: tree.get(name) is None


def filled(name: str) -> Condition:
    return lambda tree: bool(tree.get(name))


def copied(target: str, source: str) -> Rule:
    """An empty member takes the value of another."""

    def rule(tree: Tree) -> None:
        if not tree.get(target) and tree.get(source):
            tree[target] = fresh(tree[source])

    return rule

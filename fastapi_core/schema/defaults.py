"""Defaults that the type tables state (those OpenAPI shows). Defaults that depend on other fields live elsewhere.

Only defaults that change something count: an empty text, zero, false or `{}` is what an unset member is anyway. A type
knows which of its members can lead to one, so an object of a type without any costs one look-up.
"""

from __future__ import annotations

import copy
from typing import Any, Final, NamedTuple

from fastapi_core.schema.types import ABSENT, Field, Type

_TRIVIAL: Final[tuple[Any, ...]] = (ABSENT, "", 0, False, {}, [], None)


class _Step(NamedTuple):
    """A member to default, or to look into."""

    name: str
    field: Field
    default: Any
    into: Type | None


_plans: dict[Type, tuple[_Step, ...]] = {}


def apply(type_: Type, tree: dict[str, Any]) -> None:
    """Fill in stated defaults of unset members, in place; members stay in the order of the type."""
    steps = _plan(type_)
    if steps:
        _apply(type_, steps, tree)


def _plan(type_: Type) -> tuple[_Step, ...]:
    plan = _plans.get(type_)
    if plan is None:
        leading = _leading(type_)
        for known in _reachable(type_):
            _plans[known] = tuple(
                _Step(field.name, field, field.default, field.type if field.type in leading else None)
                for field in known.fields.values()
                if field.type in leading or field.default not in _TRIVIAL
            )
        plan = _plans[type_]
    return plan


def _reachable(type_: Type) -> list[Type]:
    """The type and every struct in it, however deep."""
    found = [type_]
    seen = {type_}
    for known in found:
        for field in known.fields.values():
            inner = field.type
            if inner is not None and not inner.json and inner not in seen:
                seen.add(inner)
                found.append(inner)
    return found


def _leading(type_: Type) -> set[Type]:
    """Those of the reachable types that have a default of their own or lead to one that has."""
    reachable = _reachable(type_)
    leading = {known for known in reachable if any(field.default not in _TRIVIAL for field in known.fields.values())}
    while True:
        more = {
            known
            for known in reachable
            if known not in leading and any(field.type in leading for field in known.fields.values())
        }
        if not more:
            return leading
        leading |= more


def _apply(type_: Type, steps: tuple[_Step, ...], tree: dict[str, Any]) -> None:
    added = False
    for name, field, default, into in steps:
        value = tree.get(name)
        if into is not None:
            if value is not None:
                inner = _plan(into)
                for item in _structs(field, value):
                    _apply(into, inner, item)
        elif value is None or (not field.pointer and value in ("", 0)):
            tree[name] = copy.deepcopy(default)
            added = True
    if added:
        order(type_, tree)


def _structs(field: Field, value: Any) -> list[dict[str, Any]]:
    if field.card == "list":
        return [item for item in value if isinstance(item, dict)]
    if field.card == "map":
        return [item for item in value.values() if isinstance(item, dict)]
    return [value] if isinstance(value, dict) else []


def order(type_: Type, tree: dict[str, Any]) -> None:
    """Put the members of a struct into the order JSON prints them, in place; unknown ones stay first."""
    fields = type_.fields
    known = [name for name in fields if name in tree]
    for name in known:
        tree[name] = tree.pop(name)

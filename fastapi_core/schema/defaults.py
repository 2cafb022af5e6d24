"""Defaults that the type tables state (those OpenAPI shows). Defaults that depend on other fields live elsewhere.

Only defaults that change something count: an empty text, zero, false or `{}` is what an unset member is anyway. A type
knows which of its members can lead to one, so an object of a type without any costs one look-up. New members come last
in their object: encoding puts them in order.
"""

from __future__ import annotations

from typing import Any, Final

from fastapi_core._ext.defaulting import LIST, MAP, SINGLE, UNSET, ZERO, Fill, Walk
from fastapi_core.schema.types import ABSENT, Field, Type

_TRIVIAL: Final[tuple[Any, ...]] = (ABSENT, "", 0, False, {}, [], None)
CARDS: Final = {"": SINGLE, "list": LIST, "map": MAP}

_walks: dict[Type, Walk] = {}


def walk_of(type_: Type) -> Walk:
    """Fills in the stated defaults of a type, made once."""
    return _walks.get(type_) or _make(type_)


def apply(type_: Type, tree: dict[str, Any]) -> None:
    """Fill in stated defaults of unset members, in place."""
    walk_of(type_).run(tree)


def _make(type_: Type) -> Walk:
    leading = _leading(type_)
    reachable = _reachable(type_)
    for known in reachable:
        _walks.setdefault(known, Walk())
    for known in reachable:
        stated = tuple(_pair(field) for field in known.fields.values() if _states(field) and field.type not in leading)
        members = {
            field.name: (CARDS[field.card], _walks[field.type])
            for field in known.fields.values()
            if field.type is not None and field.type in leading
        }
        _walks[known].define((Fill(*stated),) if stated else (), members)
    return _walks[type_]


def _states(field: Field) -> bool:
    return field.default not in _TRIVIAL


def _pair(field: Field) -> tuple[str, Any, int]:
    return field.name, field.default, UNSET if field.pointer else ZERO


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
    leading = {known for known in reachable if any(map(_states, known.fields.values()))}
    while True:
        more = {
            known
            for known in reachable
            if known not in leading and any(field.type in leading for field in known.fields.values())
        }
        if not more:
            return leading
        leading |= more

"""Whether a value is valid: fast walks that only say yes or no.

A check of a node is a function of what its schema asks for; those of containers are compiled (`_ext/structwalk.pyx`),
with an `Entry` for each member, made as members turn up. For values of types that are not expected the exact walk
decides. Everything is included that objects are validated for but expressions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fastapi_core._ext.structwalk import All, Entry, Items, Members
from fastapi_core.structural import embedded, keywords, listtypes, strict
from fastapi_core.structural.formats import has_format
from fastapi_core.structural.nodes import Check, Node

_TYPES: Final[dict[str, type]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict,
    "array": list,
}


class _Never:
    """The type of no value."""


def check_of(node: Node) -> Check:
    """The check of a node, made at the first call."""
    if node.check is None:
        node.check = _check(node)
    return node.check


def _exact(node: Node) -> Check:
    """The exact walk for the value itself; what is in it may be checked again."""

    def check(value: Any) -> bool:
        return not (
            strict.errors_of(value, node, None) or listtypes.duplicates(value, node) or embedded.validate(value, node)
        )

    return check


def entry(node: Node) -> Entry:
    """How members with this schema are checked."""
    kind = _TYPES.get(node.kind, _Never)
    if kind is _Never:
        return Entry(_Never, None, check_of(node))
    if kind is int:
        low, high = _bounds(node)
        return Entry(int, _own(node, "whole"), check_of(node), low=low, high=high)
    return Entry(kind, _own(node, node.kind), check_of(node))


def _check(node: Node) -> Check:
    exact = _exact(node)
    if len(node.types) > 1:
        return _int_or_string(node, exact)
    if not node.types:
        return _untyped(node, exact)
    kind, own = _TYPES.get(node.kind, _Never), _own(node, node.kind)
    plain_null = node.nullable and not node.enum
    also = int if kind is float else _Never

    def check(value: Any) -> bool:
        if type(value) is kind or type(value) is also:
            return own is None or own(value)
        if value is None and plain_null:
            return True
        return exact(value)

    return check


def _int_or_string(node: Node, exact: Check) -> Check:
    texts, numbers = _own(node, "string"), _own(node, "integer")

    def check(value: Any) -> bool:
        kind = type(value)
        if kind is str:
            return texts is None or texts(value)
        if kind is int:
            return numbers is None or numbers(value)
        return exact(value)

    return check


def _untyped(node: Node, exact: Check) -> Check:
    """Any type; a node of an alternative is mostly so."""
    if node.format:
        return exact
    by_type = {kind: _own(node, name) for name, kind in _TYPES.items()}

    def check(value: Any) -> bool:
        kind = type(value)
        if kind not in by_type:
            return exact(value)
        own = by_type[kind]
        return own is None or own(value)

    return check


def _has_logic(node: Node) -> bool:
    return bool(node.all_of or node.any_of or node.one_of or node.none_of is not None)


def _own(node: Node, kind: str) -> Check | None:
    """The check of values that have a type; None when all are good."""
    name = f"own {kind}"
    if name not in node.walks:
        node.walks[name] = _make_own(node, kind)
    made: Check | None = node.walks[name]
    return made


def _make_own(node: Node, kind: str) -> Check | None:
    makers: list[Check | None] = []
    match kind:
        case "string":
            makers = [_lengths(node), _pattern(node), _format(node)]
        case "integer" | "number":
            makers = [_range(node, kind), _limits(node)]
        case "whole":
            makers = [] if _is_plain(node) else [_limits(node)]
        case "array":
            makers = [_sizes(node.min_items, node.max_items), _array(node)]
        case "object":
            makers = [_sizes(node.min_properties, node.max_properties), _object(node)]
    if node.enum:
        makers.append(_enum(node, kind))
    if _has_logic(node):
        makers.append(_logic(node))
    return _all([maker for maker in makers if maker is not None])


def _all(checks: list[Check]) -> Check | None:
    if len(checks) < 2:
        return checks[0] if checks else None
    return All(*checks)


def _enum(node: Node, kind: str) -> Check:
    enum = node.enum
    if kind == "string":
        return frozenset(item for item in enum if type(item) is str).__contains__
    return lambda value: keywords.in_enum(value, enum)


def _logic(node: Node) -> Check:
    all_of, any_of, one_of = (tuple(map(check_of, nodes)) for nodes in (node.all_of, node.any_of, node.one_of))
    none_of = None if node.none_of is None else check_of(node.none_of)

    def check(value: Any) -> bool:
        return (
            all(inner(value) for inner in all_of)
            and (not any_of or any(inner(value) for inner in any_of))
            and (not one_of or sum(inner(value) for inner in one_of) == 1)
            and (none_of is None or not none_of(value))
        )

    return check


# Strings


def _lengths(node: Node) -> Check | None:
    most, least = node.max_length, node.min_length
    if most is None and least is None:
        return None
    low, high = least or 0, float("inf") if most is None else most
    return lambda value: low <= len(value) <= high


def _pattern(node: Node) -> Check | None:
    return keywords.pattern_test(node.pattern) if node.pattern else None


def _format(node: Node) -> Check | None:
    name = node.format
    return (lambda value: has_format(value, name)) if name and keywords.is_string_format(name) else None


# Numbers


def _range(node: Node, kind: str) -> Check | None:
    """Integers are looked at for their range; floats of number schemas only have one under the format float."""
    if not node.types or (kind == "number" and node.format != "float"):
        return None
    if kind == "integer":
        low, high = keywords.INT32 if node.format == "int32" else (keywords.INT_MIN, keywords.INT_MAX)
        return lambda value: low <= value <= high
    own, form = node.kind, node.format
    return lambda value: keywords.range_problem(keywords.Number(value), own, form) is None


def _limits(node: Node) -> Check | None:
    if node.minimum is None and node.maximum is None and node.multiple_of is None:
        return None
    if _is_plain(node):
        low, high = _bounds(node)
        return lambda value: low <= value <= high
    return lambda value: not strict.number_errors(value, node)


def _is_plain(node: Node) -> bool:
    """Whether the limits of integers are compared as they stand."""
    limits = [limit for limit in (node.minimum, node.maximum) if limit is not None]
    return (
        node.types == ("integer",)
        and node.multiple_of is None
        and all(type(limit) is int and keywords.INT_MIN < limit < keywords.INT_MAX for limit in limits)
        and not (node.format and limits)
    )


def _bounds(node: Node) -> tuple[int, int]:
    """Least and greatest integer that the type, the format and plain limits allow."""
    low, high = keywords.INT32 if node.format == "int32" else (keywords.INT_MIN, keywords.INT_MAX)
    if _is_plain(node):
        low = low if node.minimum is None else int(node.minimum) + node.exclusive_minimum
        high = high if node.maximum is None else int(node.maximum) - node.exclusive_maximum
    return low, high


# Containers


def _sizes(least: int | None, most: int | None) -> Check | None:
    if least is None and most is None:
        return None
    low, high = least or 0, float("inf") if most is None else most
    return lambda value: low <= len(value) <= high


def _array(node: Node) -> Check | None:
    checks: list[Check] = []
    if node.items is not None:
        checks.append(_each(node.items))
    if node.list_type in ("set", "map"):
        checks.append(lambda value: listtypes.all_different(value, node))
    if node.unique:
        checks.append(lambda value: not keywords.has_equal(value))
    return _all(checks)


def _each(item: Node) -> Check:
    return Items(lambda: entry(item))


def _object(node: Node) -> Check | None:
    checks: list[Check] = []
    if node.properties or node.extra is not None or node.closed or node.required:
        checks.append(Members(node.properties, _finder(node), tuple(dict.fromkeys(node.required))))
    if node.embedded:
        checks.append(lambda value: not embedded.resource(value))
    return _all(checks)


def _refused(value: Any) -> bool:
    return False


def _finder(node: Node) -> Callable[[str], Entry | None]:
    """Makes the entry of a member that turns up for the first time; None when it may be anything."""

    def find(name: str) -> Entry | None:
        member = node.member(name)
        if member is not None:
            return entry(member)
        return Entry(_Never, None, _refused) if node.closed else None

    return find

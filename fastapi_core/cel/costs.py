"""What calls cost while an expression runs, as Kubernetes counts it: one unit is roughly 50 ns of the reference.

A cost is a number, or a function of the list of arguments and the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from fastapi_core.cel.errors import CostError
from fastapi_core.cel.values import Opaque, cost_size

LIST_COST: Final = 10
MAP_COST: Final = 30
MESSAGE_COST: Final = 40
#: Cost of reading a text once, a character.
TRAVERSAL: Final = 0.1
#: Cost of a pattern, a character.
PATTERN: Final = 0.25
#: An authorization check is dear on purpose: an expression can afford two.
CHECK_COST: Final = 350_000

#: Characters or elements of a result up to which its making is not counted where the reference does not count it.
_LARGE: Final = 100_000

PER_CALL_LIMIT: Final = 1_000_000
RUNTIME_BUDGET: Final = 10_000_000
MATCH_CONDITIONS_BUDGET: Final = 2_500_000

#: Characters of the longest text that one expression can pay for.
LONGEST: Final = PER_CALL_LIMIT * 10

CallCost = int | Callable[[list[Any], Any], int]


def afford(size: int) -> None:
    """CostError for a text longer than any expression can pay for: to be asked before it is made."""
    if size > LONGEST:
        raise CostError


def tenth(size: int) -> int:
    """The cost of reading `size` characters, rounded up."""
    return (size + 9) // 10


def _first(args: list[Any], result: Any) -> int:
    return tenth(cost_size(args[0]))


def _first_twice(args: list[Any], result: Any) -> int:
    return math.ceil(cost_size(args[0]) * 2 * TRAVERSAL)


def _result_twice(args: list[Any], result: Any) -> int:
    return math.ceil(cost_size(result) * 2 * TRAVERSAL)


def _equality(args: list[Any], result: Any) -> int:
    if isinstance(args[0], Opaque):
        return 1
    return tenth(min(cost_size(args[0]), cost_size(args[1])))


def _order(args: list[Any], result: Any) -> int:
    return tenth(min(cost_size(args[0]), cost_size(args[1])))


def _joined(args: list[Any], result: Any) -> int:
    return tenth(cost_size(args[0]) + cost_size(args[1]))


def _added(args: list[Any], result: Any) -> int:
    """`+` of values whose types are known only now. The reference takes one unit whatever they are, which lets a few
    variables double a text until memory ends: large results cost what they cost where types are known."""
    size = cost_size(result) if isinstance(result, str | bytes | list) else 0
    return 1 if size <= _LARGE else tenth(size)


def _pattern(args: list[Any], result: Any) -> int:
    return tenth(1 + cost_size(args[0])) * math.ceil(cost_size(args[1]) * PATTERN)


def _part(args: list[Any], result: Any) -> int:
    return tenth(cost_size(args[0])) * tenth(cost_size(args[1]))


def _second(args: list[Any], result: Any) -> int:
    return cost_size(args[1])


def _selector(args: list[Any], result: Any) -> int:
    length = cost_size(args[1])
    return LIST_COST + tenth(length) + math.ceil(math.ceil(length * 0.5) * (LIST_COST + MESSAGE_COST))


def _elements(args: list[Any], result: Any) -> int:
    return traversal(args[0])


def traversal(value: Any) -> int:
    """The cost of reading a value to its leaves."""
    if isinstance(value, str):
        return int(len(value.encode()) * TRAVERSAL)
    if isinstance(value, bytes):
        return int(len(value) * TRAVERSAL)
    if isinstance(value, list):
        return sum(map(traversal, value))
    if isinstance(value, dict):
        return sum(traversal(key) + traversal(item) for key, item in value.items())
    return 1


def _contains_ip(extra: bool) -> CallCost:
    def cost(args: list[Any], result: Any) -> int:
        return tenth(cost_size(args[0]) * 2) + (tenth(cost_size(args[1])) if extra else 0)

    return cost


def _contains_cidr(extra: bool) -> CallCost:
    def cost(args: list[Any], result: Any) -> int:
        size = cost_size(args[0])
        return tenth(size * 2) + tenth(size) + 1 + (tenth(cost_size(args[1])) if extra else 0)

    return cost


def _format(args: list[Any], result: Any) -> int:
    pattern = math.ceil(args[0].pattern_size * PATTERN)
    return tenth(1 + cost_size(args[1])) * int(pattern)


def _sets(factor: int) -> CallCost:
    def cost(args: list[Any], result: Any) -> int:
        return 1 + cost_size(args[0]) * cost_size(args[1]) * factor

    return cost


def _allocated(factor: float, size: int) -> int:
    return int(size * factor) + 1 + LIST_COST


def _new_list(args: list[Any], result: Any) -> int:
    return _allocated(1, cost_size(result))


def _flat(args: list[Any], result: Any) -> int:
    return _allocated(float(args[1]) if len(args) == 2 else 1.0, cost_size(args[0]))


def _compared(position: int) -> CallCost:
    """Every element of an argument with every other."""

    def cost(args: list[Any], result: Any) -> int:
        items = args[position]
        factor = 2.0 + (TRAVERSAL if items and isinstance(items[0], str | bytes) else 0)
        return _allocated(factor, len(items) ** 2)

    return cost


_BY_FUNCTION: Final[dict[str, CallCost]] = {
    "check": CHECK_COST,
    "_+_": _added,
    "fieldSelector": _selector,
    "labelSelector": _selector,
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _elements),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"), _first),
    "replace": _first_twice,
    "split": _first_twice,
    "join": _result_twice,
    "find": _pattern,
    "findAll": _pattern,
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _first),
    "ip.isCanonical": _first_twice,
    "validate": _format,
    "_==_": _equality,
}
_BY_OVERLOAD: Final[dict[str, CallCost]] = {
    "cidr_ip": 1,
    "cidr_contains_ip_string": _contains_ip(True),
    "cidr_contains_ip_ip": _contains_ip(False),
    "cidr_contains_cidr_string": _contains_cidr(True),
    "cidr_contains_cidr": _contains_cidr(False),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    **dict.fromkeys(("list_slice", "lists_range", "list_reverse"), _new_list),
    "list_flatten": _flat,
    "list_flatten_int": _flat,
    "list_distinct": _compared(0),
    **dict.fromkeys(
        (
            "starts_with_string",
            "ends_with_string",
            "string_to_bytes",
            "bytes_to_string",
            "strings_quote",
            "string_format",
        ),
        _first,
    ),
    "in_list": _second,
    **{
        f"{name}_{kind}": _order
        for name in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
    "not_equals": _order,
    "add_string": _joined,
    "add_bytes": _joined,
    "matches_string": _pattern,
    "contains_string": _part,
}
_SORTS: Final = "_sort"
_SORTS_BY: Final = "_sortByAssociatedKeys"


def call_cost(function: str, overload_id: str) -> CallCost:
    """The cost of a call; `overload_id` is empty when types leave several."""
    if overload_id.endswith(_SORTS):
        return _compared(0)
    if overload_id.endswith(_SORTS_BY):
        return _compared(1)
    return _BY_OVERLOAD.get(overload_id) or _BY_FUNCTION.get(function) or 1

"""Functions of lists, and of lists taken for sets."""

from __future__ import annotations

from functools import cmp_to_key
from itertools import pairwise
from typing import Any, Final

from fastapi_core.cel import values
from fastapi_core.cel.errors import EvalError
from fastapi_core.cel.functions import library
from fastapi_core.cel.values import Duration, UInt

_COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_FULL_NAMES: Final = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}
#: A list that `lists.range` makes cannot be longer: the cost of more would be over any limit.
_RANGE_LIMIT: Final = 1_000_000


def is_sorted(items: list[Any]) -> bool:
    return all(values.compare(left, right) <= 0 for left, right in pairwise(items))


def _sum(zero: Any) -> Any:
    def total(items: list[Any]) -> Any:
        result = zero
        for item in items:
            result = values.add(result, item)
        return result

    return total


def _sum_doubles(items: list[Any]) -> float:
    return float(sum(items, 0.0))


def maximum(items: list[Any]) -> Any:
    return _extreme(items, 1, "max")


def minimum(items: list[Any]) -> Any:
    return _extreme(items, -1, "min")


def _extreme(items: list[Any], wanted: int, name: str) -> Any:
    if not items:
        raise EvalError(f"{name} called on empty list")
    best = items[0]
    for item in items[1:]:
        if values.compare(item, best) == wanted:
            best = item
    return best


def index_of(items: list[Any], wanted: Any) -> int:
    return next((index for index, item in enumerate(items) if values.equal(item, wanted)), -1)


def last_index_of(items: list[Any], wanted: Any) -> int:
    return next((index for index in range(len(items) - 1, -1, -1) if values.equal(items[index], wanted)), -1)


_ZEROS: Final[tuple[tuple[str, Any], ...]] = (("int", 0), ("uint", UInt(0)), ("duration", Duration(0)))

#: The functions that Kubernetes has had from the beginning.
LISTS: Final = library(
    [
        *[(f"list_{kind}_is_sorted_bool list({kind})::isSorted() -> bool", is_sorted) for kind in _COMPARABLE],
        *[(f"list_{kind}_sum_{kind} list({kind})::sum() -> {kind}", _sum(zero)) for kind, zero in _ZEROS],
        ("list_double_sum_double list(double)::sum() -> double", _sum_doubles),
        *[(f"list_{kind}_max_{kind} list({kind})::max() -> {kind}", maximum) for kind in _COMPARABLE],
        *[(f"list_{kind}_min_{kind} list({kind})::min() -> {kind}", minimum) for kind in _COMPARABLE],
        ("list_a_index_of_int list(A)::indexOf(A) -> int", index_of),
        ("list_a_last_index_of_int list(A)::lastIndexOf(A) -> int", last_index_of),
    ]
)


def contains_all(items: list[Any], wanted: list[Any]) -> bool:
    return all(values.contains(items, item) for item in wanted)


def equivalent(left: list[Any], right: list[Any]) -> bool:
    return contains_all(left, right) and contains_all(right, left)


def intersects(left: list[Any], right: list[Any]) -> bool:
    return any(values.contains(right, item) for item in left)


SETS: Final = library(
    [
        ("list_sets_contains_list sets.contains(list(T), list(T)) -> bool", contains_all),
        ("list_sets_equivalent_list sets.equivalent(list(T), list(T)) -> bool", equivalent),
        ("list_sets_intersects_list sets.intersects(list(T), list(T)) -> bool", intersects),
    ],
    since=(1, 29),
)


def cut(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvalError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvalError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(items) < end:
        raise EvalError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvalError("level must be non-negative")
    result: list[Any] = []
    for item in items:
        if isinstance(item, list) and depth:
            result.extend(flatten(item, depth - 1))
        else:
            result.append(item)
    return result


def sort(items: list[Any]) -> list[Any]:
    return sort_by(items, items)


def sort_by(items: list[Any], keys: list[Any]) -> list[Any]:
    if len(items) != len(keys):
        raise EvalError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list,"
            f" but got {len(items)} and {len(keys)} elements respectively"
        )
    kinds = {type(key) for key in keys}
    if len(kinds) > 1:
        raise EvalError("list elements must have the same type")

    def compare(left: int, right: int) -> int:
        return values.compare(keys[left], keys[right])

    order = sorted(range(len(items)), key=cmp_to_key(compare))
    return [items[index] for index in order]


def _reversed(items: list[Any]) -> list[Any]:
    return items[::-1]


def numbers(count: int) -> list[int]:
    if count > _RANGE_LIMIT:
        raise EvalError("operation cancelled: actual cost limit exceeded")
    return list(range(count))


def distinct(items: list[Any]) -> list[Any]:
    result: list[Any] = []
    for item in items:
        if not values.contains(result, item):
            result.append(item)
    return result


def _full(kind: str) -> str:
    return _FULL_NAMES.get(kind, kind)


EXTENDED_LISTS: Final = library(
    [
        ("list_slice list(T)::slice(int, int) -> list(T)", cut),
        ("list_flatten list(list(T))::flatten() -> list(T)", flatten),
        ("list_flatten_int list(dyn)::flatten(int) -> list(dyn)", flatten),
        *[(f"list_{_full(kind)}_sort list({kind})::sort() -> list({kind})", sort) for kind in _COMPARABLE],
        *[
            (
                f"list_{_full(kind)}_sortByAssociatedKeys list(T)::@sortByAssociatedKeys(list({kind})) -> list(T)",
                sort_by,
            )
            for kind in _COMPARABLE
        ],
        ("lists_range lists.range(int) -> list(int)", numbers),
        ("list_reverse list(T)::reverse() -> list(T)", _reversed),
        ("list_distinct list(T)::distinct() -> list(T)", distinct),
    ],
    since=(1, 34),
)

#: What the macros of two variables expand to; the loops do the work.
MAP_INSERT: Final = library(
    [
        ("@mapInsert_map_key_value cel.@mapInsert(map(K, V), K, V) -> map(K, V)", None),
        ("@mapInsert_map_map cel.@mapInsert(map(K, V), map(K, V)) -> map(K, V)", None),
    ],
    since=(1, 32),
)

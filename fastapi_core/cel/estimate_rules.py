"""Estimates of single functions, without the cost of their arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from fastapi_core.cel.costs import CHECK_COST, LIST_COST, MESSAGE_COST, PATTERN, TRAVERSAL
from fastapi_core.cel.functions import CIDR, FORMAT, IP, QUANTITY, SEMVER, URL
from fastapi_core.cel.ranges import NOTHING, ONE, TOP, Range, exactly
from fastapi_core.cel.syntax import Call, Literal, Node
from fastapi_core.cel.types import OPAQUE, Type

if TYPE_CHECKING:
    from fastapi_core.cel.estimate import Estimator

#: Largest format and pattern of a format.
_FORMAT_SIZE: Final = 64
_FORMAT_PATTERN: Final = 128


class CallEstimate(NamedTuple):
    cost: Range
    size: Range | None = None


def _type(node: Node) -> Type:
    assert node.type is not None
    return node.type


Rule = Callable[["Estimator", Call], CallEstimate | None]


def _fixed(cost: int) -> Rule:
    estimate_ = CallEstimate(exactly(cost))
    return lambda estimator, node: estimate_


def _read(argument: int, factor: float = TRAVERSAL, *, keeps: bool = False) -> Rule:
    """Reading one operand; `keeps`: the result is as large."""

    def rule(estimator: Estimator, node: Call) -> CallEstimate:
        size = estimator.size_or_unknown(node.operands[argument])
        return CallEstimate(size.scaled(factor), size if keeps else None)

    return rule


def _selector(estimator: Estimator, node: Call) -> CallEstimate:
    length = estimator.size_or_unknown(node.args[0])
    requirements = length.scaled(0.5).scaled(float(LIST_COST + MESSAGE_COST))
    return CallEstimate(exactly(LIST_COST).plus(length.scaled(TRAVERSAL)).plus(requirements))


def _elements(estimator: Estimator, node: Call) -> CallEstimate | None:
    if node.target is None:
        return None
    size = estimator.size_or_unknown(node.target)
    element = estimator.element(node.target)
    if element is None:
        return CallEstimate(size.scaled(TRAVERSAL))
    cost = ONE
    if element[0].kind in ("string", "bytes"):
        cost = cost.plus(element[1].scaled(TRAVERSAL))
    return CallEstimate(size.times(cost))


def _replace(estimator: Estimator, node: Call) -> CallEstimate | None:
    if node.target is None or len(node.args) < 2:
        return None
    size = estimator.size_or_unknown(node.target)
    old = estimator.size_or_unknown(node.args[0])
    new = estimator.size_or_unknown(node.args[1])
    most, kept_most = _replacements(size.high, old.low, new.high <= old.low)
    least, kept_least = _replacements(size.low, old.high, old.high <= new.low)
    result = Range(least, most).times(new).plus(Range(kept_least, kept_most))
    return CallEstimate(size.scaled(2 * TRAVERSAL), result)


def _replacements(size: int, old: int, no_change: bool) -> tuple[int, int]:
    """(how many replacements, how much of the text is kept)."""
    if old == 0:
        return min(size + 1, TOP), size
    if no_change:
        return 0, size
    return min(math.ceil(float(size) / float(old)), TOP), 0


def _split(estimator: Estimator, node: Call) -> CallEstimate | None:
    if node.target is None:
        return None
    size = estimator.size_or_unknown(node.target)
    most = size.high
    if len(node.args) > 1 and isinstance(node.args[1], Literal) and type(node.args[1].value) is int:
        most = node.args[1].value % (TOP + 1)
    return CallEstimate(size.scaled(2 * TRAVERSAL), Range(0, most))


def _join(estimator: Estimator, node: Call) -> CallEstimate | None:
    if node.target is None:
        return None
    count = estimator.size_or_unknown(node.target)
    element = estimator.element(node.target)
    size = NOTHING if element is None else count.times(element[1])
    if node.args:
        separators = Range(max(count.low - 1, 0), max(count.high - 1, 0))
        size = size.plus(estimator.size_or_unknown(node.args[0]).times(separators))
    return CallEstimate(size.scaled(TRAVERSAL), size)


def _find(estimator: Estimator, node: Call) -> CallEstimate | None:
    found = _matches(estimator, node)
    if found is None or node.target is None:
        return found
    return CallEstimate(found.cost, Range(0, estimator.size_or_unknown(node.target).high))


def _matches(estimator: Estimator, node: Call) -> CallEstimate | None:
    if node.target is None or not node.args:
        return None
    text = estimator.size_or_unknown(node.target).plus(ONE).scaled(TRAVERSAL)
    return CallEstimate(text.times(estimator.size_or_unknown(node.args[0]).scaled(PATTERN)))


def _contains(estimator: Estimator, node: Call) -> CallEstimate | None:
    if node.target is None:
        return None
    text = estimator.size_or_unknown(node.target).scaled(TRAVERSAL)
    return CallEstimate(text.times(estimator.size_or_unknown(node.args[0]).scaled(TRAVERSAL)))


def _contained(text: bool, cidr: bool) -> Rule:
    """containsIP and containsCIDR."""
    address = Range(4, 16)

    def rule(estimator: Estimator, node: Call) -> CallEstimate:
        cost = address.plus(address).scaled(TRAVERSAL)
        if cidr:
            cost = cost.plus(address.scaled(TRAVERSAL)).plus(ONE)
        if text:
            cost = cost.plus(estimator.size_or_unknown(node.args[0]).scaled(TRAVERSAL))
        return CallEstimate(cost)

    return rule


def _validate(estimator: Estimator, node: Call) -> CallEstimate:
    size = estimator.size_or_unknown(node.args[0])
    return CallEstimate(size.scaled(TRAVERSAL).scaled(_FORMAT_PATTERN * PATTERN))


_CHEAP_EQUALITY: Final = frozenset(
    (
        QUANTITY.name,
        SEMVER.name,
        *(f"kubernetes.authorization.{name}" for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck")),
        "kubernetes.authorization.Decision",
    )
)


def _equality(estimator: Estimator, node: Call) -> CallEstimate:
    left, right = node.args
    kind = _type(left)
    if kind == _type(right):
        if (kind.kind == OPAQUE and kind.name in (IP.name, CIDR.name)) or kind.name in _CHEAP_EQUALITY:
            return CallEstimate(ONE)
        if kind.name == FORMAT.name:
            return CallEstimate(Range(1, _FORMAT_SIZE).scaled(TRAVERSAL))
        if kind.name == URL.name:
            size = estimator.size(right)
            return CallEstimate(Range(1, 1 if size is None else size.high).scaled(TRAVERSAL))
    return _order(estimator, node)


def _order(estimator: Estimator, node: Call) -> CallEstimate:
    left, right = (estimator.size_or_unknown(arg) for arg in node.args)
    most = min(left.high, right.high)
    return CallEstimate(Range(1 if most > 0 else 0, most).scaled(TRAVERSAL))


def _add(estimator: Estimator, node: Call) -> CallEstimate:
    size = estimator.add_sizes(node)
    return CallEstimate(size.scaled(TRAVERSAL), size)


def _add_list(estimator: Estimator, node: Call) -> CallEstimate:
    return CallEstimate(ONE, estimator.add_sizes(node))


def _in_list(estimator: Estimator, node: Call) -> CallEstimate:
    return CallEstimate(estimator.size_or_unknown(node.args[1]))


def _to_bytes(estimator: Estimator, node: Call) -> CallEstimate:
    size = estimator.size_or_unknown(node.args[0])
    return CallEstimate(size.scaled(TRAVERSAL), Range(size.low, size.high * 4 % (TOP + 1)))


def _to_text(estimator: Estimator, node: Call) -> CallEstimate:
    size = estimator.size_or_unknown(node.args[0])
    return CallEstimate(size.scaled(TRAVERSAL), Range(size.low // 4, size.high))


def _quote(estimator: Estimator, node: Call) -> CallEstimate:
    size = estimator.size_or_unknown(node.args[0])
    return CallEstimate(size.scaled(TRAVERSAL), Range(size.low + 2, (size.high * 2 + 2) % (TOP + 1)))


def _prefix(estimator: Estimator, node: Call) -> CallEstimate:
    # Counts the part looked for; what runs counts the text.
    return CallEstimate(estimator.size_or_unknown(node.args[0]).scaled(TRAVERSAL))


def _sets(factor: int) -> Rule:
    def rule(estimator: Estimator, node: Call) -> CallEstimate:
        left, right = (estimator.size_or_unknown(arg) for arg in node.args)
        return CallEstimate(left.times(right).scaled(float(factor)).plus(ONE))

    return rule


def _allocated(factor: float, size: Range) -> CallEstimate:
    return CallEstimate(size.scaled(factor).plus(exactly(1 + LIST_COST)), size)


def _constant(node: Node, default: int) -> int:
    if isinstance(node, Literal) and type(node.value) is int:
        return max(node.value, 0)
    return default


def _slice(estimator: Estimator, node: Call) -> CallEstimate | None:
    if node.target is None:
        return None
    size = estimator.size_or_unknown(node.target)
    start, end = _constant(node.args[0], 0), _constant(node.args[1], size.high)
    return _allocated(1.0, exactly((end - start) % (TOP + 1)))


def _numbers(estimator: Estimator, node: Call) -> CallEstimate:
    return _allocated(1.0, exactly(_constant(node.args[0], TOP)))


def _reverse(estimator: Estimator, node: Call) -> CallEstimate | None:
    return None if node.target is None else _allocated(1.0, estimator.size_or_unknown(node.target))


def _flatten(estimator: Estimator, node: Call) -> CallEstimate | None:
    if node.target is None:
        return None
    depth = _constant(node.args[0], TOP) if node.args else 1
    return _allocated(float(depth), estimator.size_or_unknown(node.target))


def _distinct(estimator: Estimator, node: Call) -> CallEstimate | None:
    if node.target is None:
        return None
    size = estimator.size_or_unknown(node.target)
    return _allocated(2.0, size.times(size))


def _sorted(estimator: Estimator, node: Node, element: Type) -> CallEstimate:
    size = estimator.size_or_unknown(node)
    factor = 2.0 + (TRAVERSAL if element.kind in ("string", "bytes") else 0)
    return _allocated(factor, size.times(size))


def _sort(estimator: Estimator, node: Call) -> CallEstimate | None:
    if node.target is None:
        return None
    return _sorted(estimator, node.target, node.overloads[0].args[0].params[0])


def _sort_by(estimator: Estimator, node: Call) -> CallEstimate:
    return _sorted(estimator, node.args[0], node.overloads[0].args[1].params[0])


BY_FUNCTION: Final[dict[str, Rule]] = {
    "check": _fixed(CHECK_COST),
    "fieldSelector": _selector,
    "labelSelector": _selector,
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _elements),
    "url": _read(0, keeps=True),
    "jsonpatch.escapeKey": _read(0, keeps=True),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _read(0, keeps=True)),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _find,
    "findAll": _find,
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _read(0)),
    "ip.isCanonical": _read(0, 2 * TRAVERSAL),
    "validate": _validate,
    "_==_": _equality,
}
BY_OVERLOAD: Final[dict[str, Rule]] = {
    "cidr_ip": _fixed(1),
    "cidr_contains_ip_string": _contained(text=True, cidr=False),
    "cidr_contains_ip_ip": _contained(text=False, cidr=False),
    "cidr_contains_cidr_string": _contained(text=True, cidr=True),
    "cidr_contains_cidr": _contained(text=False, cidr=True),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _numbers,
    "list_reverse": _reverse,
    "list_distinct": _distinct,
    "string_format": _read(0),
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _to_text,
    "strings_quote": _quote,
    "starts_with_string": _prefix,
    "ends_with_string": _prefix,
    "in_list": _in_list,
    "matches_string": _matches,
    "contains_string": _contains,
    "add_string": _add,
    "add_bytes": _add,
    "add_list": _add_list,
    "not_equals": _order,
    **{
        f"{name}_{kind}": _order
        for name in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
}


def rule_of(function: str, overload_id: str) -> Rule | None:
    """The rule of a call that has one of its own."""
    if overload_id.endswith("_sort"):
        return _sort
    if overload_id.endswith("_sortByAssociatedKeys"):
        return _sort_by
    return BY_OVERLOAD.get(overload_id) or BY_FUNCTION.get(function)

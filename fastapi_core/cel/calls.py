"""Operators and function calls as code."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from fastapi_core.cel import values
from fastapi_core.cel.costs import CallCost
from fastapi_core.cel.errors import EvalError, no_overload
from fastapi_core.cel.frames import Code, Frame, Run, counted, spend
from fastapi_core.cel.functions import Overload
from fastapi_core.cel.types import DYN_KIND, LIST, MAP, OPAQUE, PARAM, STRUCT, TYPE, Type
from fastapi_core.cel.values import INT_MAX, INT_MIN, NONE, Optional, TypeValue

_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}
_INT_ARITHMETIC: Final[dict[str, Callable[[int, int], int]]] = {
    "_+_": operator.add,
    "_-_": operator.sub,
    "_*_": operator.mul,
}


def ordered(function: str, left: Code, right: Code) -> Code:
    """Comparison of two integers, booleans or the like of one type: no more than Python's operator."""
    a, b, cost = left.run, right.run, left.cost + right.cost + 1
    if function == "_<=_":

        def at_most(frame: Frame) -> bool:
            try:
                return a(frame) <= b(frame)  # type: ignore[no-any-return]
            except TypeError:
                raise no_overload() from None

        return Code(at_most, cost)
    if function == "_>_":

        def above(frame: Frame) -> bool:
            try:
                return a(frame) > b(frame)  # type: ignore[no-any-return]
            except TypeError:
                raise no_overload() from None

        return Code(above, cost)
    compare = _ORDER[function]

    def run(frame: Frame) -> bool:
        try:
            return compare(a(frame), b(frame))
        except TypeError:
            raise no_overload() from None

    return Code(run, cost)


def ordered_constant(function: str, left: Code, right: int) -> Code:
    """Comparison of an integer with a constant."""
    get, compare = left.run, _ORDER[function]

    def run(frame: Frame) -> bool:
        try:
            return compare(get(frame), right)
        except TypeError:
            raise no_overload() from None

    return Code(run, left.cost + 1)


def integer(function: str, left: Code, right: Code) -> Code:
    """`+`, `-` and `*` of two integers."""
    a, b = left.run, right.run
    calculate = _INT_ARITHMETIC[function]

    def run(frame: Frame) -> int:
        try:
            value = calculate(a(frame), b(frame))
        except TypeError:
            raise no_overload() from None
        if INT_MIN <= value <= INT_MAX:
            return value
        raise EvalError("integer overflow")

    return Code(run, left.cost + right.cost + 1)


def same_text(left: Code, right: Code, negated: bool) -> Code:
    """Equality of two strings."""
    a, b = left.run, right.run

    def run(frame: Frame) -> bool:
        one = a(frame)
        other = b(frame)
        try:
            frame[0] += (min(len(one), len(other)) + 9) // 10
        except TypeError:
            frame[0] += 1
        return (one == other) is not negated

    return Code(run, left.cost + right.cost)


def same_constant(left: Code, text: str, negated: bool) -> Code:
    """Equality of a string and a constant."""
    get, most = left.run, len(text)

    def run(frame: Frame) -> bool:
        value = get(frame)
        try:
            length = len(value)
        except TypeError:
            length = 1
        frame[0] += ((length if length < most else most) + 9) // 10
        return (value == text) is not negated

    return Code(run, left.cost)


def same_scalar(left: Code, right: Code, negated: bool) -> Code:
    """Equality of two integers or booleans."""
    a, b = left.run, right.run

    def run(frame: Frame) -> bool:
        return (a(frame) == b(frame)) is not negated

    return Code(run, left.cost + right.cost + 1)


def in_constants(item: Code, wanted: frozenset[Any], kind: type) -> Code:
    """`in` a list of constants of one type."""
    get = item.run

    def run(frame: Frame) -> bool:
        value = get(frame)
        return type(value) is kind and value in wanted

    return Code(run, item.cost)


def or_else(left: Code, right: Code, unwrap: bool) -> Code:
    """`or` and (with `unwrap`) `orValue`."""
    first, second = left.run, counted(right)

    def run(frame: Frame) -> Any:
        value = first(frame)
        if not isinstance(value, Optional):
            raise no_overload()
        if value is NONE:
            return second(frame)
        return value.value if unwrap else value

    return Code(run, left.cost)


def call(impl: Callable[..., Any], args: list[Code], cost: CallCost) -> Code:
    """A call of one function."""
    fixed = sum(arg.cost for arg in args)
    runs = tuple(arg.run for arg in args)
    if isinstance(cost, int):
        return Code(_plain(impl, runs), fixed + cost)
    price = cost

    def run(frame: Frame) -> Any:
        arguments = [get(frame) for get in runs]
        try:
            result = impl(*arguments)
        except (TypeError, AttributeError):
            raise no_overload() from None
        spend(frame, price(arguments, result))
        return result

    return Code(run, fixed)


def prefix_constant(impl: Callable[[str, str], bool], text: Code, part: str) -> Code:
    """startsWith and endsWith of a constant."""
    get = text.run

    def run(frame: Frame) -> bool:
        value = get(frame)
        try:
            frame[0] += (len(value) + 9) // 10
            return impl(value, part)
        except TypeError:
            raise no_overload() from None

    return Code(run, text.cost)


def prefix(impl: Callable[[str, str], bool], text: Code, part: Code) -> Code:
    """startsWith and endsWith of strings."""
    get_text, get_part = text.run, part.run

    def run(frame: Frame) -> bool:
        value = get_text(frame)
        try:
            result = impl(value, get_part(frame))
        except TypeError:
            raise no_overload() from None
        frame[0] += (len(value) + 9) // 10
        return result

    return Code(run, text.cost + part.cost)


def _plain(impl: Callable[..., Any], runs: tuple[Run, ...]) -> Run:
    if len(runs) == 1:
        one = runs[0]

        def unary(frame: Frame) -> Any:
            argument = one(frame)
            try:
                return impl(argument)
            except (TypeError, AttributeError):
                raise no_overload() from None

        return unary
    if len(runs) == 2:
        first, second = runs

        def binary(frame: Frame) -> Any:
            left = first(frame)
            right = second(frame)
            try:
                return impl(left, right)
            except (TypeError, AttributeError):
                raise no_overload() from None

        return binary

    def several(frame: Frame) -> Any:
        arguments = [get(frame) for get in runs]
        try:
            return impl(*arguments)
        except (TypeError, AttributeError):
            raise no_overload() from None

    return several


_CLASSES: Final[dict[str, type]] = {
    "bool": bool,
    "int": int,
    "uint": values.UInt,
    "double": float,
    "string": str,
    "bytes": bytes,
    "timestamp": values.Timestamp,
    "duration": values.Duration,
    "null_type": type(None),
}


def accepts(kind: Type) -> Callable[[Any], bool]:
    """Whether a value may be passed as an argument of this type; elements are not looked at."""
    exact = _CLASSES.get(kind.kind)
    if exact is not None:
        return lambda value: type(value) is exact
    if kind.kind == LIST:
        return lambda value: isinstance(value, list)
    if kind.kind == MAP:
        return lambda value: isinstance(value, dict)
    if kind.kind == TYPE:
        return lambda value: isinstance(value, TypeValue)
    if kind.kind == OPAQUE and kind.name == "optional_type":
        return lambda value: isinstance(value, Optional)
    if kind.kind in (OPAQUE, STRUCT):
        name = kind.name
        return lambda value: getattr(value, "cel_type", None) == name
    assert kind.kind in (DYN_KIND, PARAM)
    return lambda value: True


def dispatch(function: str, overloads: list[Overload], args: list[Code], cost: CallCost) -> Code:
    """A call whose types are known only when it runs."""
    candidates = tuple(
        (tuple(accepts(kind) for kind in overload.args), overload.impl)
        for overload in overloads
        if overload.impl is not None
    )

    def choose(*arguments: Any) -> Any:
        for tests, impl in candidates:
            for test, argument in zip(tests, arguments, strict=True):
                if not test(argument):
                    break
            else:
                return impl(*arguments)
        shown = ", ".join(values.type_name(argument) for argument in arguments)
        raise EvalError(f"no such overload: {function}({shown})")

    return call(choose, args, cost)

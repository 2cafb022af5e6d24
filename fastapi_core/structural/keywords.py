"""The keywords of schemas one by one: whether a value meets them, with the reference's idea of numbers."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from fastapi_core.errors import go_float, go_value
from fastapi_core.structural.correlation import same
from fastapi_core.structural.listtypes import identity
from fastapi_core.structural.nodes import FORMATS, canonical_format, shown

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
INT32: Final = (-(2**31), 2**31 - 1)
_LAST_CHARACTER: Final = 0x10FFFF
_EXACT: Final = 2.0**53 - 1
_NEARLY: Final = 1e-9
_TYPES: Final = {str: "string", bool: "boolean", list: "array", dict: "object"}


class Number:
    """A number as the reference holds it: an integer of 64 bits, or a float."""

    __slots__ = ("real", "value", "whole")

    def __init__(self, value: float) -> None:
        self.whole = type(value) is int and INT_MIN <= value <= INT_MAX
        self.real = _float(value)
        self.value: float = value if self.whole else self.real


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


#: What is wrong with a number under a limit: the text and the value shown; None when nothing is.
LimitCheck = Callable[[Number, float], tuple[str, Any] | None]


def json_type(value: Any) -> str:
    kind = type(value)
    if kind is int:
        return "integer" if INT_MIN <= value <= INT_MAX else "number"
    return "number" if kind is float else _TYPES.get(kind, "null")


def is_integral(value: float) -> bool:
    """A float that counts as an integer: a whole number, or so near to one that it makes no difference."""
    if value != value or not -_EXACT <= value <= _EXACT:
        return False
    whole = float(math.trunc(value))
    if value == whole:
        return True
    if whole == 0:
        return False
    return abs(value - whole) / (abs(value) + abs(whole)) < _NEARLY


def type_problem(value: Any, types: Sequence[str], form: str) -> tuple[str, str] | None:
    """(type wanted, type found) when a value, which is not null, has not the type or format of its schema."""
    found = json_type(value)
    fits = (
        found in types
        or (found == "integer" and "number" in types)
        or (found == "number" and "integer" in types and is_integral(_float(value)))
    )
    if form:
        if found in ("string", "array"):
            if "number" not in types and "integer" not in types:
                return None
        elif not fits and _own_format(found) != form:
            return form, _own_format(found)
    return None if fits else (",".join(types), found)


def _own_format(found: str) -> str:
    return {"integer": "int64", "number": "float64"}.get(found, "")


def is_string_format(name: str) -> bool:
    """Whether a format is one of strings that is checked."""
    return canonical_format(name) in FORMATS


def in_enum(value: Any, enum: Sequence[Any]) -> bool:
    """Whether a value is one of some. Null never is. A number is converted to the type of what it is compared with, even
    to a character."""
    return value is not None and any(_matches(value, item) for item in enum)


def _matches(value: Any, item: Any) -> bool:
    kind, wanted = type(value), type(item)
    if wanted is int and kind is float:
        return bool(math.isfinite(value) and math.trunc(value) == item)
    if wanted is float and kind is int:
        return bool(_float(value) == item)
    if wanted is str and kind is int:
        return bool(0 <= value <= _LAST_CHARACTER and chr(value) == item)
    return same(value, item)


def compact(value: Any) -> str:
    """A value that is no text, as JSON."""
    return go_value(shown(value))


def counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def has_equal(items: list[Any]) -> bool:
    return len({identity(item) for item in items}) < len(items)


def pattern_test(pattern: str) -> Callable[[str], bool]:
    """Whether texts match a pattern; none do when it is none."""
    from fastapi_core.cel.errors import EvalError
    from fastapi_core.cel.regex import compile_pattern
    from fastapi_core.cel.regex_translate import PatternError

    try:
        test = compile_pattern(pattern).matches
    except PatternError:
        return lambda text: False

    def matches(text: str) -> bool:
        try:
            return test(text)
        except EvalError:
            return False

    return matches


def pattern_shown(pattern: str) -> str:
    """A pattern as texts show it."""
    from fastapi_core.cel.regex import compile_pattern
    from fastapi_core.cel.regex_translate import PatternError

    try:
        compile_pattern(pattern)
    except PatternError as error:
        return f"{pattern}, but pattern is invalid: {error}"
    return pattern


def range_problem(number: Number, kind: str, form: str) -> str | None:
    """The type and format whose range a number is not in."""
    if kind == "integer":
        low, high = INT32 if form == "int32" else (INT_MIN, INT_MAX)
        whole = number.whole or (math.isfinite(number.real) and number.real == math.trunc(number.real))
        if whole and low <= int(number.value) <= high:
            return None
    elif form != "float" or _is_float32(number.real):
        return None
    return f"{kind} with format {form}" if form else f"{kind} (default format)"


def _is_float32(value: float) -> bool:
    try:
        struct.pack("<f", value)
    except OverflowError:
        return False
    return True


def multiple_problem(number: Number, factor: float) -> tuple[str, Any] | None:
    if number.whole:
        whole = _truncated(factor)
        if whole <= 0:
            return f"factor MultipleOf declared for {{}} must be positive: {whole}", whole
        wrong = int(number.value) % whole != 0
        return (f"should be a multiple of {whole}", number.value) if wrong else None
    if factor <= 0:
        return f"factor MultipleOf declared for {{}} must be positive: {go_float(float(factor))}", float(factor)
    quotient = 1 / factor * number.real if factor < 1 else number.real / factor
    if is_integral(quotient):
        return None
    return f"should be a multiple of {go_float(float(factor))}", number.value


def _truncated(limit: float) -> int:
    return max(INT_MIN, min(INT_MAX, math.trunc(limit)))


def _bound(number: Number, limit: float) -> tuple[float, str]:
    """A limit as it is compared with a number, and its text."""
    if number.whole:
        whole = _truncated(limit)
        return whole, str(whole)
    return float(limit), go_float(float(limit))


def below(exclusive: bool) -> LimitCheck:
    def check(number: Number, limit: float) -> tuple[str, Any] | None:
        bound, text = _bound(number, limit)
        if number.value > bound or (not exclusive and number.value == bound):
            return None
        return f"should be greater than {'' if exclusive else 'or equal to '}{text}", number.value

    return check


def above(exclusive: bool) -> LimitCheck:
    def check(number: Number, limit: float) -> tuple[str, Any] | None:
        bound, text = _bound(number, limit)
        if number.value < bound or (not exclusive and number.value == bound):
            return None
        return f"should be less than {'' if exclusive else 'or equal to '}{text}", number.value

    return check

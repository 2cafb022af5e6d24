"""Quantities: exact decimal numbers with a suffix (`1500m`, `1Gi`, `1e3`), and the form in which they are printed.

The smallest amount is one billionth (smaller ones are rounded up, away from zero), so an amount is a whole number of
`nano`s. A text that is canonical already, or that the reference takes for canonical (`1E3`, `1.`, `+5k`), is printed
as it was written. Source: the grammar and rules of `k8s.io/apimachinery/pkg/api/resource`, and recorded answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from fastapi_core.meta.patterns import Pattern
from fastapi_core.records import dataclass

NANO: Final = 10**9
INT64_MAX: Final = 2**63 - 1
_BINARY_CAP: Final = INT64_MAX * NANO
_INT64_DIGITS: Final = 18
#: Beyond this a decimal exponent is refused: nobody means it, and the number would not fit in memory.
_EXPONENT_LIMIT: Final = 4096
_LENGTH_LIMIT: Final = 512

DECIMAL_SI: Final = "DecimalSI"
BINARY_SI: Final = "BinarySI"
DECIMAL_EXPONENT: Final = "DecimalExponent"

_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_SUFFIX: Final = ["", *_BINARY]

_FORM: Final = Pattern(r"([+-]?)([0-9]*)(?:(\.)([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT: Final = Pattern(r"[eE]([+-]?[0-9]+)", re.ASCII)

BAD_FORM: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
BAD_NUMBER: Final = "unable to parse numeric part of quantity"
BAD_SUFFIX: Final = "unable to parse quantity's suffix"


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An amount; equal and ordered by value, whatever its format.

    `nanos` is the amount in billionths, `format` the family of suffixes it was written with, `text` the spelling to
    print again, empty when it has to be made.
    """

    nanos: int
    format: str = DECIMAL_SI
    text: str = ""

    def __str__(self) -> str:
        return self.text or _print(self.nanos, self.format)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Quantity) -> bool:
        return self.nanos <= other.nanos

    def __add__(self, other: Quantity) -> Quantity:
        """The sum, in the format of the left side (of the right side when the left is zero)."""
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self.format if self.nanos else other.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format)

    def __bool__(self) -> bool:
        return self.nanos != 0

    @property
    def value(self) -> int:
        """The amount in whole units, rounded away from zero."""
        return _divide_up(self.nanos, NANO)

    @property
    def milli(self) -> int:
        """The amount in thousandths, rounded away from zero."""
        return _divide_up(self.nanos, NANO // 1000)

    def round_up(self, scale: int = -3) -> Quantity:
        """Rounded away from zero to a multiple of 10**scale, -9 <= scale <= 0; unchanged when it is one."""
        unit = 10 ** (9 + scale)
        if self.nanos % unit == 0:
            return self
        return Quantity(_divide_up(self.nanos, unit) * unit, self.format)


def _divide_up(number: int, unit: int) -> int:
    return -(-number // unit) if number > 0 else number // unit


def parse(text: str) -> Quantity:
    """Read a quantity; ValueError with the reference's text when it is none."""
    if text == "0":
        return Quantity(0, DECIMAL_SI, text)
    match = _FORM.fullmatch(text) if 0 < len(text) <= _LENGTH_LIMIT else None
    if match is None:
        raise ValueError(BAD_FORM)
    sign, whole, point, fraction, suffix = match.groups(default="")
    whole = whole.lstrip("0")
    if not whole and not point and not suffix:
        if not match.group(2) and not sign:
            raise ValueError(BAD_FORM)
        return Quantity(0)
    base, exponent, form = _interpret(suffix)
    digits = (whole or "0") + fraction
    fast = _short(digits, len(whole or "0"), fraction, base, exponent)
    if fast is not None:
        nanos, canonical = fast
        return Quantity(-nanos if sign == "-" else nanos, form, text if canonical else "")
    if not match.group(2) and not fraction:
        raise ValueError(BAD_NUMBER)
    nanos = _exact(digits, len(fraction), base, exponent)
    if form == BINARY_SI:
        if nanos > _BINARY_CAP:
            nanos = _BINARY_CAP
        elif 0 < nanos < NANO:
            form = DECIMAL_SI
    return Quantity(-nanos if sign == "-" else nanos, form)


def _interpret(suffix: str) -> tuple[int, int, str]:
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], DECIMAL_SI
    if suffix in _BINARY:
        return 2, _BINARY[suffix], BINARY_SI
    match = _EXPONENT.fullmatch(suffix)
    if match is None or len(match.group(1)) > 12:
        raise ValueError(BAD_SUFFIX)
    exponent = int(match.group(1))
    if abs(exponent) > _EXPONENT_LIMIT:
        raise ValueError(BAD_SUFFIX)
    return 10, exponent, DECIMAL_EXPONENT


def _short(digits: str, whole: int, fraction: str, base: int, exponent: int) -> tuple[int, bool] | None:
    """(nanos, printed as written) of a number that fits 64 bits with its scale kept apart, as nearly all do."""
    number = int(digits)
    if base == 10:
        scale = exponent - len(fraction)
        if len(digits) > _INT64_DIGITS or scale < -9:
            return None
        canonical = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
        return number * 10 ** (scale + 9), canonical
    if fraction or 15 - whole - int(exponent * 3 / 10) - 1 < 0:
        return None
    return (number << exponent) * NANO, number & 7 != 0


def _exact(digits: str, places: int, base: int, exponent: int) -> int:
    number = int(digits)
    if base == 2:
        number <<= exponent
        scale = 9 - places
    else:
        scale = 9 - places + exponent
    return number * 10**scale if scale >= 0 else _divide_up(number, 10**-scale)


def _print(nanos: int, form: str) -> str:
    if nanos == 0:
        return "0"
    if form == BINARY_SI and abs(nanos) >= 1024 * NANO and nanos % NANO == 0:
        number, power = nanos // NANO, 0
        while number % 1024 == 0 and power < len(_BINARY_SUFFIX) - 1:
            number //= 1024
            power += 1
        return f"{number}{_BINARY_SUFFIX[power]}"
    number, exponent = nanos, -9
    while number % 1000 == 0 and (form == DECIMAL_EXPONENT or exponent < 18):
        number //= 1000
        exponent += 3
    if form == DECIMAL_EXPONENT:
        return f"{number}e{exponent}" if exponent else str(number)
    return f"{number}{_DECIMAL_SUFFIX[exponent]}"


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """The form in which a quantity is printed; ValueError when it is none."""
    return str(parse(text.strip(" \t\r\n")))


@lru_cache(maxsize=4096)
def canonical_milli(text: str) -> str:
    """`canonical` rounded up to thousandths, as resource lists of core/v1 are."""
    return str(parse(text.strip(" \t\r\n")).round_up(-3))


def from_json(value: Any, convert: Callable[[str], str] = canonical) -> str:
    """Canonical text of a quantity as JSON may spell it: a string, a number, or null for zero."""
    if isinstance(value, str):
        return convert(value)
    if value is None:
        return "0"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return convert(str(value))
    raise ValueError(BAD_FORM)

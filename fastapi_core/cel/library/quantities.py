"""Quantities and semantic versions."""

from __future__ import annotations

import re
from typing import Any, Final

from fastapi_core.cel.errors import EvalError
from fastapi_core.cel.functions import library
from fastapi_core.cel.values import INT_MAX, INT_MIN, Opaque
from fastapi_core.meta import quantity
from fastapi_core.meta.quantity import DECIMAL_EXPONENT, NANO


class QuantityValue(Opaque):
    """An amount."""

    __slots__ = ("amount",)
    cel_type = "kubernetes.Quantity"

    def __init__(self, amount: quantity.Quantity) -> None:
        self.amount = amount

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuantityValue) and self.amount == other.amount

    def __hash__(self) -> int:
        return hash(self.amount)

    def __str__(self) -> str:
        return str(self.amount)


def _parse(text: str) -> QuantityValue:
    try:
        return QuantityValue(quantity.parse(text))
    except ValueError as error:
        raise EvalError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except ValueError:
        return False
    return True


def _whole(value: QuantityValue) -> int | None:
    """The amount when it is a whole number of 64 bits."""
    units, rest = divmod(value.amount.nanos, NANO)
    return units if rest == 0 and INT_MIN <= units <= INT_MAX else None


def _as_integer(value: QuantityValue) -> int:
    units = _whole(value)
    if units is None:
        raise EvalError("cannot convert value to integer")
    return units


def _compare(left: QuantityValue, right: QuantityValue) -> int:
    a, b = left.amount.nanos, right.amount.nanos
    return (a > b) - (a < b)


def _amount(value: Any) -> quantity.Quantity:
    if isinstance(value, QuantityValue):
        return value.amount
    return quantity.Quantity(value * NANO, DECIMAL_EXPONENT)


QUANTITIES: Final = library(
    [
        ("string_to_quantity quantity(string) -> Quantity", _parse),
        ("is_quantity_string isQuantity(string) -> bool", _is_quantity),
        ("quantity_sign sign(Quantity) -> int", lambda value: (value.amount.nanos > 0) - (value.amount.nanos < 0)),
        ("quantity_is_greater_than Quantity::isGreaterThan(Quantity) -> bool", lambda a, b: _compare(a, b) > 0),
        ("quantity_is_less_than Quantity::isLessThan(Quantity) -> bool", lambda a, b: _compare(a, b) < 0),
        ("quantity_compare_to Quantity::compareTo(Quantity) -> int", _compare),
        ("quantity_get_float Quantity::asApproximateFloat() -> double", lambda value: value.amount.nanos / NANO),
        ("quantity_get_int Quantity::asInteger() -> int", _as_integer),
        ("quantity_is_integer Quantity::isInteger() -> bool", lambda value: _whole(value) is not None),
        ("quantity_add Quantity::add(Quantity) -> Quantity", lambda a, b: QuantityValue(a.amount + _amount(b))),
        ("quantity_add_int Quantity::add(int) -> Quantity", lambda a, b: QuantityValue(a.amount + _amount(b))),
        ("quantity_sub Quantity::sub(Quantity) -> Quantity", lambda a, b: QuantityValue(a.amount - _amount(b))),
        ("quantity_sub_int Quantity::sub(int) -> Quantity", lambda a, b: QuantityValue(a.amount - _amount(b))),
    ],
    since=(1, 28),
)


class SemverValue(Opaque):
    """A semantic version; builds take no part in comparisons."""

    __slots__ = ("build", "numbers", "pre")
    cel_type = "kubernetes.Semver"

    def __init__(self, numbers: tuple[int, int, int], pre: tuple[str, ...], build: tuple[str, ...]) -> None:
        self.numbers = numbers
        self.pre = pre
        self.build = build

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SemverValue) and compare_versions(self, other) == 0

    def __hash__(self) -> int:
        return hash((self.numbers, self.pre))


_DIGITS: Final = re.compile(r"[0-9]+", re.ASCII)
_PART: Final = re.compile(r"[0-9A-Za-z-]+", re.ASCII)
_UINT_MAX: Final = 2**64 - 1


def parse_version(text: str) -> SemverValue:
    """A version `1.2.3-pre+build`; EvalError with the text of the reference's parser."""
    if not text:
        raise EvalError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvalError("No Major.Minor.Patch elements found")
    patch, plus, build = parts[2].partition("+")
    patch, dash, pre = patch.partition("-")
    numbers = (_number("Major", parts[0]), _number("Minor", parts[1]), _number("Patch", patch))
    return SemverValue(numbers, _pre(pre) if dash else (), _build(build) if plus else ())


def _number(name: str, text: str) -> int:
    if not _DIGITS.fullmatch(text):
        if text == "":
            raise EvalError('strconv.ParseUint: parsing "": invalid syntax')
        raise EvalError(f'Invalid character(s) found in {name.lower()} number "{text}"')
    if len(text) > 1 and text[0] == "0":
        raise EvalError(f'{name} number must not contain leading zeroes "{text}"')
    if len(text) > 20 or int(text) > _UINT_MAX:
        raise EvalError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _pre(text: str) -> tuple[str, ...]:
    for part in text.split("."):
        if not part:
            raise EvalError("Prerelease is empty")
        if _DIGITS.fullmatch(part):
            if len(part) > 1 and part[0] == "0":
                raise EvalError(f'Numeric PreRelease version must not contain leading zeroes "{part}"')
        elif not _PART.fullmatch(part):
            raise EvalError(f'Invalid character(s) found in prerelease "{part}"')
    return tuple(text.split("."))


def _build(text: str) -> tuple[str, ...]:
    for part in text.split("."):
        if not part:
            raise EvalError("Build meta data is empty")
        if not _PART.fullmatch(part):
            raise EvalError(f'Invalid character(s) found in build meta data "{part}"')
    return tuple(text.split("."))


def compare_versions(left: SemverValue, right: SemverValue) -> int:
    if left.numbers != right.numbers:
        return 1 if left.numbers > right.numbers else -1
    if not left.pre or not right.pre:
        return bool(right.pre) - bool(left.pre)
    for a, b in zip(left.pre, right.pre, strict=False):
        if a == b:
            continue
        numeric = a.isdigit(), b.isdigit()
        if numeric == (True, True):
            return 1 if int(a) > int(b) else -1
        if numeric[0] != numeric[1]:
            return -1 if numeric[0] else 1
        return 1 if a > b else -1
    return (len(left.pre) > len(right.pre)) - (len(left.pre) < len(right.pre))


def _lenient(text: str) -> SemverValue:
    """With a `v` before it, zeros in front and parts left out."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1].isdigit() else "0" + stripped
    if len(parts) < 3:
        if any(character in parts[-1] for character in "+-"):
            raise EvalError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return parse_version(".".join(parts))


def _semver(text: str, normalize: bool = False) -> SemverValue:
    return _lenient(text) if normalize else parse_version(text)


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _semver(text, normalize)
    except EvalError:
        return False
    return True


SEMVER: Final = library(
    [
        ("string_to_semver semver(string) -> Semver", _semver),
        ("string_bool_to_semver semver(string, bool) -> Semver", _semver),
        ("is_semver_string isSemver(string) -> bool", _is_semver),
        ("is_semver_string_bool isSemver(string, bool) -> bool", _is_semver),
        ("semver_is_greater_than Semver::isGreaterThan(Semver) -> bool", lambda a, b: compare_versions(a, b) > 0),
        ("semver_is_less_than Semver::isLessThan(Semver) -> bool", lambda a, b: compare_versions(a, b) < 0),
        ("semver_compare_to Semver::compareTo(Semver) -> int", compare_versions),
        ("semver_major Semver::major() -> int", lambda version: version.numbers[0]),
        ("semver_minor Semver::minor() -> int", lambda version: version.numbers[1]),
        ("semver_patch Semver::patch() -> int", lambda version: version.numbers[2]),
    ],
    since=(1, 33),
)

"""What an untagged YAML scalar means, by the rules of YAML 1.1 as the reference's parser applies them.

Booleans have their many spellings (`y`, `on`, `No`), numbers may be octal (`010`, `0o10`), hexadecimal or binary and
hold underscores, base 60 is not a number, and dates stay texts.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from fastapi_core.errors import go_json_number
from fastapi_core.meta.patterns import Pattern

Scalar = str | int | float | bool | None

_TRUE: Final = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE: Final = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_NULL: Final = ("", "~", "null", "Null", "NULL")
_INFINITE: Final = (".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF")

CONSTANTS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(_TRUE, True),
    **dict.fromkeys(_FALSE, False),
    **dict.fromkeys(_NULL, None),
    **dict.fromkeys(_INFINITE, float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}

MERGE: Final = "<<"
_INT64_MAX: Final = 2**63 - 1
_UINT64_MAX: Final = 2**64 - 1
_STARTS: Final = frozenset("+-.0123456789")
_INTEGER: Final = Pattern(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_FLOAT: Final = Pattern(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_DOTTED: Final = Pattern(r"\.[0-9]+([eE][-+]?[0-9]+)?", re.ASCII)
_BASE60: Final = Pattern(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?", re.ASCII)
_TIMESTAMP: Final = Pattern(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:(?:[Tt](\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d))"
    r"|(?: (\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,]\d+)?))?",
    re.ASCII,
)
#: Longer digits than any 64-bit number has in base 2, underscores aside.
_LONGEST_NUMBER: Final = 400


def resolve(text: str) -> Scalar:
    """The value of a plain scalar."""
    if text in CONSTANTS:
        return CONSTANTS[text]
    if text[0] not in _STARTS or len(text) > _LONGEST_NUMBER:
        return text
    if text[0] == ".":
        return _real(text) if _DOTTED.fullmatch(text) else text
    if is_timestamp(text):
        return text
    plain = text.replace("_", "")
    integer = _integer(plain)
    if integer is not None:
        return integer
    return _real(plain) if _FLOAT.fullmatch(plain) else text


def _integer(text: str) -> int | float | None:
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    sign, base16, base2, base8, base10 = match.groups()
    if base16:
        number = int(base16, 16)
    elif base2:
        number = int(base2, 2)
    elif base8:
        number = int(base8, 8)
    else:
        number = int(base10)
    if sign == "-":
        return -number if number <= _INT64_MAX + 1 else None
    if number <= _INT64_MAX:
        return number
    return float(number) if number <= _UINT64_MAX and not sign else None


def _real(text: str) -> int | float | str:
    """A float, as the integer it is when it is one: between YAML and the decoder stands JSON, which has one number."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        return text
    if not value.is_integer() or abs(value) > _INT64_MAX:
        return value
    digits = int(go_json_number(value))
    return digits if -_INT64_MAX <= digits <= _INT64_MAX else value


def is_timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text) if len(text) > 7 and text[4] == "-" else None
    if match is None:
        return False
    year, month, day, *clock = (int(part or 0) for part in match.groups())
    hour, minute, second = clock[0] or clock[3], clock[1] or clock[4], clock[2] or clock[5]
    try:
        date(year or 4, month, day)
    except ValueError:
        return False
    return hour < 24 and minute < 60 and second < 60


def plain_is_text(text: str) -> bool:
    """Whether a text written without quotes is read as that text again."""
    if text == MERGE or text in CONSTANTS:
        return False
    if text[0] not in _STARTS:
        return True
    return isinstance(resolve(text), str) and not is_timestamp(text) and not _BASE60.fullmatch(text)


def format_float(value: float) -> str:
    """A float as YAML output has it: shortest digits, an exponent below 1e-4 and from 1e6 on."""
    if value != value:
        return ".nan"
    if value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    sign = "-" if str(value).startswith("-") else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = fraction.rstrip("0")
    digits = (whole + fraction).lstrip("0") or "0"
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len((whole + fraction).lstrip("0")))
    power = point - 1
    if digits == "0":
        return sign + "0"
    digits = digits.rstrip("0") or "0"
    if power < -4 or power >= 6:
        tail = "." + digits[1:] if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{'-' if power < 0 else '+'}{abs(power):02d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return sign + digits + "0" * (point - len(digits))
    return f"{sign}{digits[:point]}.{digits[point:]}"

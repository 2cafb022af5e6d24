"""Formats of strings. A format is a function that says whether a text has it."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from calendar import monthrange
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from fastapi_core.meta import time
from fastapi_core.meta.patterns import Pattern
from fastapi_core.structural.nodes import canonical_format

_CACHE: Final = 4096


def _matching(pattern: str) -> Callable[[str], bool]:
    compiled = Pattern(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def _uri(text: str) -> bool:
    from fastapi_core.cel.library.urls import parse_request

    try:
        parse_request(text)
    except ValueError:
        return False
    return True


# Times

_DATE: Final = Pattern(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_CLOCK: Final = Pattern(r"(\d\d):(\d\d):(\d\d)(?:.\d+)?(?:z|[+-]\d\d:\d\d)", re.ASCII)
_SPAN: Final = Pattern(r"(\d+)\s*([A-Za-zµ]+)", re.ASCII)
#: Units of spans besides Go's; what begins with the last name of a unit is one, too.
_UNITS: Final = (
    ("ns", "nano"),
    ("us", "µs", "micro"),
    ("ms", "milli"),
    ("s", "sec"),
    ("m", "min"),
    ("h", "hr", "hour"),
    ("d", "day"),
    ("w", "wk", "week"),
)
_INT_MAX: Final = 2**63 - 1


def _date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    return 1 <= month <= 12 and 1 <= day <= monthrange(year or 4, month)[1]


def _date_time(text: str) -> bool:
    date, _, rest = text.lower().partition("t")
    if not _date(date):
        return False
    match = _CLOCK.fullmatch(rest.partition("t")[0])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _duration(text: str) -> bool:
    try:
        time.parse_duration(text)
    except ValueError:
        pass
    else:
        return True
    known = False
    for number, unit in _SPAN.findall(text):
        if int(number) > _INT_MAX:
            return False
        unit = unit.lower()
        known = known or any(unit in names or unit.startswith(names[-1]) for names in _UNITS)
    return known


# Addresses

_PORTION: Final = Pattern(r"\d+", re.ASCII)


def _sloppy(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address; IPv4 may have leading zeros."""
    if ":" not in text:
        parts = text.split(".")
        if len(parts) != 4 or not all(_PORTION.fullmatch(part) and int(part) < 256 for part in parts):
            return None
        text = ".".join(str(int(part)) for part in parts)
    try:
        return None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None


def _ipv4(text: str) -> bool:
    return "." in text and _sloppy(text) is not None


def _ipv6(text: str) -> bool:
    return ":" in text and _sloppy(text) is not None


def _cidr(text: str) -> bool:
    base, _, bits = text.partition("/")
    found = _sloppy(base)
    return found is not None and _PORTION.fullmatch(bits) is not None and int(bits) <= found.max_prefixlen


def _symbol(character: str) -> bool:
    """ASCII letters and digits, and letters and symbols of any script."""
    if character.isascii():
        return character.isalnum() or unicodedata.category(character)[0] == "S"
    return unicodedata.category(character)[0] in "SL"


def _letter(character: str) -> bool:
    return unicodedata.category(character)[0] == "L"


def _name_part(text: str) -> bool:
    if not 1 <= len(text) <= 63 or not _symbol(text[0]) or not _symbol(text[-1]):
        return False
    return all(character == "-" or _symbol(character) for character in text)


def _hostname(text: str) -> bool:
    """One word, or names with dots that end in letters."""
    if not text or len(text.encode()) > 255:
        return False
    parts = text.split(".")
    if any(len(part.encode()) > 63 for part in parts):
        return False
    if len(parts) == 1:
        rest = text[1:].removeprefix("-")
        return _symbol(text[0]) and len(rest) <= 62 and all(map(_symbol, rest))
    last = parts[-1]
    return 2 <= len(last) <= 63 and all(map(_letter, last)) and all(map(_name_part, parts[:-1]))


_ATEXT: Final = r"[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~\u0080-\U0010FFFF]+"
_DOTTED: Final = rf"{_ATEXT}(?:\.{_ATEXT})*"
_QUOTED: Final = r'"(?:[^"\\\x00-\x1f\x7f]|\\[\x20-\x7e\t])*"'
_SPACE: Final = r"[ \t]*"
_ADDRESS: Final = rf"(?:{_DOTTED}|{_QUOTED}){_SPACE}@{_SPACE}(?:{_DOTTED}|\[[!-Z^-~]*\])"
_WORDS: Final = rf"(?:(?:{_ATEXT}(?:\.{_ATEXT})*\.?|{_QUOTED}){_SPACE})*"
_EMAIL: Final = Pattern(rf"{_SPACE}(?:{_ADDRESS}|{_WORDS}<{_SPACE}{_ADDRESS}{_SPACE}>){_SPACE}")
_EMAIL_LIMIT: Final = 4096


def _email(text: str) -> bool:
    return len(text) <= _EMAIL_LIMIT and "@" in text and _EMAIL.fullmatch(text) is not None


# Numbers with check digits

_CARD: Final = Pattern(
    r"4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11}",
    re.ASCII,
)
_NOT_DIGITS: Final = Pattern(r"[^0-9]+")
_SEPARATORS: Final = Pattern(r"[\s-]+", re.ASCII)
_ISBN10: Final = Pattern(r"\d{9}[\dX]", re.ASCII)
_ISBN13: Final = Pattern(r"\d{13}", re.ASCII)


def _credit_card(text: str) -> bool:
    digits = _NOT_DIGITS.sub("", text)
    if not _CARD.fullmatch(digits):
        return False
    total = 0
    for index, digit in enumerate(map(int, reversed(digits))):
        doubled = digit * 2 if index % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


def _isbn10(text: str) -> bool:
    digits = _SEPARATORS.sub("", text)
    if not _ISBN10.fullmatch(digits):
        return False
    return sum((at + 1) * (10 if digit == "X" else int(digit)) for at, digit in enumerate(digits)) % 11 == 0


def _isbn13(text: str) -> bool:
    digits = _SEPARATORS.sub("", text)
    if not _ISBN13.fullmatch(digits):
        return False
    return sum(int(digit) * (3 if at % 2 else 1) for at, digit in enumerate(digits)) % 10 == 0


_ssn = _matching(r"\d{3}[- ]?\d{2}[- ]?\d{4}")
_short_name = _matching(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_long_name = _matching(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_HEX: Final = "[0-9a-fA-F]"
_BYTE: Final = r"(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"


def _uuid(third: str, fourth: str) -> Callable[[str], bool]:
    return _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}-?{fourth}-?{_HEX}{{12}}")


_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "uri": _uri,
    "email": _email,
    "hostname": _hostname,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "cidr": _cidr,
    "mac": _matching(
        rf"{_HEX}{{2}}(?:(?::{_HEX}{{2}}){{5}}|(?::{_HEX}{{2}}){{7}}|(?::{_HEX}{{2}}){{19}}"
        rf"|(?:-{_HEX}{{2}}){{5}}|(?:-{_HEX}{{2}}){{7}}|(?:-{_HEX}{{2}}){{19}})"
        rf"|{_HEX}{{4}}(?:(?:\.{_HEX}{{4}}){{2}}|(?:\.{_HEX}{{4}}){{3}}|(?:\.{_HEX}{{4}}){{9}})"
    ),
    "uuid": _uuid(f"{_HEX}{{4}}", f"{_HEX}{{4}}"),
    "uuid3": _uuid(f"3{_HEX}{{3}}", f"{_HEX}{{4}}"),
    "uuid4": _uuid(f"4{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
    "uuid5": _uuid(f"5{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "creditcard": _credit_card,
    "ssn": lambda text: len(text) == 11 and _ssn(text),
    "hexcolor": _matching(rf"#?(?:{_HEX}{{3}}|{_HEX}{{6}})"),
    "rgbcolor": _matching(rf"rgb\(\s*{_BYTE}\s*,\s*{_BYTE}\s*,\s*{_BYTE}\s*\)"),
    "byte": _matching(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "password": lambda text: True,
    "date": _date,
    "duration": _duration,
    "datetime": _date_time,
    "bsonobjectid": _matching(f"{_HEX}{{24}}"),
    "k8sshortname": lambda text: len(text) <= 63 and _short_name(text),
    "k8slongname": lambda text: len(text) <= 253 and _long_name(text),
}


@lru_cache(_CACHE)
def has_format(text: str, name: str) -> bool:
    """Whether a text has a format; it has any that is not checked."""
    check = _FORMATS.get(canonical_format(name))
    return check is None or check(text)

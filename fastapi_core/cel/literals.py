"""Quoted texts and numbers to their values."""

from __future__ import annotations

from typing import Final

from fastapi_core.cel.lexer import FLOAT, INT, UINT
from fastapi_core.cel.values import INT_MAX, INT_MIN, UINT_MAX, UInt

_SIMPLE: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_FAILURE: Final = "unable to unescape string"


def unescape(text: str, *, as_bytes: bool) -> str | bytes:
    """The value of a literal with its quotes and `r`; ValueError with the reference's text."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    quotes = 3 if text[:3] in ("'''", '"""') and len(text) >= 6 else 1
    text = text[quotes:-quotes]
    if raw or "\\" not in text:
        return text.encode() if as_bytes else text
    parts = _parts(text, as_bytes)
    if as_bytes:
        return b"".join(part.encode() if isinstance(part, str) else bytes((part,)) for part in parts)
    return "".join(part if isinstance(part, str) else _character(part) for part in parts)


def _parts(text: str, as_bytes: bool) -> list[str | int]:
    """Texts and the numbers that escapes stand for."""
    parts: list[str | int] = []
    index = 0
    while index < len(text):
        escape = text.find("\\", index)
        if escape < 0:
            parts.append(text[index:])
            break
        if escape > index:
            parts.append(text[index:escape])
        kind = text[escape + 1]
        index = escape + 2
        if kind in _SIMPLE:
            parts.append(_SIMPLE[kind])
        elif kind in "0123":
            parts.append(int(text[escape + 1 : escape + 4], 8))
            index += 2
        else:
            width = {"x": 2, "X": 2, "u": 4, "U": 8}[kind]
            if as_bytes and width > 2:
                raise ValueError(_FAILURE)
            parts.append(int(text[index : index + width], 16))
            index += width
    return parts


def _character(code: int) -> str:
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError("invalid unicode code point")
    return chr(code)


def number(kind: str, text: str) -> int | float:
    """The value of a number with its sign; ValueError with the reference's text when it is too large."""
    if kind == FLOAT:
        value = float(text)
        if abs(value) == float("inf"):
            raise ValueError("invalid double literal")
        return value
    whole = _whole(text[:-1] if kind == UINT else text)
    if kind == UINT:
        if whole > UINT_MAX:
            raise ValueError("invalid uint literal")
        return UInt(whole)
    assert kind == INT
    if not INT_MIN <= whole <= INT_MAX:
        raise ValueError("invalid int literal")
    return whole


def _whole(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text.removeprefix("-")
    # Digits that cannot fit are not worth reading: int() of a very long text takes long.
    if len(digits.removeprefix("0x").lstrip("0")) > 40:
        return sign * (UINT_MAX + 1)
    return sign * (int(digits[2:], 16) if digits.startswith("0x") else int(digits))

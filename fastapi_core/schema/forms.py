"""Values whose JSON form is a scalar with rules of its own: times, durations, quantities, bytes, integer-or-string.

Each function takes a decoded JSON value that is not null and returns it as it is printed again. It raises
`typed.Mismatch` for a wrong JSON type and ValueError for a text of the wrong form.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from fastapi_core._ext.typed import Mismatch, describe
from fastapi_core.meta import quantity as quantities
from fastapi_core.meta import time as times


def time(value: Any) -> str | None:
    return times.canonical(_text(value))


def microtime(value: Any) -> str | None:
    return times.canonical_micro(_text(value))


def duration(value: Any) -> str:
    return times.canonical_duration(_text(value))


def quantity(value: Any) -> str:
    return quantities.from_json(value)


def quantity_milli(value: Any) -> str:
    """A quantity of a core/v1 resource list: rounded up to thousandths."""
    return quantities.from_json(value, quantities.canonical_milli)


def int_or_string(value: Any) -> int | str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Mismatch(describe(value), "int32")
    if isinstance(value, float) or not -(2**31) <= value < 2**31:
        raise Mismatch(f"number {value}", "int32")
    return value


def data(value: Any) -> str:
    """Base64 of any spelling Go reads (line breaks, stray bits), as an encoder writes it."""
    text = _text(value)
    bad = _first_bad(text)
    if bad >= 0:
        raise ValueError(f"illegal base64 data at input byte {bad}")
    return base64.b64encode(binascii.a2b_base64(text)).decode()


_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _first_bad(text: str) -> int:
    """Byte offset at which Go gives up, -1 for never."""
    marks = [(at, char) for at, char in enumerate(text) if char not in "\r\n"]
    for i, (at, char) in enumerate(marks):
        if char in _ALPHABET:
            continue
        place = i % 4
        if char != "=" or place < 2:
            return len(text[:at].encode())
        rest = marks[i + 1 :]
        if place == 2:
            if not rest:
                return len(text)
            if rest[0][1] != "=":
                return rest[0][0] - 1
            rest = rest[1:]
        return rest[0][0] if rest else -1
    over = len(marks) % 4
    return len(text) - over if over else -1


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise Mismatch(describe(value), "string")

"""Functions of texts: positions count characters, and lower and upper case only change ASCII."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.cel import regex
from fastapi_core.cel.costs import afford
from fastapi_core.cel.errors import EvalError
from fastapi_core.cel.functions import library
from fastapi_core.cel.library.formatting import format_text

_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
#: What Go's TrimSpace takes away.
_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_QUOTED: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def _outside(index: int) -> EvalError:
    return EvalError(f"index out of range: {index}")


def char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _outside(index)
    return text[index : index + 1]


def index_of(text: str, part: str, offset: int = 0) -> int:
    if offset < 0:
        raise _outside(offset)
    if not part:
        return min(offset, len(text))
    return text.find(part, offset) if offset < len(text) else -1


def last_index_of(text: str, part: str) -> int:
    if not part:
        return len(text)
    return text.rfind(part)


def last_index_of_before(text: str, part: str, offset: int) -> int:
    if offset < 0:
        raise _outside(offset)
    if not part:
        return min(offset, len(text))
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


def lower_ascii(text: str) -> str:
    return text.translate(_LOWER)


def upper_ascii(text: str) -> str:
    return text.translate(_UPPER)


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    growth = len(new) - len(old)
    if growth > 0:
        found = text.count(old)
        afford(len(text) + growth * (found if count < 0 else min(found, count)))
    return text.replace(old, new, count if count >= 0 else -1)


def split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if not separator:
        pieces = list(text)
        return pieces if count < 0 or len(pieces) <= count else [*pieces[: count - 1], "".join(pieces[count - 1 :])]
    return text.split(separator, count - 1 if count > 0 else -1)


def substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _outside(start)
    return text[start:]


def substring_between(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvalError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise _outside(start)
    if not 0 <= end <= len(text):
        raise _outside(end)
    return text[start:end]


def join(items: list[Any], separator: str = "") -> str:
    for item in items:
        if type(item) is not str:
            raise EvalError(f"join: invalid input: {item}")
    afford(sum(map(len, items)) + len(separator) * max(len(items) - 1, 0))
    return separator.join(items)


def quote(text: str) -> str:
    return '"' + "".join(_QUOTED.get(character, character) for character in text) + '"'


STRINGS: Final = library(
    [
        ("string_char_at_int string::charAt(int) -> string", char_at),
        ("string_index_of_string string::indexOf(string) -> int", index_of),
        ("string_index_of_string_int string::indexOf(string, int) -> int", index_of),
        ("string_last_index_of_string string::lastIndexOf(string) -> int", last_index_of),
        ("string_last_index_of_string_int string::lastIndexOf(string, int) -> int", last_index_of_before),
        ("string_lower_ascii string::lowerAscii() -> string", lower_ascii),
        ("string_replace_string_string string::replace(string, string) -> string", replace),
        ("string_replace_string_string_int string::replace(string, string, int) -> string", replace),
        ("string_split_string string::split(string) -> list(string)", split),
        ("string_split_string_int string::split(string, int) -> list(string)", split),
        ("string_substring_int string::substring(int) -> string", substring),
        ("string_substring_int_int string::substring(int, int) -> string", substring_between),
        ("string_trim string::trim() -> string", lambda text: text.strip(_SPACE)),
        ("string_upper_ascii string::upperAscii() -> string", upper_ascii),
        ("list_join list(string)::join() -> string", join),
        ("list_join_string list(string)::join(string) -> string", join),
    ]
)
STRINGS_2: Final = library(
    [
        ("string_format string::format(list(dyn)) -> string", format_text),
        ("strings_quote strings.quote(string) -> string", quote),
    ],
    since=(1, 29),
)

PATTERNS: Final = library(
    [
        ("string_find_string string::find(string) -> string", regex.find),
        ("string_find_all_string string::findAll(string) -> list(string)", regex.find_all),
        ("string_find_all_string_int string::findAll(string, int) -> list(string)", regex.find_all),
    ]
)


def _escape_key(text: str) -> str:
    # One pass over the text, as the reference does it.
    return text.replace("~", "~0").replace("/", "~1")


JSON_PATCH: Final = library([("string_jsonpatch_escapeKey_string jsonpatch.escapeKey(string) -> string", _escape_key)])

"""JSON as the reference reads and writes it.

Reading: duplicate keys are noticed, nesting is limited, invalid UTF-8 and lone surrogates become U+FFFD, integers stay
integers. Writing: Go's escapes and number forms, members in the order of the tree.
"""

from __future__ import annotations

import codecs
import json as _json
from typing import Any, Final, NamedTuple

import orjson

from fastapi_core._ext import jsonscan
from fastapi_core.codec import go_syntax
from fastapi_core.errors import go_json_number as number
from fastapi_core.errors import go_quote
from fastapi_core.schema.errors import DecodeError

__all__ = [
    "MAX_DEPTH",
    "DecodeError",
    "Parsed",
    "duplicate",
    "encode",
    "encode_pretty",
    "parse",
    "summary",
    "unrecognized",
]

#: Deepest nesting read. The reference stops at 10,000, but what is read must be written again: orjson has 254 levels.
MAX_DEPTH: Final = 240

_INT64_MAX: Final = 2**63 - 1
_INT64_LENGTH: Final = len("-9223372036854775808")
_SUMMARY: Final = 30


class Parsed(NamedTuple):
    """A decoded body: the tree, the paths of keys given twice (the last one wins in the tree), and what the reference
    says about those, as warnings and strict errors print it. `by_name`: the reference reads the members in the order of
    their names and not of the text (YAML becomes JSON there)."""

    tree: Any
    duplicates: list[str]
    complaints: list[str]
    by_name: bool = False


def duplicate(path: str) -> str:
    """The complaint about a key given twice."""
    return f"duplicate field {go_quote(path)}"


def parse(body: bytes) -> Parsed:
    """Decode a JSON text; DecodeError with the reference's words when it is none."""
    try:
        duplicates, care = jsonscan.inspect(body, MAX_DEPTH)
    except ValueError as error:
        raise DecodeError(str(error)) from None
    try:
        tree = lenient(body, None) if care else orjson.loads(body)
    except orjson.JSONDecodeError:
        tree = lenient(body, None)
    if not duplicates:
        return Parsed(tree, [], [])
    return Parsed(tree, duplicates, [duplicate(path) for path in duplicates])


def lenient(body: bytes, object_pairs_hook: Any) -> Any:
    """Decode with Python's decoder under Go's rules; `object_pairs_hook` as for `json.loads`.

    For texts the fast decoder refuses or would read differently: broken ones, ones broken only in their strings, which
    Go forgives, and numbers beyond 64 bits.
    """
    text = body.decode("utf-8", "fastapi_core_go")
    fault = go_syntax.explain(text)
    if fault:
        raise DecodeError(fault)
    try:
        tree = _json.loads(text, parse_int=_integer, parse_float=_real, object_pairs_hook=object_pairs_hook)
    except DecodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise DecodeError(str(error)) from None
    return _mend(tree) if "\\u" in text else tree


def _integer(text: str) -> int | float:
    """An integer of 64 bits, a float beyond."""
    value = int(text) if len(text) <= _INT64_LENGTH else _INT64_MAX + 1
    return value if -_INT64_MAX - 1 <= value <= _INT64_MAX else _real(text)


def _real(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise DecodeError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return value


def _mend(value: Any) -> Any:
    """Lone surrogates replaced by U+FFFD, in place where a container holds them."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        value[:] = [_mend(item) for item in value]
    elif isinstance(value, tuple):
        return tuple(_mend(item) for item in value)
    elif isinstance(value, dict):
        items = [(_mend(key), _mend(item)) for key, item in value.items()]
        value.clear()
        value.update(items)
    return value


def _replace_bytes(error: UnicodeError) -> tuple[str, int]:
    """Go replaces every byte of an invalid sequence, Python the sequence."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error("fastapi_core_go", _replace_bytes)


def encode(tree: Any) -> bytes:
    """Compact JSON in Go's spelling, without a newline."""
    return jsonscan.go_style(orjson.dumps(tree), number)


def encode_pretty(tree: Any) -> bytes:
    """JSON indented by two spaces, in Go's spelling, without a newline."""
    return jsonscan.go_style(orjson.dumps(tree, option=orjson.OPT_INDENT_2), number)


def unrecognized(kind: str, error: DecodeError, body: bytes) -> str:
    """Message of the 400 for a body whose kind cannot be read."""
    text = f"couldn't get version/kind; json parse error: {error}"
    return f"the object provided is unrecognized (must be of type {kind}): {text} ({summary(body)})"


def summary(body: bytes) -> str:
    """The start of a body as messages quote it: text for an object, hexadecimal digits for anything else."""
    if not body:
        return "<empty>"
    shown = body[:_SUMMARY]
    text = shown.decode("utf-8", "replace") if body.startswith(b"{") else shown.hex()
    return text + " ..." if len(body) > _SUMMARY else text

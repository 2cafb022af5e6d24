"""Paths to members in a schema (`.spec.names['x y']`), as rules and selectable fields give them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_NO_FIELD: Final = "does not refer to a valid field"
_END: Final = "unexpected end of JSON path"


class PathError(ValueError):
    """A path that leads nowhere; the text is the reference's."""


class Place(NamedTuple):
    """Where a path leads: its form in errors, and the schema there."""

    path: str
    schema: Mapping[str, Any]


def resolve(text: str, schema: Mapping[str, Any]) -> Place | None:
    """The place a path leads to; None when there is none."""
    try:
        return follow(text, schema)
    except PathError:
        return None


def follow(text: str, schema: Mapping[str, Any], *, brackets: bool = True) -> Place:
    """The place a path leads to; PathError says what is wrong. `brackets`: `['name']` may stand for `.name`."""
    path = ""
    tokens = _tokens(text)
    for token in tokens:
        if token == "[":
            if not brackets:
                raise PathError("array notation is not allowed")
            quoted = _next(tokens)
            if len(quoted) < 2 or quoted[0] != "'" or quoted[-1] != "'":
                raise PathError(f"expected single quoted string but got {quoted}")
            path, schema = _step(path, schema, _unescape(quoted[1:-1]))
            end = _next(tokens)
            if end != "]":
                raise PathError(f"expected ] but got {end}")
        elif token == ".":
            path, schema = _step(path, schema, _next(tokens))
        else:
            raise PathError(f"expected [ or . but got: {token}")
    return Place(path, schema)


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise PathError(_END)
    return token


def _step(path: str, schema: Mapping[str, Any], name: str) -> tuple[str, Mapping[str, Any]]:
    properties, extra = schema.get("properties"), schema.get("additionalProperties")
    if properties is not None:
        found = properties.get(name)
        if not isinstance(found, Mapping):
            raise PathError(_NO_FIELD)
        return (f"{path}.{name}" if path else name), found
    if extra is None:
        raise PathError(_NO_FIELD)
    return f"{path}[{name}]", extra if isinstance(extra, Mapping) else {}


def _unescape(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise PathError(f"invalid string literal: invalid escape char {match[0]}")
        return _ESCAPES[match[1]]

    return _ESCAPE.sub(replace, text)


def _tokens(text: str) -> Iterator[str]:
    """Dots, brackets, quoted strings and what is between them."""
    at = 0
    while at < len(text):
        start = at
        if text[at] == "'":
            at += 1
            while at < len(text) and not (text[at] == "'" and text[at - 1] != "\\"):
                at += 1
            at = min(at + 1, len(text))
        elif text[at] in ".[]":
            at += 1
        else:
            while at < len(text) and text[at] not in ".[]":
                at += 1
        yield text[start:at]

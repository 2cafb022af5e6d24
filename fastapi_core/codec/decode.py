"""From a request body to a normalised tree in one step, with everything the reference would complain about."""

from __future__ import annotations

from typing import Any, NamedTuple

from fastapi_core.codec import fold, json, protobuf
from fastapi_core.errors import go_quote
from fastapi_core.meta.patterns import Pattern
from fastapi_core.schema.errors import DecodeError
from fastapi_core.schema.normalize import MAX_COMPLAINTS, normalize
from fastapi_core.schema.types import Type

__all__ = ["DecodeError", "Decoded", "conform", "decode", "from_protobuf", "parse", "unknown"]


class Decoded(NamedTuple):
    """`tree` is normalised when a type was given. `complaints` are texts such as `unknown field "spec.x"` and
    `duplicate field "data.a"`: warnings with fieldValidation=Warn, the strict decoding error with Strict."""

    tree: Any
    complaints: list[str]


def unknown(path: str) -> str:
    """The complaint about a member no type knows."""
    return f"unknown field {go_quote(path)}"


def by_name(paths: list[str]) -> list[str]:
    """Paths in the order of a walk over members by name and items by position."""
    return sorted(paths, key=_steps)


_STEP = Pattern(r"\[(\d+)\]|[^.\[]+|.")


def _steps(path: str) -> list[tuple[int, str]]:
    return [(int(found[1] or 0), found[0]) for found in _STEP.finditer(path) if found[0] != "."]


def parse(body: bytes, form: str) -> json.Parsed:
    """Decode a body that is `json` or `yaml` without looking at types."""
    if form == "json":
        return json.parse(body)
    from fastapi_core.codec import yaml

    return yaml.parse(body)


def decode(type_: Type | None, body: bytes, form: str = "json") -> Decoded:
    """Decode and normalise a body that is `json` or `yaml`; raises DecodeError as `parse` and `conform` do."""
    return conform(type_, parse(body, form), body)


def from_protobuf(type_: Type, message: bytes) -> dict[str, Any]:
    """The normalised tree of a protobuf message; raises DecodeError for bytes that are none."""
    return normalize(type_, protobuf.decode(type_, message), share=True).tree


def conform(type_: Type | None, parsed: json.Parsed, body: bytes) -> Decoded:
    """Normalise what `parse` made of `body`, for a caller that looked at its kind first. What is normal already is shared
    with the parsed tree, which is of no use afterwards.

    `type_` None (custom resources) leaves the tree as it is. Raises TypeMismatch for a value that does not fit its
    field, with the text the reference prints after `cannot be handled as a Kind: `.
    """
    if type_ is None:
        return Decoded(parsed.tree, parsed.complaints)
    if parsed.duplicates:
        parsed = fold.fold(body, type_)
        return Decoded(normalize(type_, parsed.tree).tree, parsed.complaints)
    result = normalize(type_, parsed.tree, share=True)
    if not result.unknown and not parsed.complaints:
        return Decoded(result.tree, [])
    paths = by_name(result.unknown) if parsed.by_name else result.unknown
    texts = [*parsed.complaints, *(unknown(path) for path in paths)]
    return Decoded(result.tree, texts[:MAX_COMPLAINTS])

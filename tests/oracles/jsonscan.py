"""Duplicate keys and Go's spelling of JSON, slow and obvious: by way of Python's decoder and encoder."""

from __future__ import annotations

import json
from typing import Any


class Pairs(list[tuple[str, Any]]):
    pass


def duplicate_keys(text: str) -> list[str]:
    """Paths of repeated keys in the order of the text, each once, 100 at most."""
    out: list[str] = []
    _walk(json.loads(text, object_pairs_hook=Pairs), "", out)
    return list(dict.fromkeys(out[:100]))


def _walk(value: Any, path: str, out: list[str]) -> None:
    if isinstance(value, Pairs):
        seen = set()
        for key, item in value:
            place = f"{path}.{key}" if path else key
            if key in seen:
                out.append(place)
            seen.add(key)
            _walk(item, place, out)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _walk(item, f"{path}[{i}]", out)


def depth(value: Any) -> int:
    if isinstance(value, dict | list):
        return 1 + max((depth(item) for item in (value.values() if isinstance(value, dict) else value)), default=0)
    return 0


def go_text(text: str) -> str:
    """A string as Go's JSON encoder writes it."""
    out = json.dumps(text, ensure_ascii=False)
    for char, escape in (
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u2028", "\\u2028"),
        ("\u2029", "\\u2029"),
    ):
        out = out.replace(char, escape)
    parts = out.split("\\\\")
    return "\\\\".join(part.replace("\\b", "\\u0008").replace("\\f", "\\u000c") for part in parts)

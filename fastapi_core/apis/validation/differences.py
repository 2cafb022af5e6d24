"""What a refused change of something fixed shows: the lines in which the two internal forms differ."""

from __future__ import annotations

import json
from collections.abc import Collection
from difflib import unified_diff
from typing import Any

from fastapi_core.apis.validation.internal import shown

_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def difference(ref: str, before: Any, after: Any, members: Collection[str] = ()) -> str:
    """A unified diff of two objects of a type, or of those `members` of theirs, without file names."""
    lines = unified_diff(_lines(shown(ref, before, members)), _lines(shown(ref, after, members)))
    return "".join(list(lines)[2:])


def _lines(value: Any) -> list[str]:
    text = json.dumps(value, indent=1, ensure_ascii=False).translate(_ESCAPES)
    return [line + "\n" for line in text.split("\n")]


__all__ = ["difference"]

"""Columns of `kubectl get`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

ColumnType = Literal["string", "integer", "number", "boolean", "date"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column behind NAME. `value` is a JSONPath (`.spec.engine`) or a function of the object.

    `date` columns show an age. `priority` above 0 is for `-o wide` only.
    """

    name: str
    value: str | Callable[[Any], str | int | float | bool | None]
    type: ColumnType = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

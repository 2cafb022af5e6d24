"""Expressions over claims and users: the one place where their text becomes something that can be evaluated.

`compile_expression` is all this package knows of the expression language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


class ExpressionError(ValueError):
    """An expression that cannot be compiled or evaluated; says why."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression: `evaluate` gets the value of its one variable, and raises ExpressionError."""

    text: str
    evaluate: Callable[[Mapping[str, Any]], Any]
    selects: frozenset[str] = frozenset()
    """Fields it reads, such as `claims.email`."""


def compile_expression(text: str, variable: str) -> Expression:
    """Compile an expression over `variable` (`claims` or `user`). Raises ExpressionError."""
    raise ExpressionError(f"expressions over {variable} are not supported by this build, use a claim instead")

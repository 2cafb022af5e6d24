"""The variables of a policy: each is evaluated when an expression first asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastapi_core.cel.errors import EvalError


class LazyFields(dict[str, Any]):
    """Fields whose values are made on first use; an error is remembered like a value."""

    __slots__ = ("_errors", "_make")

    def __init__(self, make: Mapping[str, Callable[[], Any]]) -> None:
        super().__init__()
        self._make = make
        self._errors: dict[str, EvalError] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._make

    def __missing__(self, name: str) -> Any:
        failed = self._errors.get(name)
        if failed is not None:
            raise failed
        make = self._make[name]
        try:
            value = make()
        except EvalError as error:
            self._errors[name] = error
            raise
        self[name] = value
        return value

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self._make else default

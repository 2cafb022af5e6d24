"""Walks that complete objects in place (see `fastapi_core/apis/defaults.py` and `fastapi_core/schema/defaults.py`)."""

from collections.abc import Callable
from typing import Any, Final, final

UNSET: Final[int]
ZERO: Final[int]
EMPTY: Final[int]
SINGLE: Final[int]
LIST: Final[int]
MAP: Final[int]

@final
class Fill:
    """Values for members: (name, value, when), where UNSET means an absent or null member, ZERO also an empty text, zero
    and false, EMPTY also an empty object or list."""

    def __init__(self, *pairs: tuple[str, Any, int]) -> None: ...
    def __call__(self, tree: dict[str, Any]) -> None: ...

@final
class Walk:
    """The rules of one type, and the walks of those of its members that have any below them."""

    def define(self, rules: tuple[Callable[[dict[str, Any]], None], ...], members: dict[str, tuple[int, Walk]]) -> None:
        """`rules` are functions of an object; `members` maps names to (SINGLE, LIST or MAP, walk)."""
    @property
    def idle(self) -> bool:
        """Whether there is nothing to do, here or below."""
    def run(self, tree: dict[str, Any], known: dict[str, Any] | None = None) -> None:
        """Complete the object: its own rules first, then those of its members. Members that are the very objects which
        `known`, a complete tree, has in their place are left alone."""

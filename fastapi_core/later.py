"""Modules that are loaded when they are first used, or as soon as the server has nothing better to do.

A server is ready when it listens; most of its rules are needed by the first request that is about them. Whoever reaches
for such a module only in its functions names it twice:

    if TYPE_CHECKING:
        from fastapi_core.apis.validation import pods
    else:
        pods = later("fastapi_core.apis.validation.pods")

`load_all` brings in after the start what nobody has asked for yet, piece by piece, so that no request finds it missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any


class Later:
    """Stands for a module: the first use of any of its names loads it."""

    def __init__(self, name: str) -> None:
        self.__dict__["__name__"] = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            # Who looks at this object out of curiosity (copying, inspection, tests) loads nothing.
            raise AttributeError(name)
        found = self.__dict__[name] = getattr(import_module(self.__name__), name)
        return found

    def __repr__(self) -> str:
        return f"<{self.__name__}, later>"


_known: dict[str, Later] = {}
_waiting: list[str] = []


def later(name: str, *, soon: bool = False) -> Any:
    """What stands for the module `name` until it is used; the same for everybody.

    `soon`: any first request is likely to need it, so it is loaded before the others.
    """
    found = _known.get(name)
    if found is None:
        found = _known[name] = Later(name)
        _waiting.insert(0 if soon else len(_waiting), name)
    return found


def load_all() -> Iterator[str]:
    """Load what has been put off, and what that puts off in turn: a module at each step, whose name is given."""
    while _waiting:
        name = _waiting.pop(0)
        import_module(name)
        yield name

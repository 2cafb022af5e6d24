"""Handlers as coroutine functions or as plain ones.

A coroutine function runs on the event loop. A plain function may block, so it runs in a thread of a small pool; one
that answers at once from memory is marked `@quick` and runs on the loop, which saves the way to a thread and back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])

_QUICK = "__fastapi_core_quick__"


def quick(function: F) -> F:
    """Mark a plain function that never blocks: it is called on the event loop."""
    setattr(function, _QUICK, True)
    return function

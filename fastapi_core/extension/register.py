"""`register` and `unregister`: the objects that put an extension behind an API server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi_core.extension.description import Description


def register(description: Description, arguments: Sequence[str]) -> int:
    """Create or update the objects and wait until the API is available; `arguments` are the flags behind `register`.

    The exit code: 0, 1 for a failure, 2 for a wrong command line.
    """
    raise SystemExit("register: not there yet")


def unregister(description: Description, arguments: Sequence[str]) -> int:
    """Remove exactly what `register` made. Exit code as there."""
    raise SystemExit("unregister: not there yet")

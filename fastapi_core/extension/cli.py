"""The command line of an extension."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi_core.extension.app import Extension


def main(app: Extension, arguments: Sequence[str] | None = None) -> int:
    """Run one command; answers the exit code: 0, 1 for a failure, 2 for a wrong command line."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    command = args[0] if args and not args[0].startswith("-") else "serve"
    if command in ("register", "unregister"):
        from fastapi_core.extension import register

        return (register.register if command == "register" else register.unregister)(app.description, args[1:])
    raise SystemExit("serve: not there yet")


def load(target: str) -> Extension:
    """The Extension a command line names as `MODULE:ATTRIBUTE` or `FILE.py:ATTRIBUTE` (attribute `app` by default).

    Raises ValueError with what is wrong.
    """
    import importlib
    import importlib.util

    from fastapi_core.extension.app import Extension

    where, _, attribute = target.rpartition(":") if ":" in target else (target, "", "app")
    try:
        if where.endswith(".py"):
            spec = importlib.util.spec_from_file_location("__extension__", where)
            if spec is None or spec.loader is None:
                raise ValueError(f"{where!r} is no Python file")
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(where)
    except (ImportError, OSError) as error:
        raise ValueError(f"{where!r} cannot be imported: {error}") from error
    found = getattr(module, attribute or "app", None)
    if not isinstance(found, Extension):
        raise ValueError(f"{target!r} is no Extension, use MODULE:ATTRIBUTE, for example examples.db_api:app")
    return found

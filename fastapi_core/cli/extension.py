"""`fastapi-core extension`: the commands of an extension that is named on the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

USAGE = """\
usage: fastapi-core extension register [MODULE:ATTRIBUTE | FILE.py] [flags]
                                      make the Service, the APIServices and what else the API server needs
       fastapi-core extension unregister [MODULE:ATTRIBUTE | FILE.py] [flags]
                                      remove exactly what register made
       fastapi-core extension serve MODULE:ATTRIBUTE | FILE.py [flags]
                                      run it, as its own main() does

Servers that are no Python extension are registered by --group-version and --name. --help behind a command shows its flags."""
_COMMANDS = ("register", "unregister", "serve")


def extension(args: Sequence[str]) -> int:
    """Run one command; answers the exit code: 0, 1 for a failure, 2 for a wrong command line."""
    command, *rest = args or ("",)
    if command in ("--help", "-h", "help"):
        print(USAGE)
        return 0
    if command not in _COMMANDS:
        print(f"fastapi-core: unknown command {command!r}\n{USAGE}" if command else USAGE, file=sys.stderr)
        return 2
    target = rest.pop(0) if rest and not rest[0].startswith("-") else ""
    if target:
        return _with(target, command, rest)
    if command == "serve":
        print(f"fastapi-core: serve needs an extension, as MODULE:ATTRIBUTE\n{USAGE}", file=sys.stderr)
        return 2
    from fastapi_core.extension import register

    return (register.register if command == "register" else register.unregister)(None, rest)


def _with(target: str, command: str, rest: list[str]) -> int:
    from fastapi_core.extension.cli import load, main

    # As `python -m` does: modules of the directory one is in.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        app = load(target)
    except ValueError as error:
        print(f"fastapi-core: {error}", file=sys.stderr)
        return 2
    return main(app, [command, *rest])

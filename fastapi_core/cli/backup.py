"""`fastapi-core backup`: a copy of the store of one moment, while a server runs on it or not."""

from __future__ import annotations

import sys
from pathlib import Path

USAGE = """\
usage: fastapi-core backup --data-dir DIR FILE

Copies the store in DIR to FILE (replacing it), beside a running server and without holding up its writes. FILE is
complete and on disk when the command ends, or not there at all.

To restore: stop the server, put FILE in place of DIR/store.db, remove DIR/store.db-wal and DIR/store.db-shm, start the
server. DIR/pki (keys and certificates) is not part of the copy."""


def backup(arguments: list[str]) -> int:
    """Run the command; answers the exit code: 0, 1 for a failure, 2 for a wrong command line."""
    if any(argument in ("--help", "-h") for argument in arguments):
        print(USAGE)
        return 0
    try:
        directory, target = _parse(arguments)
    except ValueError as error:
        return _complain(f"{error}\n{USAGE}", 2)

    from fastapi_core.storage.interface import StorageError
    from fastapi_core.storage.sqlite.backup import back_up
    from fastapi_core.storage.sqlite.schema import FILE_NAME

    source = directory / FILE_NAME
    if not source.is_file():
        return _complain(f"--data-dir: there is no store in {directory}", 1)
    try:
        revision = back_up(source, target)
    except StorageError as error:
        return _complain(str(error), 1)
    print(f"Copied revision {revision} of {source} to {target}")
    return 0


def _parse(arguments: list[str]) -> tuple[Path, Path]:
    directory = ""
    files = []
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name == "--data-dir":
            directory = value if equals else next(rest, "")
        elif argument.startswith("-"):
            raise ValueError(f"unknown flag {name}")
        else:
            files.append(argument)
    if not directory:
        raise ValueError("--data-dir is missing")
    if len(files) != 1:
        raise ValueError("give one file to write to")
    return Path(directory), Path(files[0])


def _complain(text: str, code: int) -> int:
    print(f"fastapi-core: {text}", file=sys.stderr)
    return code

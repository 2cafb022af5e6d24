"""A copy of the database while it is in use.

The copy is made by SQLite's backup function on a connection of its own inside one read transaction: it is the state of
one moment, writers go on, and only the write-ahead log grows meanwhile. It appears under its name when it is complete
and on disk, never half.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from fastapi_core.storage.interface import Code, StorageError
from fastapi_core.storage.sqlite import schema

#: Pages copied at a time (1 MiB); the interpreter lock is free during a step.
_STEP_PAGES = 256


def back_up(source: Path, target: Path) -> int:
    """Copy the database `source` to the file `target`, replacing it; the revision it holds. Blocks; run it on a thread.

    Works from another process than the writer's, too. StorageError(UNAVAILABLE) when there is no such copy to be had.
    """
    if target.exists() and target.samefile(source):
        raise StorageError(Code.UNAVAILABLE, message=f"{target} is the database itself")
    partial = target.with_name(target.name + ".partial")
    try:
        partial.unlink(missing_ok=True)
        os.close(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        revision = _copy(source, partial)
        _flush(partial)
        os.replace(partial, target)
        _flush(target.parent)
        return revision
    except StorageError:
        partial.unlink(missing_ok=True)
        raise
    except (OSError, sqlite3.Error) as error:
        partial.unlink(missing_ok=True)
        raise StorageError(Code.UNAVAILABLE, message=f"cannot back up to {target}: {error}") from error


def _copy(source: Path, target: Path) -> int:
    reader = schema.open_reader(source)
    try:
        if reader.execute("PRAGMA application_id").fetchone() != (schema.APPLICATION_ID,):
            raise StorageError(Code.UNAVAILABLE, message=f"{source} is a database of another program")
        copy = sqlite3.connect(target, isolation_level=None)
        try:
            # Without an open transaction the copy would begin again after each commit of the writer.
            reader.execute("BEGIN")
            revision = schema.read_counts(reader).revision
            reader.backup(copy, pages=_STEP_PAGES)
            reader.execute("ROLLBACK")
        finally:
            copy.close()
    finally:
        reader.close()
    return revision


def _flush(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)

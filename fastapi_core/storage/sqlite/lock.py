"""The lock on a data directory: one process owns the store in it.

`flock` ends with the process, however it dies, so a crash leaves no stale lock.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from fastapi_core.storage.interface import Code, StorageError


class DirectoryLock:
    """An exclusive lock; `acquire` fails at once when another process (or another store of this one) holds it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: int | None = None

    def acquire(self) -> None:
        """Take the lock. StorageError(UNAVAILABLE) names the holder."""
        file = os.open(self._directory / "store.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(file, 32).decode(errors="replace").strip()
            os.close(file)
            raise StorageError(
                Code.UNAVAILABLE,
                message=f"the data directory {self._directory} is in use by process {holder or '(unknown)'}; "
                "stop that server or choose another data directory",
            ) from None
        except OSError:
            os.close(file)
            raise
        os.truncate(file, 0)
        os.write(file, f"{os.getpid()}\n".encode())
        self._file = file

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

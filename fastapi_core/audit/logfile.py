"""A file that lines are added to, rotated by size; old files are compressed and removed by number and age.

Used by one thread. What a killed process leaves behind is whole lines, except that the last one may be cut: the next
start begins on a line of its own.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

_STAMP = "%Y-%m-%dT%H-%M-%S"
_COMPRESSED = ".gz"
#: Most bytes joined for one write.
_PIECE = 1 << 20


class Rotation(NamedTuple):
    """When a file is closed and how long it is kept; 0 is no limit, except that `size` 0 means 100 MiB."""

    size: int = 100
    """MiB."""
    backups: int = 0
    age: int = 0
    """Days."""
    compress: bool = False

    @property
    def bytes(self) -> int:
        return (self.size or 100) << 20


class LogFile:
    """Opens (and makes) the file at once, so that a path that cannot be used is found at the start. Raises OSError."""

    def __init__(self, path: str, rotation: Rotation) -> None:
        self._path = os.path.abspath(path)
        self._rotation = rotation
        self._limit = rotation.bytes
        self._fd = -1
        self._size = 0
        self._torn = False
        self._tidying: threading.Thread | None = None
        os.makedirs(os.path.dirname(self._path), mode=0o755, exist_ok=True)
        self._open()
        self._tidy()

    def write(self, lines: Sequence[bytes]) -> None:
        """Add whole lines; OSError when they cannot (all) be written. A line longer than the limit is written too."""
        if self._fd < 0:
            self._open()
        whole = sum(map(len, lines))
        if whole <= _PIECE and self._size + whole <= self._limit:
            self._flush(lines)
            return
        pending: list[bytes] = []
        size = 0
        for line in lines:
            if self._size + size + len(line) > self._limit and self._size + size:
                self._flush(pending)
                pending, size = [], 0
                self._rotate()
            elif size > _PIECE:
                self._flush(pending)
                pending, size = [], 0
            pending.append(line)
            size += len(line)
        self._flush(pending)

    def close(self) -> None:
        """Close the file and wait for old ones to be compressed."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._tidying is not None:
            self._tidying.join()

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(self._path, flags, 0o600)
        self._size = os.fstat(self._fd).st_size
        self._torn = self._size > 0 and os.pread(self._fd, 1, self._size - 1) != b"\n"

    def _flush(self, lines: Sequence[bytes]) -> None:
        if not lines:
            return
        data = b"".join(lines)
        if self._torn:
            data = b"\n" + data
        view = memoryview(data)
        while view:
            try:
                written = os.write(self._fd, view)
            except OSError:
                if len(view) < len(data):
                    self._torn = data[len(data) - len(view) - 1] != 10
                raise
            self._size += written
            view = view[written:]
        self._torn = False

    def _rotate(self) -> None:
        """Put the file aside under a name with the time, and begin a new one."""
        folder, stem, suffix = self._parts()
        now = time.time()
        while True:
            name = f"{stem}-{time.strftime(_STAMP, time.gmtime(now))}.{int(now * 1000) % 1000:03d}{suffix}"
            target = os.path.join(folder, name)
            if not os.path.exists(target) and not os.path.exists(target + _COMPRESSED):
                break
            now += 0.001
        os.rename(self._path, target)
        os.close(self._fd)
        self._fd = -1
        self._open()
        self._tidy()

    def _parts(self) -> tuple[str, str, str]:
        folder, name = os.path.split(self._path)
        stem, suffix = os.path.splitext(name)
        return folder, stem, suffix

    def _tidy(self) -> None:
        """Remove and compress in a thread, one at a time: the lines of the moment do not wait for it."""
        rotation = self._rotation
        if not (rotation.backups or rotation.age or rotation.compress):
            return
        if self._tidying is None or not self._tidying.is_alive():
            self._tidying = threading.Thread(target=self._remove_and_compress, name="audit-rotation", daemon=True)
            self._tidying.start()

    def _remove_and_compress(self) -> None:
        rotation = self._rotation
        done: set[str] = set()
        while True:
            found = [name for name in self._backups() if name not in done]
            if not found:
                return
            done.update(found)
            oldest = time.time() - rotation.age * 86400
            for index, name in enumerate(self._backups()):
                with suppress(OSError):
                    if (rotation.backups and index >= rotation.backups) or (
                        rotation.age and self._time_of(name) < oldest
                    ):
                        os.unlink(name)
                    elif rotation.compress and not name.endswith(_COMPRESSED):
                        done.add(name + _COMPRESSED)
                        _compress(name)

    def _backups(self) -> list[str]:
        """Files put aside, the newest first."""
        folder, stem, suffix = self._parts()
        pattern = re.compile(rf"{re.escape(stem)}-\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{{3}}{re.escape(suffix)}(\.gz)?")
        try:
            names = [name for name in os.listdir(folder) if pattern.fullmatch(name)]
        except OSError:
            return []
        return [os.path.join(folder, name) for name in sorted(names, reverse=True)]

    def _time_of(self, path: str) -> float:
        import calendar

        _, stem, _ = self._parts()
        start = len(stem) + 1
        text = os.path.basename(path)[start : start + 19]
        return calendar.timegm(time.strptime(text, _STAMP))


def _compress(name: str) -> None:
    """Replace a file by its gzip; a half-made one is never seen under the final name."""
    import gzip
    import shutil

    half = name + ".part"
    try:
        with (
            open(name, "rb") as source,
            open(half, "wb", opener=_private) as target,
            gzip.GzipFile(fileobj=target, mode="wb", filename="") as packed,
        ):
            shutil.copyfileobj(source, packed, 1 << 18)
        os.rename(half, name + _COMPRESSED)
    except OSError:
        with suppress(OSError):
            os.unlink(half)
        raise
    os.unlink(name)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class StandardOutput:
    """The same for `-`: lines to standard output, which is never rotated."""

    def __init__(self, fd: int = 1) -> None:
        self._fd = fd

    def write(self, lines: Sequence[bytes]) -> None:
        view = memoryview(b"".join(lines))
        while view:
            view = view[os.write(self._fd, view) :]

    def close(self) -> None:
        """Standard output belongs to the process."""

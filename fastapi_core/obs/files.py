"""Configuration files that are followed on disk: one timer looks after all of them.

A look is a `stat`; only when that differs is the file read and its hash compared, so a touched file changes nothing and a
swapped symbolic link (how secrets are mounted in a container) is seen. Whoever follows a file reads it himself: he is
told that it changed, and keeps his last good state when he cannot use what he finds.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from hashlib import sha256

from fastapi_core.obs import logs

log = logs.get("files")

INTERVAL = 5.0
"""Seconds between two looks."""

Stamp = tuple[int, int, int] | None


class FileWatcher:
    """Files and who wants to know of their changes.

    `follow` may be called before `start`; `check` looks at once (also what SIGHUP and tests do). All on one loop.
    """

    def __init__(self, interval: float = INTERVAL) -> None:
        self._interval = interval
        self._followed: list[_Followed] = []
        self._timer: asyncio.TimerHandle | None = None

    def follow(self, paths: Iterable[str], changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` after the content of any of the files has changed; answers a function that ends it.

        What exists now is the state to compare with, so read the files after this call or accept one spare call.
        A `changed` that raises is logged and called again at the next look, until it is content.
        """
        followed = _Followed(tuple(path for path in paths if path), changed)
        self._followed.append(followed)

        def stop() -> None:
            if followed in self._followed:
                self._followed.remove(followed)

        return stop

    def start(self) -> None:
        """Look every `interval` seconds on the running loop until `close`."""
        if self._timer is None:
            self._schedule(asyncio.get_running_loop())

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def check(self) -> None:
        """Look at every file now."""
        for followed in tuple(self._followed):
            followed.check()

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        def tick() -> None:
            self.check()
            self._schedule(loop)

        self._timer = loop.call_later(self._interval, tick)


class _Followed:
    """A set of files that is used together (certificate and key), and who uses it."""

    def __init__(self, paths: tuple[str, ...], changed: Callable[[], None]) -> None:
        self._paths = paths
        self._changed = changed
        self._stamps = {path: _stamp(path) for path in paths}
        self._digests = {path: _digest(path) for path in paths}
        self._failing = False

    def check(self) -> None:
        different = False
        for path in self._paths:
            stamp = _stamp(path)
            if stamp == self._stamps[path]:
                continue
            self._stamps[path] = stamp
            digest = _digest(path)
            if digest is None:
                # Being replaced, or gone: what was read last stays in use until there is something else.
                log.warning("File cannot be read, its last content stays in use", path=path)
            elif digest != self._digests[path]:
                self._digests[path] = digest
                different = True
        if different or self._failing:
            self._tell(again=not different)

    def _tell(self, *, again: bool) -> None:
        try:
            self._changed()
        except Exception as error:
            self._failing = True
            if not again:
                log.error("Changed files cannot be used, the old ones stay in use", paths=self._names, err=str(error))
            return
        self._failing = False
        log.info("Files reloaded", paths=self._names)

    @property
    def _names(self) -> str:
        return " ".join(self._paths)


def _stamp(path: str) -> Stamp:
    """What differs when a file is written or replaced (a symbolic link swapped, too)."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def _digest(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return sha256(file.read()).digest()
    except OSError:
        return None

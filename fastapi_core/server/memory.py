"""Gives memory back after bursts: what the allocator keeps for later is returned to the system once things are quiet.

glibc keeps freed memory below the highest block in use; after some large lists that is more than all objects take.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable

PERIOD = 5.0
"""Seconds between two looks at the resident memory."""
WORTH = 24 << 20
"""Growth since the last time above which it is tried."""
STEADY = 2 << 20
"""Growth within a period up to which things are quiet."""

AGAIN = 12
"""Looks after which it is tried again although nothing has grown: what was in use then may be free by now."""

Trim = Callable[[], object]


def resident() -> int:
    """Bytes of resident memory; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def trimmer() -> Trim | None:
    """What returns freed memory to the system, where the C library can."""
    import ctypes

    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    return lambda: trim(0)


class Memory:
    """Looks at the process from time to time. `read` and `find` stand for the system in tests."""

    def __init__(
        self,
        read: Callable[[], int] = resident,
        find: Callable[[], Trim | None] = trimmer,
        *,
        period: float = PERIOD,
    ) -> None:
        self._read = read
        self._find = find
        self._period = period
        self._lowest = self._floor = self._last = 0
        self._looks = 0
        self._timer: asyncio.TimerHandle | None = None
        self._trim: Trim | None = None

    def start(self) -> None:
        """Look from now on, until `stop`."""
        self._lowest = self._floor = self._last = self._read()
        if self._last:
            self._again()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._period, self._look)

    def _look(self) -> None:
        now, before = self._read(), self._last
        self._last = now
        self._looks += 1
        self._lowest, self._floor = min(self._lowest, now), min(self._floor, now)
        floor = self._lowest if self._looks > AGAIN else self._floor
        if now - floor <= WORTH or now - before > STEADY:
            self._again()
            return
        self._looks = 0
        self._trim = self._trim or self._find()
        if self._trim is None:
            return
        # The call waits for nobody and holds no lock of the interpreter, but may take some milliseconds.
        done = asyncio.get_running_loop().run_in_executor(None, self._trim)
        done.add_done_callback(self._trimmed)

    def _trimmed(self, done: asyncio.Future[object]) -> None:
        # What could not be given back is in use, or too scattered to try again soon.
        self._floor = self._last = self._read()
        if self._timer is not None and not done.cancelled():
            self._again()

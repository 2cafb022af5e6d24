"""What holds the event loop up (`--contention-profiling`): a thread looks whether it still turns, and where it stands."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import Counter

from fastapi_core.server.debug import fold

BEAT = 0.05
"""Seconds between two signs of life; a stall is noticed after twice that."""
_KEPT = 1000


class Stalls:
    """Counts the stacks in which the loop stood still; bounded, for as long as the server runs."""

    def __init__(self, beat: float = BEAT) -> None:
        self._beat = beat
        self._last = 0.0
        self._ident = 0
        self._seen: Counter[str] = Counter()
        self._stop = threading.Event()
        self._timer: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Watch the running loop until `stop`."""
        self._ident = threading.get_ident()
        self._tick(asyncio.get_running_loop())
        threading.Thread(target=self._watch, name="stalls", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()
        if self._timer is not None:
            self._timer.cancel()

    def report(self) -> str:
        """Folded stacks with the number of times each was seen while the loop stood still."""
        return "".join(f"{stack} {count}\n" for stack, count in self._seen.most_common())

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self._last = time.monotonic()
        self._timer = loop.call_later(self._beat, self._tick, loop)

    def _watch(self) -> None:
        while not self._stop.wait(self._beat):
            if time.monotonic() - self._last > 2 * self._beat:
                frame = sys._current_frames().get(self._ident)
                if frame is not None and (len(self._seen) < _KEPT or fold(frame) in self._seen):
                    self._seen[fold(frame)] += 1

"""How long history is kept.

The reference compacts every five minutes what was newest five minutes before (`--etcd-compaction-interval`), so history
is between five and ten minutes old. Here the revision is noted more often and the window is kept closely. After a start
nothing is known about the age of revisions, so nothing is compacted for one window: watchers of the server before find
their history.
"""

from __future__ import annotations

import asyncio
from collections import deque

from fastapi_core.storage.interface import Storage, StorageError


class Compactor:
    """Compacts `storage` so that about `window` seconds of history stay; 0 keeps everything.

    The revision is noted `samples` times per window; the age of the oldest history is exact to that part.
    """

    def __init__(self, storage: Storage, *, window: float = 300.0, samples: int = 10) -> None:
        self._storage = storage
        self._window = window
        self._interval = window / samples
        self._samples: deque[tuple[float, int]] = deque()
        self._task: asyncio.Task[None] | None = None
        self.last_error: StorageError | None = None
        """Why the newest attempt failed; None when it did not."""

    def start(self) -> None:
        """Work in the background until `stop`."""
        if self._window > 0 and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="storage-compactor")

    async def stop(self) -> None:
        """End the background work; harmless when there is none."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def due(self, now: float) -> int:
        """Note the revision of this moment (`now` in seconds of any steady clock); the revision to compact, or 0."""
        revision = self._storage.revision
        due = 0
        while self._samples and self._samples[0][0] <= now - self._window:
            due = self._samples.popleft()[1]
        self._samples.append((now, revision))
        return due if due > self._storage.compacted else 0

    async def tick(self, now: float) -> None:
        """Note the revision and compact what is due. A failure is kept in `last_error`; the next tick tries again."""
        due = self.due(now)
        if not due:
            return
        try:
            await self._storage.compact(due)
        except StorageError as error:
            self.last_error = error
        else:
            self.last_error = None

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self.tick(loop.time())
            await asyncio.sleep(self._interval)

"""Who of several servers gives up history, and when: the key and the turns are the reference's, so both can share etcd.

Every interval each server tries to write the same key, comparing its version; the one that succeeds compacts what was
newest when the key was written the time before. So history is between one and two intervals old.
"""

from __future__ import annotations

import asyncio

from fastapi_core.obs import logs
from fastapi_core.storage.etcd.store import EtcdStorage
from fastapi_core.storage.interface import StorageError

log = logs.get("etcd")

#: The key, below no prefix, whose value is the revision that was compacted.
KEY = "compact_rev_key"


class TurnCompactor:
    """Compacts in turns with other servers; `interval` 0: never."""

    def __init__(self, storage: EtcdStorage, *, interval: float = 300.0) -> None:
        self._storage = storage
        self._interval = interval
        self._version = 0
        self._revision = 0
        self._task: asyncio.Task[None] | None = None
        self.last_error: StorageError | None = None
        """Why the newest attempt failed; None when it did not."""

    def start(self) -> None:
        """Work in the background until `stop`."""
        if self._interval > 0 and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="storage-compactor")

    async def stop(self) -> None:
        """End the background work; harmless when there is none."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def tick(self) -> bool:
        """Try to take the turn and compact; whether it was ours. A failure is kept, the next tick tries again."""
        due = self._revision
        try:
            ours, self._version, self._revision = await self._storage.turn(KEY, self._version, b"%d" % due)
            if ours and due:
                await self._storage.compact(due)
        except StorageError as error:
            self.last_error = error
            log.warning("etcd cannot be compacted", reason=str(error))
            return False
        self.last_error = None
        return ours

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            await self.tick()

"""Leases for keys with a time to live: keys of the same time to live that come close together share one.

A lease costs etcd memory and a write of its own, so the reference lets a key live longer by up to a minute (and by no
more than a twentieth of its time) for the sake of sharing, and so does this.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

from fastapi_core.records import dataclass

#: Keys that share a lease at most: they all go at once when it ends.
SHARED_BY = 1000
_LONGEST_PART = 0.05


@dataclass(slots=True)
class _Lease:
    number: asyncio.Future[int]
    until: float
    """When it is no longer given to new keys."""
    keys: int = 0


class Leases:
    """`grant(seconds)` asks etcd for a lease; `reuse` are the seconds in which one is given out."""

    def __init__(self, grant: Callable[[int], Awaitable[int]], reuse: float) -> None:
        self._grant = grant
        self._reuse = reuse
        self._known: dict[int, _Lease] = {}

    async def lease(self, ttl: float) -> int:
        """The lease for a key that is to live `ttl` seconds."""
        loop = asyncio.get_running_loop()
        seconds = max(1, math.ceil(ttl))
        extra = int(min(self._reuse, seconds * _LONGEST_PART))
        found = self._known.get(seconds)
        if found is None or found.until <= loop.time() or found.keys >= SHARED_BY or _failed(found):
            task = loop.create_task(self._granted(seconds + extra), name="etcd-lease")
            found = _Lease(task, loop.time() + extra)
            if extra:
                self._known[seconds] = found
        found.keys += 1
        return await asyncio.shield(found.number)

    def forget(self, number: int) -> None:
        """A lease has ended that should not have."""
        for seconds, lease in list(self._known.items()):
            done = lease.number.done() and not _failed(lease)
            if done and lease.number.result() == number:
                del self._known[seconds]

    async def _granted(self, seconds: int) -> int:
        return await self._grant(seconds)


def _failed(lease: _Lease) -> bool:
    number = lease.number
    return number.done() and (number.cancelled() or number.exception() is not None)

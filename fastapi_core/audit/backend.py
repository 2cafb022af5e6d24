"""What keeps events: the protocol of backends, and several of them as one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Protocol

from fastapi_core.audit.event import Event

BATCH = "batch"
BLOCKING = "blocking"
STRICT = "blocking-strict"
MODES = (BATCH, BLOCKING, STRICT)


class Backend(Protocol):
    """Takes events on the event loop and gives them to somebody who may be slow; never lets a request wait by itself."""

    @property
    def strict(self) -> bool:
        """A request whose first event is not kept must be refused."""

    @property
    def waits(self) -> bool:
        """The first event of a request has to be kept (`store`) before the request goes on."""

    @property
    def congested(self) -> bool:
        """Requests had better wait (`room`): more is waiting to be kept than should be."""

    def put(self, event: Event) -> None:
        """Take an event, or count it as lost."""

    def store(self, event: Event) -> Awaitable[bool]:
        """Take an event; whether it has been kept."""

    def room(self) -> Awaitable[None]:
        """Return when it is no longer congested."""

    async def close(self) -> None:
        """Keep what has been taken; events that come later are lost."""


class Union:
    """Every event to every backend."""

    def __init__(self, backends: Sequence[Backend]) -> None:
        self._backends = tuple(backends)
        self.strict = any(backend.strict for backend in backends)
        self.waits = any(backend.waits for backend in backends)

    @property
    def congested(self) -> bool:
        return any(backend.congested for backend in self._backends)

    def put(self, event: Event) -> None:
        for backend in self._backends:
            backend.put(event)

    async def store(self, event: Event) -> bool:
        """Only what a strict backend could not keep counts against the request."""
        pending = []
        for backend in self._backends:
            if backend.waits:
                pending.append((backend, asyncio.ensure_future(backend.store(event))))
            else:
                backend.put(event)
        kept = [await future or not backend.strict for backend, future in pending]
        return all(kept)

    async def room(self) -> None:
        for backend in self._backends:
            await backend.room()

    async def close(self) -> None:
        await asyncio.gather(*(backend.close() for backend in self._backends))


class Throttle:
    """So many batches a second, with a burst when there have been fewer: a token bucket."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._last: float | None = None

    def delay(self, now: float) -> float:
        """Take a token; seconds to wait until it is there. `now` is monotonic."""
        if self._last is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._last) * self._rate)
        self._last = now
        self._tokens -= 1
        return 0.0 if self._tokens >= 0 else -self._tokens / self._rate

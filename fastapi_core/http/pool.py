"""Connections to other servers that are kept for the next request."""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic

from fastapi_core.http.client import Target, UpstreamError, create_transport, dial_problem
from fastapi_core.http.connection import Connection

_READ = 1 << 16


class Pool:
    """Connections by target.

    `idle_limit` of each target are kept, for `idle_timeout` seconds; `limit` are open to one target at a time (0: as many
    as it takes), and who finds none waits for one, behind at most `queue` others (0: any number). `dial_timeout` is for one
    connection, handshake and all. A pool is one event loop's.
    """

    def __init__(
        self,
        *,
        idle_timeout: float = 90.0,
        idle_limit: int = 64,
        limit: int = 0,
        queue: int = 0,
        dial_timeout: float = 30.0,
    ) -> None:
        self.buffer = memoryview(bytearray(_READ))
        self._idle_timeout = idle_timeout
        self._idle_limit = idle_limit
        self._limit = limit
        self._queue = queue
        self._dial_timeout = dial_timeout
        self._idle: dict[Target, list[Connection]] = {}
        self._open: dict[Target, set[Connection]] = {}
        self._waiting: dict[Target, deque[asyncio.Future[None]]] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def take(self, target: Target) -> Connection | None:
        """A kept connection, the one used last; None without, and where others have waited for one already."""
        return None if self._waiting.get(target) else self._kept(target)

    def _kept(self, target: Target) -> Connection | None:
        kept = self._idle.get(target)
        while kept:
            connection = kept.pop()
            if connection.usable:
                return connection
        return None

    async def connect(self, target: Target) -> Connection:
        """A new connection (or one that is given back meanwhile, at the limit). Raises UpstreamError."""
        place = await self._place(target)
        if isinstance(place, Connection):
            return place
        loop = asyncio.get_running_loop()
        connection = Connection(self, target)
        opened = self._open.setdefault(target, set())
        opened.add(connection)
        try:
            async with asyncio.timeout(self._dial_timeout):
                await create_transport(loop, lambda: connection, target)
        except BaseException as error:
            self.lost(connection)
            if isinstance(error, OSError | TimeoutError | ValueError):
                raise UpstreamError(dial_problem(error, target)) from error
            raise
        return connection

    async def _place(self, target: Target) -> Connection | None:
        """None when one more may be opened."""
        waited = False
        while self._limit and len(self._open.get(target, ())) >= self._limit:
            waiting = self._waiting.setdefault(target, deque())
            if self._queue and len(waiting) >= self._queue and not waited:
                raise UpstreamError(f"too many requests wait for a connection to {target.authority}")
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            if waited:
                waiting.appendleft(turn)  # whom somebody was quicker than, does not lose the place
            else:
                waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._next(target)
                elif turn in waiting:
                    waiting.remove(turn)
                raise
            waited = True
            connection = self._kept(target)
            if connection is not None:
                return connection
        return None

    def _next(self, target: Target) -> None:
        waiting = self._waiting.get(target)
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._waiting.pop(target, None)

    def give_back(self, connection: Connection) -> None:
        """Called by connections that can be used again."""
        kept = self._idle.get(connection.target)
        if kept is None:
            kept = self._idle[connection.target] = []
        if len(kept) >= self._idle_limit and not self._waiting.get(connection.target):
            connection.close()
            return
        connection.idle_since = monotonic()
        kept.append(connection)
        if self._waiting:
            self._next(connection.target)
        if self._sweeper is None:
            self._schedule()

    def lost(self, connection: Connection) -> None:
        """Called by connections that have ended."""
        target = connection.target
        opened = self._open.get(target)
        if opened is not None:
            opened.discard(connection)
            if not opened:
                del self._open[target]
        kept = self._idle.get(target)
        if kept is not None:
            if connection in kept:
                kept.remove(connection)
            if not kept:
                del self._idle[target]
        self._next(target)

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweeper = loop.call_later(max(self._idle_timeout / 4, 0.01), self._sweep)

    def _sweep(self) -> None:
        self._sweeper = None
        oldest = monotonic() - self._idle_timeout
        for kept in tuple(self._idle.values()):
            for connection in tuple(kept):
                if connection.idle_since <= oldest or not connection.usable:
                    kept.remove(connection)
                    connection.abort()
        self._idle = {target: kept for target, kept in self._idle.items() if kept}
        if self._idle:
            self._schedule()

    def statistics(self) -> dict[str, int]:
        """How many connections there are now: open, idle."""
        return {"open": sum(map(len, self._open.values())), "idle": sum(map(len, self._idle.values()))}

    def drop(self, target: Target) -> None:
        """Close what is kept for a target that is not asked any more."""
        for connection in self._idle.pop(target, ()):
            connection.abort()

    def close(self) -> None:
        """End every connection, and with them what is under way."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for opened in tuple(self._open.values()):
            for connection in tuple(opened):
                connection.fail(UpstreamError("the server is shutting down"))
        self._idle.clear()

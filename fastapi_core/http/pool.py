"""Connections to other servers that are kept for the next request: one exchange at a time each, told by callbacks.

An `Exchange` is called from within the parser, so an answer costs neither a task nor a copy; whoever takes it decides
about its pieces at once and pauses the connection when they cannot go on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from time import monotonic
from typing import Protocol, cast

from httptools import HttpParserError, HttpResponseParser

from fastapi_core.http.client import HEAD_LIMIT, Target, UpstreamError, create_transport, dial_problem
from fastapi_core.http.exchange import Header
from fastapi_core.obs import logs

log = logs.get("upstream")

FIELD_LIMIT = 1000
"""Header lines of one answer."""


class Exchange(Protocol):
    """Who takes an answer. After `end` or `failed` nothing comes any more; none of them may raise."""

    def head(self, status: int, headers: list[Header], length: int) -> None:
        """`length` of the body: 0 for none, -1 when unknown."""

    def data(self, data: bytes) -> None: ...
    def settle(self) -> None:
        """What has come so far is told, and the answer is not complete."""

    def end(self, trailers: Sequence[Header]) -> None: ...
    def failed(self, error: UpstreamError, *, untouched: bool) -> None:
        """`untouched`: on a connection kept from before that ended without a byte, so the server saw no request."""

    def congested(self) -> None:
        """The other side does not take the request fast enough; `relieved` follows."""

    def relieved(self) -> None: ...


class Connection(asyncio.Protocol):
    """One connection of a pool."""

    def __init__(self, pool: Pool, target: Target) -> None:
        self.target = target
        self.idle_since = 0.0
        self._pool = pool
        self._exchange: Exchange | None = None
        self._transport: asyncio.Transport | None = None
        self._used = False
        self._renew()

    def _renew(self) -> None:
        self._parser = HttpResponseParser(self)
        self._begin()
        self._extra = False

    def _begin(self) -> None:
        self._headers: list[Header] = []
        self._headed = self._complete = self._keep = self._chunked = False
        self._length = -1
        self._count = 0

    # To whoever sends

    def start(self, exchange: Exchange, data: bytes, *, head: bool = False) -> None:
        """Send a request (its head and as much of its body as there is) for `exchange` to get the answer."""
        assert self._transport is not None
        self._exchange = exchange
        self._is_head = head
        self._received = 0
        self._begin()
        self._transport.write(data)

    def write(self, data: bytes) -> None:
        """More of the request's body."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def pause(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def abort(self) -> None:
        """End it at once; the exchange hears nothing."""
        self._exchange = None
        if self._transport is not None:
            self._transport.abort()

    @property
    def usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing() and not self._extra

    # From the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._pool.lost(self)
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        if self._headed and not self._chunked and self._length < 0:
            exchange.end(())
            return
        untouched = self._used and not self._received
        text = "EOF" if not self._received else "unexpected EOF"
        exchange.failed(UpstreamError(text if exc is None else str(exc) or text), untouched=untouched)

    def pause_writing(self) -> None:
        if self._exchange is not None:
            self._exchange.congested()

    def resume_writing(self) -> None:
        if self._exchange is not None:
            self._exchange.relieved()

    def data_received(self, data: bytes) -> None:
        exchange = self._exchange
        if exchange is None:
            # Nobody asked for it: whoever came next would get another one's answer.
            self.abort()
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            if not self._complete:
                self._fail(UpstreamError(f"malformed HTTP response: {error.__context__ or error}"))
                return
            self._extra = True
        if self._complete:
            self._finished(exchange)
        elif not self._headed and self._received > HEAD_LIMIT:
            self._fail(UpstreamError(f"net/http: server response headers exceeded {HEAD_LIMIT} bytes; aborted"))
        elif self._exchange is exchange:
            exchange.settle()

    def _finished(self, exchange: Exchange) -> None:
        if self._exchange is not exchange:
            return
        self._exchange = None
        self._used = True
        trailers = self._headers
        if self._is_head:
            # The parser waits for a body that does not come.
            self._extra, extra = False, self._extra
            self._parser = HttpResponseParser(self)
            self._extra = extra
        if self._keep and not self._extra:
            self._pool.give_back(self)
        elif self._transport is not None:
            self._transport.close()
        exchange.end(trailers)

    def _fail(self, error: UpstreamError) -> None:
        exchange = self._exchange
        self.abort()
        if exchange is not None:
            exchange.failed(error, untouched=False)

    # From the parser

    def on_message_begin(self) -> None:
        if self._complete:
            self._extra = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._extra or self._complete:
            return
        self._count += 1
        if self._count > FIELD_LIMIT:
            raise ValueError("too many header lines")
        name = name.lower()
        if not self._headed:
            if name == b"content-length":
                self._length = int(value)
            elif name == b"transfer-encoding":
                if value.lower() != b"chunked" or self._chunked:
                    raise ValueError(f"unsupported transfer encoding {value!r}")
                self._chunked = True
        self._headers.append((name, value.strip(b" \t")))

    def on_headers_complete(self) -> None:
        exchange = self._exchange
        if self._extra or self._complete or exchange is None:
            return
        status = self._parser.get_status_code()
        if status == 101:
            raise ValueError("a switch of protocols that was not asked for")
        if status < 200:
            self._headers = []
            return
        headers, self._headers = self._headers, []
        self._headed = True
        self._keep = self._parser.should_keep_alive()
        bodiless = self._is_head or status in (204, 304)
        if self._chunked:
            self._length = -1
        exchange.head(status, headers, 0 if bodiless else self._length)
        if self._is_head:
            self._complete = True

    def on_body(self, data: bytes) -> None:
        if self._complete:
            self._extra = True
        elif self._exchange is not None:
            self._exchange.data(data)

    def on_message_complete(self) -> None:
        if self._headed:
            self._complete = True
        else:
            self._begin_again()

    def _begin_again(self) -> None:
        """Behind an interim answer (100, 103)."""
        count = self._count
        self._begin()
        self._count = count


class Pool:
    """Connections by target.

    `idle_limit` of each target are kept, for `idle_timeout` seconds; `limit` are open to one target at a time (0: as many
    as it takes), and who finds none waits for one.
    """

    def __init__(
        self, *, idle_timeout: float = 90.0, idle_limit: int = 64, limit: int = 0, dial_timeout: float = 30.0
    ) -> None:
        self._idle_timeout = idle_timeout
        self._idle_limit = idle_limit
        self._limit = limit
        self._dial_timeout = dial_timeout
        self._idle: dict[Target, list[Connection]] = {}
        self._open: dict[Target, set[Connection | object]] = {}
        self._waiting: dict[Target, deque[asyncio.Future[None]]] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def take(self, target: Target) -> Connection | None:
        """A kept connection, the one used last; None without."""
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
            if isinstance(error, OSError | TimeoutError):
                raise UpstreamError(dial_problem(error, target)) from error
            raise
        return connection

    async def _place(self, target: Target) -> Connection | None:
        """None when one more may be opened."""
        while self._limit and len(self._open.get(target, ())) >= self._limit:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            waiting = self._waiting.setdefault(target, deque())
            waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._next(target)
                elif turn in waiting:
                    waiting.remove(turn)
                raise
            connection = self.take(target)
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
        kept = self._idle.setdefault(connection.target, [])
        if len(kept) >= self._idle_limit and not self._waiting.get(connection.target):
            connection.abort()
            return
        connection.idle_since = monotonic()
        kept.append(connection)
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
        """End every connection; exchanges under way hear nothing, their tasks are their owner's to end."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for opened in tuple(self._open.values()):
            for connection in tuple(opened):
                if isinstance(connection, Connection):
                    connection.abort()
        self._idle.clear()

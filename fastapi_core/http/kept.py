"""An HTTP/1.1 client that keeps its connections: one question at a time on each, the whole answer in memory.

For servers that are asked again and again (admission webhooks). A broken or unasked-for byte ends a connection; a question
is repeated only when a connection that had been waiting turns out to be closed before a byte of the answer came.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import field
from time import monotonic
from typing import NamedTuple, cast

import httptools

from fastapi_core.errors import go_quote
from fastapi_core.http.client import HEAD_LIMIT, Target, UpstreamError, dial_problem
from fastapi_core.records import dataclass

#: Connections kept for one address, and for how many seconds.
KEPT, IDLE_SECONDS = 25, 90.0
_MALFORMED = "net/http: HTTP/1.x transport connection broken: malformed HTTP response"


class Whole(NamedTuple):
    """A whole answer."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes


class BodyError(UpstreamError):
    """The answer began and did not come to its end."""


class _GoneError(Exception):
    """A connection that had been kept is gone; nothing of an answer came."""


class _Connection(asyncio.Protocol):
    """One connection and the answer it is waiting for."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.transport: asyncio.Transport | None = None
        self.answer: asyncio.Future[Whole] | None = None
        self.since = 0.0
        self.open = False
        self.reused = False
        self._reset()

    def _reset(self) -> None:
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._headers: dict[bytes, bytes] = {}
        self._parts: list[bytes] = []
        self._size = 0
        self._head = 0
        self._begun = False
        self._in_body = False
        self._reusable = False

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # those of uvloop are no subclasses
        self.open = True

    def data_received(self, data: bytes) -> None:
        if self.answer is None:
            self.abort()
            return
        if not self._begun and not data.startswith(b"HTTP/"[: len(data)]):
            first = data.split(b"\n", 1)[0].rstrip(b"\r").decode("utf-8", "replace")
            self._fail(UpstreamError(f"{_MALFORMED} {go_quote(first[:200])}"))
            return
        self._begun = True
        if not self._in_body:
            self._head += len(data)
            if self._head > HEAD_LIMIT:
                self._fail(UpstreamError(f"net/http: server response headers exceeded {HEAD_LIMIT} bytes; aborted"))
                return
        parser = self._parser
        if parser is None:
            return
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(UpstreamError("net/http: HTTP/1.x transport connection broken: unexpected upgrade"))
        except httptools.HttpParserError as error:
            if self._in_body:
                self._fail(BodyError(str(error)))
            else:
                self._fail(UpstreamError(f"net/http: HTTP/1.x transport connection broken: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False
        if self.answer is None:
            return
        if self._in_body:
            if b"content-length" not in self._headers and b"transfer-encoding" not in self._headers:
                self.on_message_complete()  # an answer that ends with its connection
            else:
                self._fail(BodyError("unexpected EOF"))
        elif self._begun:
            self._fail(UpstreamError("unexpected EOF"))
        elif self.reused:
            self._fail(_GoneError())
        else:
            self._fail(UpstreamError("EOF" if exc is None else f"read: {_words(exc)}"))

    # httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        if self._parser is not None and self._parser.get_status_code() >= 200:
            self._in_body = True

    def on_body(self, body: bytes) -> None:
        if self.answer is None:
            return
        self._parts.append(body)
        self._size += len(body)
        if self._size > self.limit:
            self._fail(BodyError(f"the answer is longer than {self.limit} bytes"))

    def on_message_complete(self) -> None:
        parser = self._parser
        if parser is None:
            return
        status = parser.get_status_code()
        if status < 200:
            self._headers = {}
            return
        answer, self.answer = self.answer, None
        self._reusable = self.open and parser.should_keep_alive()
        if answer is not None and not answer.done():
            answer.set_result(Whole(status, self._headers, b"".join(self._parts)))
        self._forget()

    def _forget(self) -> None:
        """Let go of the answer, and of the parser, which holds on to us."""
        self._parser = None
        self._parts = []
        self._headers = {}

    # Asking

    async def ask(self, request: bytes) -> Whole:
        """Send a request and wait for the answer. Whoever stops waiting ends the connection."""
        assert self.transport is not None
        if not self.open:
            raise _GoneError
        self._reset()
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        try:
            return await self.answer
        except BaseException:
            self.abort()
            raise

    @property
    def reusable(self) -> bool:
        return self._reusable and self.open

    def abort(self) -> None:
        self.open = False
        self.answer = None
        self._forget()
        if self.transport is not None:
            self.transport.abort()

    def _fail(self, error: Exception) -> None:
        answer, self.answer = self.answer, None
        if answer is not None and not answer.done():
            answer.set_exception(error)
        self.abort()


def _words(error: Exception) -> str:
    return (error.strerror or "").lower() or str(error) if isinstance(error, OSError) else str(error)


@dataclass(slots=True)
class Kept:
    """Connections to many servers. `limit`: the longest body of an answer in bytes."""

    limit: int
    _idle: dict[Target, list[_Connection]] = field(default_factory=dict)

    async def ask(self, target: Target, request: bytes) -> Whole:
        """One request, head and body, and its whole answer. Raises UpstreamError; the caller sets the time limit."""
        while True:
            connection = self._take(target)
            if connection is None:
                connection = await self._open(target)
            try:
                answer = await connection.ask(request)
            except _GoneError:
                continue
            self._give(target, connection)
            return answer

    def close(self) -> None:
        """End every connection that waits for the next question."""
        for waiting in self._idle.values():
            for connection in waiting:
                connection.abort()
        self._idle.clear()

    def _take(self, target: Target) -> _Connection | None:
        waiting = self._idle.get(target)
        oldest = monotonic() - IDLE_SECONDS
        while waiting:
            connection = waiting.pop()
            if connection.open and connection.since > oldest:
                connection.reused = True
                return connection
            connection.abort()
        return None

    def _give(self, target: Target, connection: _Connection) -> None:
        if not connection.reusable:
            connection.abort()
            return
        connection.since = monotonic()
        waiting = self._idle.get(target)
        if waiting is None:
            self._tidy()
            waiting = self._idle[target] = []
        if len(waiting) >= KEPT:
            connection.abort()
        else:
            waiting.append(connection)

    def _tidy(self) -> None:
        """Whenever a new address turns up: forget those that have not been asked for long."""
        oldest = monotonic() - IDLE_SECONDS
        for target, waiting in list(self._idle.items()):
            for connection in [c for c in waiting if not c.open or c.since <= oldest]:
                waiting.remove(connection)
                connection.abort()
            if not waiting:
                del self._idle[target]

    async def _open(self, target: Target) -> _Connection:
        loop = asyncio.get_running_loop()
        name = (target.name or target.host) if target.tls is not None else None
        try:
            _, connection = await loop.create_connection(
                lambda: _Connection(self.limit), target.host, target.port, ssl=target.tls, server_hostname=name
            )
        except (OSError, ssl.SSLError) as error:
            raise UpstreamError(dial_problem(error, target)) from error
        return connection

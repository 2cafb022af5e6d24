"""One connection to another server: requests one after the other, each answer told by callbacks.

An `Exchange` is called from within the parser, so an answer costs neither a task nor a copy; whoever takes it decides
about its pieces at once and pauses the connection when they cannot go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from fastapi_core.errors import go_quote
from fastapi_core.http.client import BodyError, Target, UpstreamError
from fastapi_core.http.exchange import Header

HEAD_LIMIT = 1 << 20
"""Bytes in front of a body."""
FIELD_LIMIT = 1000
"""Header lines of one answer."""
_BROKEN = "net/http: HTTP/1.x transport connection broken: "


class Exchange(Protocol):
    """Who takes an answer. After `end` or `failed` nothing comes any more; none of them may raise."""

    def head(self, status: int, headers: list[Header], length: int) -> None:
        """`length` of the body: 0 for none, -1 when unknown. Behind a 101 the data are those of the other protocol."""

    def data(self, data: bytes) -> None: ...
    def settle(self) -> None:
        """What has come so far is told, and the answer is not complete."""

    def end(self, trailers: Sequence[Header]) -> None: ...
    def failed(self, error: UpstreamError, *, untouched: bool) -> None:
        """`untouched`: on a connection kept from before that ended without a byte, so the server saw no request."""

    def congested(self) -> None:
        """The other side does not take the request fast enough; `relieved` follows."""

    def relieved(self) -> None: ...


class Keeper(Protocol):
    """Whose a connection is."""

    buffer: memoryview
    """What all of its connections read into: each read is dealt with before the next."""

    def give_back(self, connection: Connection) -> None:
        """It can be used again."""

    def lost(self, connection: Connection) -> None:
        """It has ended."""


class Connection(asyncio.BufferedProtocol):
    """Between `start` and the end of the answer it is an exchange's, otherwise its keeper's."""

    def __init__(self, keeper: Keeper, target: Target) -> None:
        self.target = target
        self.idle_since = 0.0
        self._keeper = keeper
        self._buffer = keeper.buffer
        self._exchange: Exchange | None = None
        self._transport: asyncio.Transport | None = None
        self._parser = HttpResponseParser(self)
        self._used = self._extra = self._is_head = self._upgrade = self._tunnel = False
        self._received = 0
        self._begin()

    def _begin(self) -> None:
        self._headers: list[Header] = []
        self._headed = self._complete = self._keep = self._chunked = False
        self._length = -1

    # To whoever sends

    def start(self, exchange: Exchange, data: bytes, *, head: bool = False, upgrade: bool = False) -> None:
        """Send a request (its head and as much of its body as there is) for `exchange` to get the answer. `upgrade`: it asks
        for another protocol."""
        assert self._transport is not None
        self._exchange = exchange
        self._is_head = head
        self._upgrade = upgrade
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

    def close(self) -> None:
        """End it when nothing is under way any more."""
        if self._transport is not None:
            self._transport.close()

    def fail(self, error: UpstreamError) -> None:
        """End it at once; the exchange hears why."""
        exchange = self._exchange
        self.abort()
        if exchange is not None:
            exchange.failed(error, untouched=False)

    @property
    def usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing() and not self._extra

    # From the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._keeper.lost(self)
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        if self._headed and not self._chunked and self._length < 0 and (exc is None or not self._tunnel):
            exchange.end(())
            return
        error = self._cut_off(exc)
        error.__cause__ = exc or EOFError()
        exchange.failed(error, untouched=self._used and not self._received)

    def _cut_off(self, exc: Exception | None) -> UpstreamError:
        if self._headed:
            return BodyError("unexpected EOF")
        if self._received:
            return UpstreamError("unexpected EOF")
        if exc is None:
            return UpstreamError("EOF")
        words = (exc.strerror or "").lower() if isinstance(exc, OSError) else ""
        return UpstreamError(f"read: {words or exc}")

    def pause_writing(self) -> None:
        if self._exchange is not None:
            self._exchange.congested()

    def resume_writing(self) -> None:
        if self._exchange is not None:
            self._exchange.relieved()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(self._buffer[:nbytes])

    def data_received(self, data: bytes | memoryview) -> None:
        exchange = self._exchange
        if exchange is None:
            # Nobody asked for it: whoever came next would get another one's answer.
            self.abort()
            return
        if self._tunnel:
            exchange.data(bytes(data))
            return
        if not self._received and bytes(data[:5]) != b"HTTP/"[: len(data)]:
            line = bytes(data).split(b"\n", 1)[0].rstrip(b"\r").decode("utf-8", "replace")
            self.fail(UpstreamError(f"{_BROKEN}malformed HTTP response {go_quote(line[:200])}"))
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as switch:
            self._switched(exchange, bytes(data[switch.args[0] :]))
        except HttpParserError as error:
            if not self._complete:
                text = str(error.__context__ or error)
                self.fail(BodyError(text) if self._headed else UpstreamError(_BROKEN + text))
                return
            self._extra = True
        if self._complete:
            self._finished(exchange)
        elif not self._headed and self._received > HEAD_LIMIT:
            self.fail(UpstreamError(f"net/http: server response headers exceeded {HEAD_LIMIT} bytes; aborted"))
        elif self._exchange is exchange:
            exchange.settle()

    def _switched(self, exchange: Exchange, rest: bytes) -> None:
        """From here on the bytes are those of the other protocol."""
        self._tunnel = True
        if rest:
            exchange.data(rest)

    def _finished(self, exchange: Exchange) -> None:
        if self._exchange is not exchange:
            return
        self._exchange = None
        self._used = True
        if self._is_head:
            # The parser waits for a body that does not come.
            self._parser = HttpResponseParser(self)
        if self._keep and not self._extra:
            self._keeper.give_back(self)
        elif self._transport is not None:
            self._transport.close()
        exchange.end(self._headers)

    # From the parser

    def on_message_begin(self) -> None:
        if self._complete:
            raise ValueError("more than was asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        headers = self._headers
        headers.append((name.lower(), value.strip(b" \t")))
        if len(headers) > FIELD_LIMIT:
            raise ValueError("too many header lines")

    def on_headers_complete(self) -> None:
        exchange = self._exchange
        if exchange is None:
            raise ValueError("nobody waits for it")
        status = self._parser.get_status_code()
        if status < 100:
            raise ValueError(f'malformed HTTP status code "{status:03}"')
        if status < 200 and status != 101:
            return
        headers, self._headers = self._headers, []
        for name, value in headers:
            if name == b"content-length":
                self._length = int(value)
            elif name == b"transfer-encoding":
                if value.lower() != b"chunked" or self._chunked:
                    raise ValueError(f"unsupported transfer encoding {value!r}")
                self._chunked = True
        if status == 101:
            if not self._upgrade or not self._parser.should_upgrade():
                raise ValueError("a switch of protocols that was not asked for")
            self._length, self._chunked = -1, False
        elif self._chunked:
            self._length = -1
        self._headed = True
        self._keep = self._parser.should_keep_alive()
        exchange.head(status, headers, 0 if self._is_head or status in (204, 304) else self._length)
        self._complete = self._is_head

    def on_body(self, data: bytes) -> None:
        if not self._headed:
            raise ValueError("a body of an answer that has not begun")
        if self._complete:
            self._extra = True
        elif self._exchange is not None:
            self._exchange.data(data)

    def on_message_complete(self) -> None:
        if not self._headed:
            # Behind an interim answer (100, 103), whose lines count like the others.
            self._headers = []
        elif not self._upgrade or self._parser.get_status_code() != 101:
            self._complete = True

"""One request passed on: its body upwards, the answer downwards, both as they come and no faster than they are taken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fastapi_core.aggregation.headers import relayed
from fastapi_core.http.exchange import Header, Response, Stream, StreamWriter

if TYPE_CHECKING:
    from fastapi_core._ext.http1 import BodyReader
    from fastapi_core.http.client import UpstreamError
    from fastapi_core.http.exchange import Answer
    from fastapi_core.http.pool import Connection

SMALL = 1 << 16
"""Answers of a known length up to this are passed on whole."""
AHEAD = 1 << 18
"""Bytes taken from the backend before anybody is there to write them to."""
REDIRECTED = "the backend attempted to redirect this request, which is not permitted"
_TEXT: Header = (b"Content-Type", b"text/plain; charset=utf-8")

Failed = Callable[["Relay", "UpstreamError", bool], None]


class Relay:
    """The exchange (`http.pool.Exchange`) behind one request; `answer` is what the client gets.

    `failed` is called when there is no answer to be had on this connection, and resolves `answer` or tries again.
    """

    __slots__ = (
        "_chunked",
        "_connection",
        "_deadline",
        "_ended",
        "_endless",
        "_failed",
        "_headers",
        "_held",
        "_length",
        "_pieces",
        "_reader",
        "_reject",
        "_status",
        "_timer",
        "_trailers",
        "_whole",
        "_writer",
        "answer",
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        failed: Failed,
        *,
        reject: bool,
        deadline: float,
        reader: BodyReader | None = None,
        chunked: bool = False,
        endless: set[Relay] | None = None,
    ) -> None:
        self.answer: asyncio.Future[Answer] = loop.create_future()
        self.answer.add_done_callback(self._resolved)
        self._failed = failed
        self._reject = reject
        self._deadline = deadline
        self._reader = reader
        self._chunked = chunked
        self._endless = endless
        self._connection: Connection | None = None
        self._writer: StreamWriter | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._pieces: list[bytes] = []
        self._trailers: Sequence[Header] = ()
        self._headers: list[Header] = []
        self._status = self._length = self._held = 0
        self._ended = self._whole = False

    @property
    def answered(self) -> bool:
        """The head of an answer has come."""
        return self._status != 0

    def send(self, connection: Connection, data: bytes, *, head: bool) -> None:
        """Put the request on a connection."""
        self._connection = connection
        connection.start(self, data, head=head)
        if self._reader is not None:
            self._reader.open(self._upward, self._uploaded)

    def _resolved(self, answer: asyncio.Future[Answer]) -> None:
        if answer.cancelled():
            self.release()

    def release(self) -> None:
        """Nobody wants the rest."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    # Request body

    def _upward(self, data: bytes) -> None:
        if self._connection is not None:
            self._connection.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def _uploaded(self) -> None:
        self._reader = None
        if self._chunked and self._connection is not None:
            self._connection.write(b"0\r\n\r\n")

    def congested(self) -> None:
        if self._reader is not None:
            self._reader.pause()

    def relieved(self) -> None:
        if self._reader is not None:
            self._reader.resume()

    # Answer

    def head(self, status: int, headers: list[Header], length: int) -> None:
        self._status = status
        self._length = length
        self._headers = headers
        self._whole = 0 <= length <= SMALL

    def data(self, data: bytes) -> None:
        writer = self._writer
        if writer is None:
            self._pieces.append(data)
            self._held += len(data)
            if self._held > AHEAD and self._connection is not None:
                self._connection.pause()
            return
        writer.write(data)
        if writer.congested and self._connection is not None:
            self._connection.pause()

    def settle(self) -> None:
        if self._status and not self._whole and not self.answer.done():
            if self._refused():
                self.release()
            else:
                self.answer.set_result(Stream(self._status, relayed(self._headers), self._start))

    def end(self, trailers: Sequence[Header]) -> None:
        connection, self._connection = self._connection, None
        if self._reader is not None and connection is not None:
            # The backend has answered before it had the whole request; what it did not read is in the way.
            connection.abort()
        if self._writer is not None:
            self._finish(self._writer, trailers)
        elif self.answer.done():
            self._ended = True
            self._trailers = trailers
        elif not self._refused():
            body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            headers = relayed(self._headers)
            if self._length == 0:
                # Told for an answer to HEAD, where it is the length of a body that is not there.
                headers += [header for header in self._headers if header[0] == b"content-length"]
            if trailers:
                found = Response(self._status, headers, body)
                self._pieces = [body]
                self._ended, self._trailers = True, trailers
                self.answer.set_result(Stream(found.status, headers, self._start))
            else:
                self.answer.set_result(Response(self._status, headers, body))

    def failed(self, error: UpstreamError, *, untouched: bool) -> None:
        self._connection = None
        if self._writer is not None:
            self.cut()
        elif self.answer.done():
            self._failed_later()
        else:
            self._failed(self, error, untouched and self._reader is None)

    def _failed_later(self) -> None:
        # The head is promised already: the body breaks off as soon as somebody writes it.
        self._ended, self._trailers, self._status = True, (), -1

    def _refused(self) -> bool:
        """Answer 502 instead of a redirect, when that is wanted."""
        if not self._reject or not 300 <= self._status <= 399:
            return False
        if not any(name == b"location" and value for name, value in self._headers):
            return False
        self.answer.set_result(Response(502, [_TEXT], REDIRECTED.encode()))
        return True

    # The client's side of a stream

    def _start(self, writer: StreamWriter) -> None:
        for piece in self._pieces:
            writer.write(piece)
        self._pieces = []
        if self._ended:
            if self._status < 0:
                writer.abort()
            else:
                writer.finish(self._trailers)
            return
        self._writer = writer
        if self._endless is not None:
            self._endless.add(self)
        writer.on_drain(self._drained)
        writer.on_close(self._closed)
        if self._connection is not None and self._held > AHEAD:
            self._connection.resume()
        if self._deadline and self._writer is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(self._deadline, self.cut)

    def _drained(self) -> None:
        if self._connection is not None:
            self._connection.resume()

    def _closed(self) -> None:
        self._writer = None
        if self._endless is not None:
            self._endless.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self.release()

    def cut(self) -> None:
        """Break the answer off."""
        if self._writer is not None:
            self._writer.abort()

    def _finish(self, writer: StreamWriter, trailers: Sequence[Header]) -> None:
        self._writer = None
        if not writer.closed:
            writer.finish(trailers)

"""An answer of another server on its way to a client, as it comes and no faster than the client takes it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastapi_core.http.exchange import Header, Stream, StreamWriter

if TYPE_CHECKING:
    from fastapi_core.http.client import UpstreamError
    from fastapi_core.http.connection import Connection

AHEAD = 1 << 18
"""Bytes taken before anybody is there to write them to."""
_COMING, _ENDED, _BROKEN = range(3)


class Relay:
    """An `Exchange`; behind a 101 the connection is a tunnel. What comes before `stream` was asked for is held.

    `deadline` (of the loop's clock; 0: none) is when a stream under way is cut off; `streams` those under way.
    """

    __slots__ = (
        "_connection", "_deadline", "_held", "_pieces", "_state", "_streams", "_timer", "_trailers", "_writer",
        "headers", "length", "status",
    )  # fmt: skip

    def __init__(self, *, deadline: float = 0.0, streams: set[Relay] | None = None) -> None:
        self.status = 0
        """0 until the head has come."""
        self.headers: list[Header] = []
        self.length = -1
        self._deadline = deadline
        self._streams = streams
        self._connection: Connection | None = None
        self._writer: StreamWriter | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._pieces: list[bytes] = []
        self._trailers: Sequence[Header] = ()
        self._held = 0
        self._state = _COMING

    def release(self) -> None:
        """Nobody wants the rest."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    def cut(self) -> None:
        """Break the answer off."""
        if self._writer is not None:
            self._writer.abort()

    # From the other server

    def head(self, status: int, headers: list[Header], length: int) -> None:
        self.status = status
        self.headers = headers
        self.length = length

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
        """Held, or written."""

    def end(self, trailers: Sequence[Header]) -> None:
        self._connection = None
        self._state, self._trailers = _ENDED, trailers
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.finish(trailers)

    def failed(self, error: UpstreamError, *, untouched: bool) -> None:
        # Where the head is promised already, the body breaks off as soon as somebody writes it.
        self._connection = None
        self._state = _BROKEN
        self.cut()

    def congested(self) -> None:
        if self._writer is not None:
            self._writer.pause_reading()

    def relieved(self) -> None:
        if self._writer is not None:
            self._writer.resume_reading()

    # To the client

    @property
    def finished(self) -> bool:
        """Nothing more comes."""
        return self._state != _COMING

    @property
    def broken(self) -> bool:
        """It ended early."""
        return self._state == _BROKEN

    @property
    def held(self) -> bytes:
        """What has come of the body and is not written."""
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    def stream(self, headers: list[Header]) -> Stream:
        """The answer as it comes."""
        return Stream(self.status, headers, self._start)

    def _start(self, writer: StreamWriter) -> None:
        if self.status == 101 and self._connection is not None:
            writer.on_data(self._connection.write)
        for piece in self._pieces:
            writer.write(piece)
        self._pieces = []
        if self._state == _BROKEN:
            writer.abort()
            return
        if self._state == _ENDED:
            writer.finish(self._trailers)
            return
        self._writer = writer
        if self._streams is not None:
            self._streams.add(self)
        writer.on_drain(self._drained)
        writer.on_close(self._closed)
        if self._held > AHEAD:
            self._drained()
        if self._deadline and self._writer is not None:
            self._timer = asyncio.get_running_loop().call_at(self._deadline, self.cut)

    def _drained(self) -> None:
        if self._connection is not None:
            self._connection.resume()

    def _closed(self) -> None:
        self._writer = None
        if self._streams is not None:
            self._streams.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self.release()

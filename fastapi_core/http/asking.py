"""One question to another server and its whole answer in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import NamedTuple

from fastapi_core.http.client import BodyError, Target, UpstreamError
from fastapi_core.http.connection import Connection
from fastapi_core.http.exchange import Header
from fastapi_core.http.pool import Pool


class Whole(NamedTuple):
    """A whole answer; names of headers are lower-cased."""

    status: int
    headers: Sequence[Header]
    body: bytes

    def header(self, name: bytes) -> bytes:
        """The first value of a header; empty without it."""
        return next((value for key, value in self.headers if key == name), b"")


async def ask(
    pool: Pool, target: Target, request: bytes, *, limit: int, repeat: bool = True, fresh: float = 0.0
) -> Whole:
    """The answer to `request`, its head and body. Raises UpstreamError; the caller sets the time limit.

    An answer whose body is longer than `limit` bytes is an error. The question is sent again when a kept connection turns
    out to be closed before a byte of the answer came, unless it may not be asked twice (`repeat`), or the connection was used
    less than `fresh` seconds ago.
    """
    while True:
        connection = pool.take(target)
        rested = connection is not None and monotonic() - connection.idle_since >= fresh
        if connection is None:
            connection = await pool.connect(target)
        answer = _Answer(connection, limit)
        connection.start(answer, request)
        try:
            return await answer.done
        except UpstreamError:
            if not answer.untouched or not repeat or not rested:
                raise
        except BaseException:
            connection.abort()
            raise


class _Answer:
    """An `Exchange`."""

    def __init__(self, connection: Connection, limit: int) -> None:
        self.done: asyncio.Future[Whole] = asyncio.get_running_loop().create_future()
        self.untouched = False
        self._connection = connection
        self._limit = limit
        self._status = self._size = 0
        self._headers: list[Header] = []
        self._pieces: list[bytes] = []

    def head(self, status: int, headers: list[Header], length: int) -> None:
        self._status, self._headers = status, headers

    def data(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= self._limit:
            self._pieces.append(data)

    def settle(self) -> None:
        if self._size > self._limit:
            self._connection.fail(BodyError(f"the answer is longer than {self._limit} bytes"))

    def end(self, trailers: Sequence[Header]) -> None:
        if self.done.done():
            return
        if self._size > self._limit:
            self.failed(BodyError(f"the answer is longer than {self._limit} bytes"), untouched=False)
        else:
            self.done.set_result(Whole(self._status, self._headers, b"".join(self._pieces)))

    def failed(self, error: UpstreamError, *, untouched: bool) -> None:
        self.untouched = untouched
        self._pieces.clear()  # the traceback of the error keeps us for a while
        if not self.done.done():
            self.done.set_exception(error)

    def congested(self) -> None:
        """The whole question is on its way."""

    def relieved(self) -> None:
        """The whole question is on its way."""

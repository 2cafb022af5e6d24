"""The lines of an answer that goes on and on: an exchange on one side, an iterator on the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from fastapi_core.http.client import BodyError, UpstreamError

if TYPE_CHECKING:
    from fastapi_core.http.connection import Connection
    from fastapi_core.http.exchange import Header

LONGEST = 8 << 20
"""Bytes of one line."""
_AHEAD = 1 << 20
"""Bytes that may wait to be taken before the other side has to wait."""


class Lines:
    """An `Exchange`; `status` is there with the first line. An answer that is an error is one line, however it is laid out."""

    def __init__(self, connection: Connection) -> None:
        self.status = 0
        self._connection = connection
        self._held = bytearray()
        self._news = asyncio.Event()
        self._error: UpstreamError | None = None
        self._over = False

    async def all(self) -> AsyncIterator[bytes]:
        """Lines as they come. Raises UpstreamError when the answer breaks off."""
        while True:
            over, error = self._over, self._error
            for line in self._taken():
                yield line
            if error is not None:
                raise error
            if over:
                return
            await self._news.wait()
            self._news.clear()

    def _taken(self) -> list[bytes]:
        """What is complete by now."""
        if self.status >= 400:
            end = len(self._held) if self._over else 0
        else:
            end = len(self._held) if self._over else self._held.rfind(b"\n") + 1
        found = bytes(self._held[:end])
        del self._held[:end]
        self._connection.resume()
        if self.status >= 400:
            return [found] if self._over else []
        return [line for line in found.split(b"\n") if line]

    # http.connection.Exchange

    def head(self, status: int, headers: list[Header], length: int) -> None:
        self.status = status

    def data(self, data: bytes) -> None:
        self._held += data

    def settle(self) -> None:
        if len(self._held) > LONGEST:
            self._connection.fail(BodyError("an event of the watch does not end"))
        elif len(self._held) > _AHEAD and b"\n" in self._held:
            self._connection.pause()
        self._news.set()

    def end(self, trailers: Sequence[Header]) -> None:
        self._over = True
        self._news.set()

    def failed(self, error: UpstreamError, *, untouched: bool) -> None:
        self._error = error
        self._news.set()

    def congested(self) -> None:
        """The whole question is on its way."""

    def relieved(self) -> None:
        """The whole question is on its way."""

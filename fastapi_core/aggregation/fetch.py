"""Documents fetched from backends in the background: one GET, its whole answer, within limits of time and size."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastapi_core.aggregation.headers import Identities
from fastapi_core.http.client import Target, UpstreamError
from fastapi_core.http.exchange import Header
from fastapi_core.records import dataclass
from fastapi_core.request.context import User

if TYPE_CHECKING:
    from fastapi_core.http.pool import Connection, Pool

AGGREGATOR = User("system:kube-aggregator", groups=("system:masters",))
OPENAPI = User("system:aggregator")
BODY_LIMIT = 32 << 20


@dataclass(frozen=True, slots=True)
class Fetched:
    status: int
    headers: Sequence[Header]
    body: bytes

    def header(self, name: bytes) -> bytes:
        return next((value for key, value in self.headers if key == name), b"")


class _Collected:
    """The exchange of one fetch."""

    def __init__(self, connection: Connection, *, limit: int) -> None:
        self.done: asyncio.Future[Fetched] = asyncio.get_running_loop().create_future()
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
            self._connection.abort()
            self.failed(UpstreamError(f"the answer is longer than {self._limit} bytes"), untouched=False)

    def end(self, trailers: Sequence[Header]) -> None:
        if self._size > self._limit:
            self.settle()
        elif not self.done.done():
            self.done.set_result(Fetched(self._status, self._headers, b"".join(self._pieces)))

    def failed(self, error: UpstreamError, *, untouched: bool) -> None:
        self.untouched = untouched
        if not self.done.done():
            self.done.set_exception(error)

    def congested(self) -> None:
        """A GET has nothing to send."""

    def relieved(self) -> None:
        """A GET has nothing to send."""


class Fetcher:
    """GETs in the name of this server."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._identities = Identities()

    async def get(
        self,
        target: Target,
        path: str,
        user: User,
        headers: Sequence[Header] = (),
        *,
        timeout: float,
        limit: int = BODY_LIMIT,
    ) -> Fetched:
        """The answer, whatever its status; redirects are not followed. UpstreamError or TimeoutError without one."""
        async with asyncio.timeout(timeout):
            connection = self._pool.take(target)
            if connection is not None:
                exchange = await self._ask(connection, path, user, headers, limit)
                if not exchange.untouched:
                    return exchange.done.result()
            exchange = await self._ask(await self._pool.connect(target), path, user, headers, limit)
            return exchange.done.result()

    async def _ask(
        self, connection: Connection, path: str, user: User, headers: Sequence[Header], limit: int
    ) -> _Collected:
        exchange = _Collected(connection, limit=limit)
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        request = b"GET %b HTTP/1.1\r\nhost: %b\r\nuser-agent: fastapi-core\r\n%b%b\r\n" % (
            path.encode("utf-8", "surrogateescape"), connection.target.authority.encode(), self._identities.lines(user),
            lines,
        )  # fmt: skip
        connection.start(exchange, request)
        try:
            await asyncio.wait([exchange.done])
        except asyncio.CancelledError:
            connection.abort()
            raise
        if exchange.untouched:
            exchange.done.exception()
        return exchange

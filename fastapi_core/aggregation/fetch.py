"""Documents fetched from backends in the background: one GET, its whole answer, within limits of time and size."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastapi_core.aggregation.headers import Identities
from fastapi_core.http.asking import Whole, ask
from fastapi_core.http.client import Target
from fastapi_core.http.exchange import Header
from fastapi_core.request.context import User

if TYPE_CHECKING:
    from fastapi_core.http.pool import Pool

AGGREGATOR = User("system:kube-aggregator", groups=("system:masters",))
OPENAPI = User("system:aggregator")
BODY_LIMIT = 32 << 20


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
    ) -> Whole:
        """The answer, whatever its status; redirects are not followed. UpstreamError or TimeoutError without one."""
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        request = b"GET %b HTTP/1.1\r\nhost: %b\r\nuser-agent: fastapi-core\r\n%b%b\r\n" % (
            path.encode("utf-8", "surrogateescape"), target.authority.encode(), self._identities.lines(user), lines,
        )  # fmt: skip
        async with asyncio.timeout(timeout):
            return await ask(self._pool, target, request, limit=limit)

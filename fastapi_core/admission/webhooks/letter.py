"""A question to a webhook on its way: asked again when the webhook says so, sent on when it has moved."""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from fastapi_core.http.asking import Whole, ask
from fastapi_core.http.client import BodyError, Target
from fastapi_core.records import dataclass

if TYPE_CHECKING:
    from fastapi_core.http.pool import Pool

#: How often a webhook may ask for patience, and send a question on.
RETRIES = 10
MOVES = 10
#: A connection that has been idle for shorter was not closed for being idle: the webhook has seen the question, and is not
#: asked twice.
_FRESH = 1.0
_GZIP = 16 + zlib.MAX_WBITS


@dataclass(slots=True)
class Letter:
    """`authority` and `path` (with the query) are where it has been sent last; `fields` are complete header lines."""

    authority: str
    path: str
    fields: bytes
    body: bytes
    method: str = "POST"

    @property
    def url(self) -> str:
        return f"https://{self.authority}{self.path}"

    async def answer(self, pool: Pool, target: Target, limit: int) -> Whole:
        """The answer, its body decoded. Raises UpstreamError; the caller sets the time limit."""
        retries = moves = 0
        while True:
            whole = await ask(pool, target, self._request(), limit=limit, fresh=_FRESH)
            wait = whole.header(b"retry-after") if whole.status == 429 or whole.status >= 500 else b""
            if wait.isdigit() and retries < RETRIES:
                retries += 1
                await asyncio.sleep(int(wait))
                continue
            place = whole.header(b"location").decode("latin-1") if whole.status in (301, 302, 303, 307, 308) else ""
            if not place or moves == MOVES:
                return _plain(whole, limit)
            moves += 1
            target = self._moved(whole.status, place, target)

    def _request(self) -> bytes:
        length = f"Content-Length: {len(self.body)}\r\n" if self.method == "POST" else ""
        first = f"{self.method} {self.path} HTTP/1.1\r\nHost: {self.authority}\r\n{length}"
        return b"%b%bAccept-Encoding: gzip\r\n\r\n%b" % (first.encode(), self.fields, self.body)

    def _moved(self, status: int, place: str, target: Target) -> Target:
        """Address it to where the answer says. Only 307 and 308 keep the question a POST."""
        before, parts = self.authority, urlsplit(urljoin(self.url, place))
        self.authority = parts.netloc
        self.path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if status < 307:
            self.method, self.body = "GET", b""
        if parts.netloc == before:
            return target
        return Target(parts.hostname or "", parts.port or 443, target.tls)


def _plain(whole: Whole, limit: int) -> Whole:
    if whole.header(b"content-encoding").lower() != b"gzip" or not whole.body:
        return whole
    unpacked = zlib.decompressobj(_GZIP)
    try:
        body = unpacked.decompress(whole.body, limit)
    except zlib.error as error:
        raise BodyError("gzip: invalid header" if "header" in str(error) else "unexpected EOF") from None
    if unpacked.unconsumed_tail:
        raise BodyError(f"the answer is longer than {limit} bytes")
    return Whole(whole.status, whole.headers, body)

"""One request on its way to a backend: to the first place that can be reached, its body upwards, the answer downwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from fastapi_core.aggregation import sniff
from fastapi_core.aggregation.headers import asked, forwarded_lines, relayed
from fastapi_core.http.client import UpstreamError
from fastapi_core.http.exchange import Answer, Header, Response
from fastapi_core.http.relay import Relay
from fastapi_core.obs import logs
from fastapi_core.request.status import Overtime

if TYPE_CHECKING:
    from fastapi_core._ext.http1 import BodyReader
    from fastapi_core.aggregation.proxy import Front, Proxied
    from fastapi_core.http.client import Target
    from fastapi_core.http.connection import Connection
    from fastapi_core.request.context import RequestContext

log = logs.get("aggregation")

SMALL = 1 << 16
"""Answers of a known length up to this are passed on whole."""
REDIRECTED = "the backend attempted to redirect this request, which is not permitted"
DISCOVERY_SECONDS = 5.0
"""How long the document of a group version is waited for."""
_TEXT: Header = (b"Content-Type", b"text/plain; charset=utf-8")
#: Methods that are sent again when a connection ends before its answer has a head. A write may have been carried out all the same,
#: and its client would be told of a conflict with itself.
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS"})
_BODIES = frozenset({"POST", "PUT", "PATCH"})
_TYPES = (b"content-type", b"content-encoding")


class Passage(Relay):
    """`answer` is what the client gets; cancelled, it ends the request."""

    __slots__ = (
        "_again", "_chunked", "_ctx", "_dial", "_front", "_identity", "_lines", "_overdue", "_proxied", "_reader",
        "_targets", "_whole", "answer",
    )  # fmt: skip

    def __init__(
        self, proxied: Proxied, front: Front, ctx: RequestContext, targets: list[Target], identity: bytes
    ) -> None:
        if ctx.long_running:
            super().__init__(streams=front.endless)
        else:
            super().__init__(deadline=ctx.deadline)
        self._proxied = proxied
        self._front = front
        self._ctx = ctx
        self._targets = targets
        self._identity = identity
        self._lines = b""
        self._again = self._whole = self._chunked = False
        self._dial: asyncio.Task[None] | None = None
        self._overdue: asyncio.TimerHandle | None = None
        self._reader: BodyReader | None = ctx.request.reader
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def begin(self) -> Awaitable[Answer]:
        """Send it; the future of the answer."""
        self.answer.add_done_callback(self._done)
        self._limit()
        connection = self._front.pool.take(self._targets[0])
        if connection is None:
            self._connect()
        else:
            self._send(connection)
        return self.answer

    def _limit(self) -> None:
        """Discovery documents have a short time, other answers that of the flag."""
        path = self._ctx.request.path
        if path.count("/") == 3 and self._ctx.request.method == "GET":
            self._overdue = asyncio.get_running_loop().call_later(DISCOVERY_SECONDS, self._too_slow)
        elif self._front.timeout and not self._ctx.long_running:
            self._overdue = asyncio.get_running_loop().call_later(self._front.timeout, self._too_late)

    def _too_slow(self) -> None:
        if not self.answer.done():
            self.answer.set_result(self._proxied.unreachable("context deadline exceeded"))
            self.release()

    def _too_late(self) -> None:
        if not self.answer.done():
            self.answer.set_exception(Overtime())
            self.release()

    def _done(self, answer: asyncio.Future[Answer]) -> None:
        if answer.cancelled():
            self.release()
        if self._overdue is not None:
            self._overdue.cancel()
        if self._dial is not None:
            self._dial.cancel()
        if self.status:
            # Whatever the backend has answered, it lives.
            self._proxied.mend()

    # To the backend

    def _connect(self) -> None:
        self._dial = asyncio.get_running_loop().create_task(self._dialled())

    async def _dialled(self) -> None:
        """Whatever happens, there is an answer."""
        try:
            reason = await self._sent()
        except Exception as error:
            log.error("A request could not be passed on", error, path=self._ctx.request.path)
            reason = f"{type(error).__name__}: {error}"
            self.release()
        if reason:
            self._dial = None
            if not self.answer.done():
                self.answer.set_result(self._proxied.unreachable(reason))

    async def _sent(self) -> str:
        """Connect to the first target that can be reached: until then none of them has seen the request. Answers why none
        can."""
        reason = "there is no endpoint"
        for target in self._targets:
            try:
                connection = await self._front.pool.connect(target)
            except UpstreamError as error:
                reason = str(error)
                continue
            self._dial = None
            if self.answer.done():
                self._front.pool.give_back(connection)
            else:
                self._send(connection)
            return ""
        return reason

    def _send(self, connection: Connection) -> None:
        request = self._ctx.request
        self._connection = connection
        connection.start(self, self._request(connection.target), head=request.method == "HEAD")
        if self._reader is not None:
            self._chunked = request.header(b"content-length") is None
            self._reader.open(self._upward, self._uploaded)

    def _request(self, target: Target) -> bytes:
        request = self._ctx.request
        if not self._lines:
            lines = forwarded_lines(self._ctx, self._front.dropped)
            if request.header(b"te") is not None:
                lines += b"te: trailers\r\n"
            if request.reader is not None:
                length = request.header(b"content-length")
                lines += b"transfer-encoding: chunked\r\n" if length is None else b"content-length: %b\r\n" % length
            elif request.body or request.method in _BODIES:
                lines += b"content-length: %d\r\n" % len(request.body)
            self._lines = lines
        authority = target.authority.encode()
        first = f"{request.method} {asked(request)} HTTP/1.1\r\n".encode("utf-8", "surrogateescape")
        return b"%bhost: %b\r\nx-forwarded-host: %b\r\n%b%b\r\n%b" % (
            first, authority, authority, self._lines, self._identity, request.body,
        )  # fmt: skip

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

    # From the backend

    def head(self, status: int, headers: list[Header], length: int) -> None:
        super().head(status, headers, length)
        self._whole = 0 <= length <= SMALL

    def settle(self) -> None:
        if self.status and not self._whole and not self.answer.done():
            if self._refused():
                self.release()
            else:
                self.answer.set_result(self.stream(self._typed(relayed(self.headers))))

    def end(self, trailers: Sequence[Header]) -> None:
        if self._reader is not None and self._connection is not None:
            # The backend has answered before it had the whole request; what it did not read is in the way.
            self._connection.abort()
        super().end(trailers)
        if not self.answer.done() and not self._refused():
            headers = self._typed(relayed(self.headers))
            if self.length == 0:
                # Told for an answer to HEAD, where it is the length of a body that is not there.
                headers += [header for header in self.headers if header[0] == b"content-length"]
            whole = not trailers
            self.answer.set_result(Response(self.status, headers, self.held) if whole else self.stream(headers))

    def _typed(self, headers: list[Header]) -> list[Header]:
        """With the content type that the backend has left to be guessed; nobody waits for bytes to guess from."""
        if self.length <= 0 or not self._held or any(name in _TYPES for name, _ in headers):
            return headers
        return [*headers, (b"content-type", sniff.content_type(self.held))]

    def failed(self, error: UpstreamError, *, untouched: bool) -> None:
        if self.status and not self.answer.done() and not self._refused():
            self.answer.set_result(self.stream(relayed(self.headers)))
        if self.answer.done():
            super().failed(error, untouched=untouched)
            return
        self._connection = None
        if not self._again and self._reader is None and self._may_repeat(error, untouched):
            self._again = True
            self._connect()
            return
        self.answer.set_result(self._proxied.unreachable(str(error)))

    def _may_repeat(self, error: UpstreamError, untouched: bool) -> bool:
        """A backend that goes takes its kept connections along, and what it has read and not begun to answer."""
        if self._ctx.request.method not in _REPEATABLE:
            return False
        return untouched or (not self.status and isinstance(error.__cause__, OSError | EOFError))

    def _refused(self) -> bool:
        """Answer 502 instead of a redirect, when that is wanted."""
        if not 300 <= self.status <= 399 or not self._front.reject_redirects:
            return False
        if not any(name == b"location" and value for name, value in self.headers):
            return False
        self.answer.set_result(Response(502, [_TEXT], REDIRECTED.encode()))
        return True

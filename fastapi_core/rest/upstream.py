"""Requests passed on to another server: an answer relayed as it comes, an upgrade as a tunnel of bytes.

`Upstreams` is everything that is open at the moment, so that a shutdown can end it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence

from fastapi_core.http.asking import Whole, ask
from fastapi_core.http.client import Target, UpstreamError, request_head
from fastapi_core.http.connection import Connection
from fastapi_core.http.exchange import Answer, Header, Response
from fastapi_core.http.pool import Pool
from fastapi_core.http.relay import Relay
from fastapi_core.records import dataclass

#: Answers up to this length are passed on whole.
SMALL = 1 << 16
#: Header fields that are about one connection, not about the message.
HOP = frozenset(
    (
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
        b"trailer", b"transfer-encoding", b"upgrade",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KubeletAccess:
    """How kubelets are reached; paths empty when not given."""

    authority: str = ""
    certificate: str = ""
    key: str = ""
    address_types: tuple[str, ...] = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
    timeout: float = 5.0


class Upstreams:
    def __init__(self, kubelet: KubeletAccess | None = None, dial_timeout: float = 30.0) -> None:
        self.kubelet = kubelet or KubeletAccess()
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._streams: set[Relay] = set()
        self._pool = Pool(idle_limit=0, dial_timeout=dial_timeout)

    def kubelet_tls(self, *, insecure: bool = False) -> ssl.SSLContext:
        """TLS as a kubelet wants it; without an authority (or told so) its certificate is not checked."""
        checked = bool(self.kubelet.authority) and not insecure
        name = "kubelet" if checked else "kubelet-unchecked"
        context = self._contexts.get(name)
        if context is None:
            context = ssl.create_default_context(cafile=self.kubelet.authority) if checked else unchecked()
            if self.kubelet.certificate:
                context.load_cert_chain(self.kubelet.certificate, self.kubelet.key)
            self._contexts[name] = context
        return context

    def proxy_tls(self) -> ssl.SSLContext:
        """TLS to whatever a pod or service runs: nobody vouches for its certificate."""
        if "proxy" not in self._contexts:
            self._contexts["proxy"] = unchecked()
        return self._contexts["proxy"]

    async def fetch(
        self,
        target: Target,
        method: str,
        path: str,
        headers: list[Header],
        body: bytes = b"",
        *,
        upgrade: bool = False,
    ) -> Reply:
        """One request, on a connection of its own; raises UpstreamError. `upgrade`: the headers ask for another protocol."""
        reply = Reply(method, self._streams)
        connection = await self._pool.connect(target)
        return await reply.send(connection, request_head(method, path, headers) + body, upgrade=upgrade)

    async def ask(self, target: Target, path: str, headers: list[Header], *, limit: int) -> Whole:
        """A whole document. Raises UpstreamError."""
        return await ask(self._pool, target, request_head("GET", path, headers), limit=limit)

    async def shutdown(self) -> None:
        """End the streams and tunnels; requests that wait for their answer have the time of all others."""
        for stream in tuple(self._streams):
            stream.cut()


class Reply(Relay):
    """An answer whose head has come. It is taken by one of `whole`, `answer` and `stream`."""

    __slots__ = ("_end", "_headed", "_method", "_wanted")

    def __init__(self, method: str, streams: set[Relay]) -> None:
        super().__init__(streams=streams)
        self._method = method
        self._headed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._end: asyncio.Future[None] | None = None
        self._wanted = 0

    @property
    def bodiless(self) -> bool:
        return self._method == "HEAD" or self.status in (204, 304)

    def header(self, name: bytes) -> bytes:
        """The first value of a header; empty without it."""
        return next((value for key, value in self.headers if key == name), b"")

    async def send(self, connection: Connection, request: bytes, *, upgrade: bool) -> Reply:
        """Put the request on a connection and wait for the head of the answer. Raises UpstreamError."""
        self._connection = connection
        connection.start(self, request, head=self._method == "HEAD", upgrade=upgrade)
        try:
            await self._headed
        except asyncio.CancelledError:
            self.release()
            raise
        return self

    async def whole(self, limit: int) -> bytes:
        """The body, cut after `limit` bytes. Raises UpstreamError when it ends early."""
        if not self.finished and self._held < limit:
            self._wanted = limit
            self._end = asyncio.get_running_loop().create_future()
            try:
                await self._end
            except asyncio.CancelledError:
                self.release()
                raise
        self.release()
        if self.broken and self._held < limit:
            raise UpstreamError("unexpected EOF")
        return self.held[:limit]

    async def answer(self, headers: list[Header]) -> Answer:
        """The answer for the client: whole when it is small, else as it comes."""
        if self.bodiless or 0 <= self.length <= SMALL:
            return Response(self.status, headers, await self.whole(SMALL))
        return self.stream(headers)

    def head(self, status: int, headers: list[Header], length: int) -> None:
        super().head(status, headers, length)
        if status == 101:
            self._settled()

    def settle(self) -> None:
        if self.status:
            self._settled()

    def end(self, trailers: Sequence[Header]) -> None:
        super().end(trailers)
        self._settled()

    def failed(self, error: UpstreamError, *, untouched: bool) -> None:
        super().failed(error, untouched=untouched)
        if not self._headed.done():
            self._headed.set_exception(error)
        self._settled()

    def _settled(self) -> None:
        if not self._headed.done():
            self._headed.set_result(None)
        if self._end is not None and not self._end.done() and (self.finished or self._held >= self._wanted):
            self._end.set_result(None)


def unchecked() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def passed_on(headers: list[Header], drop: Callable[[bytes], bool] = HOP.__contains__) -> list[Header]:
    """The fields of a message that go on to the next hop."""
    named = {
        token.strip().lower() for name, value in headers if name.lower() == b"connection" for token in value.split(b",")
    }
    return [(name, value) for name, value in headers if not drop(name.lower()) and name.lower() not in named]

"""Requests passed on to another server: an answer relayed as it comes, an upgrade as a tunnel of bytes.

`Upstreams` is everything that is open at the moment, so that a shutdown can end it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import field

from fastapi_core.http.client import Reply, Target, UpstreamError, send
from fastapi_core.http.exchange import Answer, Header, Response, Stream, StreamWriter
from fastapi_core.obs import logs
from fastapi_core.records import dataclass

log = logs.get("proxy")

#: Bytes a client may leave unread before the other side has to wait, and how often that is looked at.
HIGH_WATER, PATIENCE = 1 << 20, 0.02
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


@dataclass(slots=True)
class Upstreams:
    kubelet: KubeletAccess = field(default_factory=KubeletAccess)
    dial_timeout: float = 30.0
    _contexts: dict[str, ssl.SSLContext] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _writers: set[StreamWriter] = field(default_factory=set)

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

    async def fetch(self, target: Target, method: str, path: str, headers: list[Header], body: bytes = b"") -> Reply:
        """One request; raises UpstreamError."""
        return await send(target, method, path, headers, body, timeout=self.dial_timeout)

    def relay(self, reply: Reply, headers: list[Header]) -> Answer | Awaitable[Answer]:
        """The answer for the client: whole when it is small, else as it comes. Takes the reply over."""
        if reply.bodiless or 0 <= reply.length <= SMALL:
            return self._whole(reply, headers)
        return Stream(reply.status, headers, lambda writer: self._pump(self._copy(reply, writer), reply, writer))

    async def _whole(self, reply: Reply, headers: list[Header]) -> Answer:
        try:
            return Response(reply.status, headers, await reply.whole(SMALL))
        finally:
            reply.close()

    async def _copy(self, reply: Reply, writer: StreamWriter) -> None:
        async for piece in reply.body():
            writer.write(piece)
            await _drained(writer)
            if writer.closed:
                return
        writer.finish()

    def tunnel(self, reply: Reply, headers: list[Header]) -> Stream:
        """The answer to an upgrade the other side has agreed to."""

        def start(writer: StreamWriter) -> None:
            if not writer.closed:
                writer.on_data(lambda data: self._upward(reply, writer, data))
            self._pump(self._downward(reply, writer), reply, writer)

        return Stream(101, headers, start)

    def _upward(self, reply: Reply, writer: StreamWriter, data: bytes) -> None:
        """What the client sends; it waits while the other side does not read."""
        reply.writer.write(data)
        if reply.writer.transport.get_write_buffer_size() > HIGH_WATER:
            writer.pause_reading()
            self._keep(self._resume(reply, writer))

    async def _resume(self, reply: Reply, writer: StreamWriter) -> None:
        try:
            await reply.writer.drain()
        except OSError:
            return
        writer.resume_reading()

    async def _downward(self, reply: Reply, writer: StreamWriter) -> None:
        while data := await reply.reader.read(SMALL):
            writer.write(data)
            await _drained(writer)
            if writer.closed:
                return
        writer.finish()

    def _pump(self, work: Awaitable[None], reply: Reply, writer: StreamWriter) -> None:
        """Run `work` until it ends or the client goes; either way both connections end."""

        async def run() -> None:
            try:
                await work
            except (OSError, UpstreamError, ssl.SSLError) as error:
                log.debug("a proxied connection broke", error=str(error))
            finally:
                self._writers.discard(writer)
                reply.close()
                if not writer.closed:
                    writer.abort()

        task = self._keep(run())
        self._writers.add(writer)
        writer.on_close(lambda: _end(task, reply))

    def _keep(self, work: Awaitable[None]) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def shutdown(self) -> None:
        """End everything that is open."""
        for writer in tuple(self._writers):
            writer.abort()
        for task in tuple(self._tasks):
            task.cancel()


def _end(task: asyncio.Task[None], reply: Reply) -> None:
    reply.close()
    if task is not asyncio.current_task():
        task.cancel()


async def _drained(writer: StreamWriter) -> None:
    """Wait while the client is behind. Writers do not call back, so this looks again after a while."""
    while writer.buffered > HIGH_WATER and not writer.closed:
        await asyncio.sleep(PATIENCE)


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

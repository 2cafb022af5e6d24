"""HTTP server: listening sockets, the registry of connections, the sweep over their deadlines, graceful drain."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from fastapi_core._ext import http1
from fastapi_core.http.exchange import Response, Stream

if TYPE_CHECKING:
    from fastapi_core.http.exchange import Handler

KEEP_ALIVE = 180
"""Seconds of silence before TCP asks whether the peer is still there, and between two such questions."""


GOODBYE = 1.0
"""Seconds that connections without a request get to close in order when the server stops."""


class HTTPServer:
    """One listening address and its connections.

    `start` binds and serves; then `stop_accepting`, `drain`, `close`, in that order, all on one loop.
    """

    def __init__(self) -> None:
        self._registry: http1.Registry | None = None
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._interval = 1.0
        self.host = ""
        self.port = 0
        """Port that is bound (the free one found when `start` was given 0)."""

    async def start(
        self,
        handler: Handler,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        ssl_context: ssl.SSLContext | None = None,
        limits: http1.Limits | None = None,
        max_connections: int = 0,
        max_stream_backlog: int = 0,
        backlog: int = 1024,
        too_large: Handler | None = None,
        share_port: bool = False,
    ) -> None:
        """Listen on `host`:`port` and serve with `handler`; raises OSError when the address cannot be bound.

        `max_connections` 0 means no limit, as does `max_stream_backlog`: the bytes all streams together may owe clients
        that do not read, beyond which those that owe most are cut. `too_large` answers requests whose body is over the limit (it sees the
        request with an empty body); without it they get a plain 413. `share_port`: several processes may listen there.
        """
        loop = asyncio.get_running_loop()
        limits = limits or http1.Limits()
        registry = http1.Registry(
            loop,
            Response,
            Stream,
            max_connections=max_connections,
            too_large=too_large,
            max_backlog=max_stream_backlog,
        )
        listener = _listen(host, port, share_port)

        def protocol() -> http1.HTTP1Protocol:
            return http1.HTTP1Protocol(handler, registry, limits)

        try:
            self._server = await loop.create_server(
                protocol,
                sock=listener,
                ssl=ssl_context,
                backlog=backlog,
                ssl_handshake_timeout=limits.header_timeout if ssl_context else None,
            )
        except BaseException:
            listener.close()
            raise
        self._registry = registry
        self.host, self.port = listener.getsockname()[:2]
        self._interval = min(1.0, max(0.01, _shortest(limits) / 4))
        self._sweep()

    def stop_accepting(self) -> None:
        """Close the listening socket; connections stay."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def drain(self, timeout: float) -> bool:
        """Let the requests in flight finish, each answer from now on being its connection's last, then close the rest.

        Returns whether all requests ended within `timeout` seconds; what is left is for `close` to cut.
        """
        registry = self._registry
        if registry is None:
            return True
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        registry.drain()
        if not await _within(registry.when_idle, timeout):
            return False
        # Every answer is out: a peer that does not say goodbye (TLS close_notify) is not waited for.
        end = min(end, loop.time() + GOODBYE)
        while registry.connections:
            registry.close_idle()
            if loop.time() >= end:
                break
            await asyncio.sleep(0.01)
        return True

    async def close(self) -> None:
        """Stop at once: no listening socket, no connection is left afterwards."""
        self.stop_accepting()
        registry = self._registry
        if registry is None:
            return
        registry.abort()
        while registry.connections:
            await asyncio.sleep(0)
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    def statistics(self) -> dict[str, int]:
        """Counters since the start: accepted, refused, requests, malformed, timeouts, cut (streams that owed too much); now:
        connections, active, backlog (bytes that streams owe)."""
        return {} if self._registry is None else self._registry.statistics()

    def _sweep(self) -> None:
        registry = self._registry
        if registry is not None:
            registry.sweep(http1.monotonic())
            self._sweeper = registry.loop.call_later(self._interval, self._sweep)


def _shortest(limits: http1.Limits) -> float:
    return min(limits.header_timeout, limits.body_timeout, limits.idle_timeout, limits.write_timeout, 2 * limits.linger)


async def _within(subscribe: Callable[[Callable[[], None]], None], timeout: float) -> bool:
    """Whether the callback given to `subscribe` came within `timeout` seconds."""
    came = asyncio.Event()
    subscribe(came.set)
    try:
        await asyncio.wait_for(came.wait(), timeout)
    except TimeoutError:
        return False
    return True


def _listen(host: str, port: int, share_port: bool = False) -> socket.socket:
    """A bound socket with the options its connections inherit."""
    # As bytes, where it can be, it does not pass (and load) the codec of international names.
    name = host.encode() if host.isascii() else host
    family, kind, protocol, _, address = socket.getaddrinfo(
        name or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if share_port:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if host in ("", "::") else 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name in ("TCP_KEEPIDLE", "TCP_KEEPALIVE", "TCP_KEEPINTVL"):  # macOS calls the first by the second name
            if hasattr(socket, name):
                listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), KEEP_ALIVE)
        listener.setblocking(False)
        listener.bind(address)
    except BaseException:
        listener.close()
        raise
    return listener

"""The socket of a server: `http`'s server and TLS files, driven by the lifecycle."""

from __future__ import annotations

from fastapi_core._ext.http1 import Limits
from fastapi_core.http.exchange import Handler
from fastapi_core.http.server import HTTPServer
from fastapi_core.http.tls import ServerTLS
from fastapi_core.server.config import ServerConfig


class HTTPListener:
    """One HTTP server with its TLS files watched (`server.generic.Listener`)."""

    def __init__(self, config: ServerConfig, handler: Handler, too_large: Handler) -> None:
        self._config = config
        self._handler = handler
        self._too_large = too_large
        self._http = HTTPServer()
        self._tls: ServerTLS | None = None
        config.metrics.registry.collector(self._collect)

    @property
    def port(self) -> int:
        return self._http.port

    async def start(self) -> None:
        config = self._config
        if config.tls is not None:
            self._tls = ServerTLS(config.tls, config.files)
        await self._http.start(
            self._handler,
            host=config.bind_address,
            port=config.port,
            ssl_context=self._tls.context if self._tls is not None else None,
            limits=Limits(body=config.body_limit),
            max_connections=config.max_connections,
            max_stream_backlog=config.max_stream_backlog,
            too_large=self._too_large,
            share_port=config.share_port,
        )

    def stop_accepting(self) -> None:
        self._http.stop_accepting()

    async def drain(self, timeout: float) -> bool:
        return await self._http.drain(timeout)

    def _collect(self) -> None:
        statistics, metrics = self._http.statistics(), self._config.metrics
        metrics.stream_backlog.labels().set(statistics.get("backlog", 0))
        metrics.streams_cut.labels().set(statistics.get("cut", 0))

    async def close(self) -> None:
        await self._http.close()
        if self._tls is not None:
            self._tls.close()

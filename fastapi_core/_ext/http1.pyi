"""HTTP/1.1 server protocol on httptools."""

import asyncio
from collections.abc import Callable
from typing import Any, final

from fastapi_core.http.exchange import Handler

@final
class Connection:
    """One client connection, alive as long as its socket."""

    peer: str
    """Remote address as `host:port`, empty for a mock transport."""
    tls: bool
    peer_certificate: bytes | None
    """DER of the client certificate the handshake verified, or None."""
    memo: dict[Any, Any]
    """Per-connection memory of layers above (authenticated user of the client certificate)."""

@final
class Request:
    method: str
    target: str
    """Request target exactly as sent (origin form), percent-encoding untouched."""
    path: str
    """`target` up to the first `?`."""
    query: str
    """`target` after the first `?`, empty when there is none."""
    headers: list[tuple[bytes, bytes]]
    """In order of arrival; names lower-cased."""
    body: bytes
    """Whole body, at most `Limits.body` bytes; dechunked."""
    connection: Connection
    received: float
    """`time.time()` at the end of the request head."""
    def header(self, name: bytes) -> bytes | None:
        """First value of a header (lower-case name) or None."""
    def header_all(self, name: bytes) -> list[bytes]: ...
    def on_disconnect(self, callback: Callable[[], None]) -> None: ...

@final
class Limits:
    """Limits of one connection; sizes in bytes, times in seconds."""

    def __init__(
        self,
        *,
        header: int = 1 << 20,
        body: int = 3 << 20,
        header_timeout: float = 32.0,
        body_timeout: float = 60.0,
        idle_timeout: float = 90.0,
        write_buffer: int = 1 << 20,
    ) -> None: ...

@final
class HTTP1Protocol(asyncio.Protocol):
    """One connection: bytes in, requests to `handler`, answers out in order (keep-alive and pipelining)."""

    def __init__(self, handler: Handler, server: Any, limits: Limits) -> None: ...

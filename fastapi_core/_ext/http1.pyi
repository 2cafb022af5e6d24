"""HTTP/1.1 server protocol on httptools."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, final

from fastapi_core.http.exchange import Handler

class RefusedError(ValueError):
    """The bytes are not a request this server takes; answered with `status`, then the connection ends."""

    status: int
    text: str
    def __init__(self, status: int, text: str = "") -> None: ...

@final
class Connection:
    """One client connection, alive as long as its socket."""

    peer: str
    """Remote address as `host:port`, empty for a mock transport."""
    tls: bool
    @property
    def peer_certificate(self) -> bytes | None:
        """DER of the client certificate the handshake verified, or None."""
    @property
    def peer_chain(self) -> tuple[bytes, ...]:
        """DER of the chain the handshake verified, the client's certificate first, the trust anchor last; empty without."""
    @property
    def memo(self) -> dict[Any, Any]:
        """Per-connection memory of layers above (authenticated user of the client certificate)."""

@final
class Request:
    method: str
    """Any token, as sent; HTTP knows more methods than Kubernetes does."""
    target: str
    """Request target exactly as sent, percent-encoding untouched; bytes that are not UTF-8 as surrogate escapes."""
    path: str
    """Path of `target`, before the first `?`; begins with `/`. Its percent escapes are whole."""
    query: str
    """`target` after the first `?`, empty when there is none."""
    headers: list[tuple[bytes, bytes]]
    """In order of arrival; names lower-cased."""
    body: bytes
    """Whole body, at most `Limits.body` bytes; dechunked."""
    connection: Connection
    received: float
    """`time.time()` at the end of the request head."""
    upgrade: bool
    """The client offers another protocol in an Upgrade header; an ordinary answer declines it."""
    minor: int
    """Minor version of HTTP/1.x."""
    reader: BodyReader | None
    """The body that is over the limit, on requests given to `too_large`; their `body` is empty."""
    def header(self, name: bytes) -> bytes | None:
        """First value of a header (lower-case name) or None."""
    def header_all(self, name: bytes) -> list[bytes]: ...
    def on_disconnect(self, callback: Callable[[], None]) -> None:
        """Call once when the client goes away before its answer is complete."""

@final
class BodyReader:
    """The body of a request that is too large to be kept. Who does not open it leaves it to be dropped."""

    def open(self, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Take the body from now on: pieces from the loop's next turn on, then the end. RuntimeError when it is too late.
        The end of the connection is not told: it cancels whoever answers the request."""
    def pause(self) -> None: ...
    def resume(self) -> None: ...

@final
class Limits:
    """Limits of one connection; sizes in bytes, times in seconds."""

    header: int
    body: int
    header_timeout: float
    body_timeout: float
    idle_timeout: float
    write_timeout: float
    linger: float
    write_buffer: int
    def __init__(
        self,
        *,
        header: int = 1 << 20,
        body: int = 3 << 20,
        header_timeout: float = 32.0,
        body_timeout: float = 60.0,
        idle_timeout: float = 90.0,
        write_timeout: float = 60.0,
        linger: float = 1.0,
        write_buffer: int = 1 << 18,
    ) -> None:
        """`header_timeout` runs from the first byte of a head (answered 408) and from the connection to it;
        `write_timeout`: a client that takes nothing of its answer for so long is cut (streams are their producer's
        to cut); `linger`: how long what a refused client still sends is dropped before the connection ends;
        `write_buffer`: bytes of an answer buffered before the rest waits for the client."""

@final
class Registry:
    """What the connections of one server share."""

    loop: asyncio.AbstractEventLoop
    max_connections: int
    active: int
    """Requests whose answer is not complete."""
    draining: bool
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        response_type: type,
        stream_type: type,
        *,
        max_connections: int = 0,
        too_large: Handler | None = None,
        max_backlog: int = 0,
    ) -> None:
        """`max_backlog`: bytes that all streams together may owe their clients, 0 for no limit; beyond it those that
        owe most are cut."""
    @property
    def connections(self) -> int: ...
    def statistics(self) -> dict[str, int]: ...
    def sweep(self, now: float) -> None:
        """Act on every deadline before `now` (`monotonic()`)."""
    def drain(self) -> None:
        """From now on each answer ends its connection."""
    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call back once, as soon as no request is being answered."""
    def close_idle(self) -> None:
        """Close the connections with no request under way; what they have been given is still sent."""
    def abort(self) -> None:
        """Cut every connection."""

@final
class ChunkWriter:
    """The `StreamWriter` of an answer under way."""

    @property
    def buffered(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    @property
    def congested(self) -> bool: ...
    def on_drain(self, callback: Callable[[], None]) -> None: ...
    def write(self, data: bytes) -> None: ...
    def write_framed(self, frames: bytes) -> None: ...
    def write_later(self, pieces: Iterable[bytes]) -> None: ...
    @property
    def cut(self) -> bool: ...
    def finish(self, trailers: Sequence[tuple[bytes, bytes]] = ()) -> None: ...
    def abort(self) -> None: ...
    def on_close(self, callback: Callable[[], None]) -> None: ...
    def on_data(self, callback: Callable[[bytes], None]) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...

@final
class HTTP1Protocol(asyncio.BaseProtocol):
    """One connection: bytes in, requests to `handler`, answers out in order (keep-alive and pipelining).

    An `asyncio.Protocol` and `asyncio.BufferedProtocol` by its methods.
    """

    def __init__(self, handler: Handler, server: Registry, limits: Limits) -> None: ...
    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def get_buffer(self, hint: int) -> memoryview: ...
    def buffer_updated(self, count: int) -> None: ...
    def eof_received(self) -> bool: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...

@final
class RequestParser:
    """Incremental parser of one connection's bytes; one message at a time, the rest waits."""

    def __init__(self, limits: Limits) -> None: ...
    def feed(self, data: bytes) -> None: ...
    def next(self) -> Request | None:
        """The next whole request; None when more bytes are needed.

        Raises RefusedError (413 for a body over the limit)."""
    @property
    def keep_alive(self) -> bool:
        """Whether the connection can go on after the last request."""
    # Callbacks of httptools.
    def on_header(self, name: bytes, value: bytes) -> None: ...
    def on_headers_complete(self) -> None: ...
    def on_body(self, data: bytes) -> None: ...
    def on_message_complete(self) -> None: ...

def live() -> dict[str, int]:
    """How many requests, connections and protocols exist now, by class name."""

def monotonic() -> float:
    """The clock of deadlines and of `Registry.sweep`, in seconds."""

def http_date(second: int) -> bytes:
    """A Unix time as a Date header has it."""

def compressed(body: bytes | Sequence[bytes]) -> bytes:
    """gzip at level 1."""

def unframed(frames: bytes) -> bytes:
    """The data of whole chunks; raises ValueError when they are not."""

"""What the HTTP server and the layers above it exchange: requests, responses and streams.

Nothing here knows Kubernetes. A handler is a plain function: it returns its answer, or an awaitable when it has to
wait; only then is a task made, and the task is cancelled when the client goes away.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fastapi_core._ext.http1 import Request

Header = tuple[bytes, bytes]


class Response:
    """A complete answer. The server adds Date, Content-Length, Connection and, when allowed, gzip.

    A `Connection: close` among `headers` ends the connection after the answer; the handler's Content-Length counts
    only for an empty body that answers HEAD.
    `body` may be a list of chunks: large ones are written as they are, small ones joined to pieces of some 64 KiB.
    `compress` allows gzip above 128 KiB when the client accepts it.
    """

    __slots__ = ("body", "compress", "headers", "status")

    def __init__(
        self,
        status: int,
        headers: list[Header],
        body: bytes | Sequence[bytes] = b"",
        *,
        compress: bool = False,
    ) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.compress = compress


class StreamWriter(Protocol):
    """The writing end of a chunked response, given to `Stream.start` once the head is queued."""

    @property
    def buffered(self) -> int:
        """Bytes accepted but not yet taken by the kernel; the producer decides when a client is too slow.

        Pieces wait as they were given, so many streams that are behind share one copy of a frame.
        """

    @property
    def closed(self) -> bool:
        """True once the client is gone or the stream has been ended."""

    @property
    def cut(self) -> bool:
        """True when the server ended the stream because all streams together owed too much."""

    @property
    def congested(self) -> bool:
        """True while the client is so far behind that a producer should wait for `on_drain`."""

    def on_drain(self, callback: Callable[[], None]) -> None:
        """Call whenever a client that was behind has caught up."""

    def write(self, data: bytes) -> None:
        """Send one chunk (the writer frames it)."""

    def write_framed(self, frames: bytes) -> None:
        """Send bytes that already carry chunk framing (`hex CRLF data CRLF`), shared between many clients."""

    def write_later(self, pieces: Iterable[bytes]) -> None:
        """Send framed bytes that are made one after the other as the client takes them; what is written later waits.

        A client that takes nothing of them for `Limits.write_timeout` is cut.
        """

    def finish(self, trailers: Sequence[Header] = ()) -> None:
        """End the stream normally; the connection stays usable. Trailers get lost where there are no chunks."""

    def abort(self) -> None:
        """Cut the connection: the client sees an incomplete body."""

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call once when the client goes away or the stream ends, whichever is first."""

    def on_data(self, callback: Callable[[bytes], None]) -> None:
        """Behind a head of status 101: call with what the client sends, from what it has sent already on."""

    def pause_reading(self) -> None:
        """Behind a 101: take no more from the client for now."""

    def resume_reading(self) -> None:
        """Go on taking."""


class Stream:
    """An answer of unknown length: head first, then whatever `start` writes, now or later.

    `start` is called exactly once, also when nobody listens (a HEAD request, a client that has gone): the writer is
    closed then, and `on_close` calls back at once. What it writes before it returns goes out with the head.

    With status 101 the connection is the stream's from then on: bytes go both ways as they are (`on_data`), the
    handler's Connection header stands, and the end of the stream ends the connection.
    """

    __slots__ = ("headers", "start", "status")

    def __init__(self, status: int, headers: list[Header], start: Callable[[StreamWriter], None]) -> None:
        self.status = status
        self.headers = headers
        self.start = start


Answer = Response | Stream
Handler = Callable[["Request"], "Answer | Awaitable[Answer]"]

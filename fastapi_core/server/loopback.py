"""The server as its own client: requests through the whole chain, in this process, as `system:apiserver`.

They are authorised, limited, measured and audited like everybody's, but need no socket and no credential: whoever holds
the `Loopback` may do what `system:masters` may. For hooks and controllers.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from fastapi_core.errors import APIError
from fastapi_core.http.exchange import Answer, Header, Response, Stream

if TYPE_CHECKING:
    from fastapi_core._ext.http1 import Request

Tree = dict[str, Any]
USER_AGENT = b"fastapi-core/loopback"
_JSON: Header = (b"content-type", b"application/json")


class LoopbackConnection:
    """Stands where a client's connection stands; it proves nothing."""

    __slots__ = ("memo",)
    peer = ""
    tls = True
    peer_certificate: bytes | None = None

    def __init__(self) -> None:
        self.memo: dict[Any, Any] = {}


class LoopbackRequest:
    """The attributes of `_ext.http1.Request`."""

    __slots__ = ("body", "connection", "headers", "method", "path", "query", "received", "target")
    upgrade = False
    minor = 1

    def __init__(
        self, method: str, target: str, headers: Sequence[Header], body: bytes, connection: LoopbackConnection
    ) -> None:
        self.method = method
        self.target = target
        self.path, _, self.query = target.partition("?")
        self.headers = [(b"user-agent", USER_AGENT), *headers]
        self.body = body
        self.connection = connection
        self.received = time.time()

    def header(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.headers if key == name), None)

    def header_all(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.headers if key == name]

    def on_disconnect(self, callback: Callable[[], None]) -> None:
        """It never goes away; a task that waits for an answer is cancelled with its caller."""


class Loopback:
    """Requests to the server itself.

    `serve` is the chain that takes them (`filters.chain.Chains.loopback`).
    """

    def __init__(self, serve: Callable[[Request], Answer | Awaitable[Answer]]) -> None:
        self._serve = serve
        self._connection = LoopbackConnection()

    async def send(
        self, method: str, target: str, body: bytes = b"", headers: Sequence[Header] = ()
    ) -> Response | Stream:
        """The answer as the chain gives it. `target` is a path with its query, encoded; header names in lower case."""
        request = LoopbackRequest(method, target, headers, body, self._connection)
        answer = self._serve(cast("Request", request))
        return answer if isinstance(answer, Response | Stream) else await answer

    async def call(
        self, method: str, target: str, tree: Mapping[str, Any] | None = None, headers: Sequence[Header] = ()
    ) -> Tree:
        """Send an object (as JSON unless `headers` say otherwise), answer the one that comes back.

        Raises APIError with what the server answered, whatever the failure was.
        """
        import orjson

        body = b"" if tree is None else orjson.dumps(tree)
        answer = await self.send(method, target, body, headers or ((_JSON,) if body else ()))
        if isinstance(answer, Stream):
            raise APIError("", f"{method} {target} answered a stream", code=500)
        data = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
        found = orjson.loads(data) if data[:1] in (b"{", b"[") else {}
        if answer.status >= 300:
            raise _failure(answer.status, found, data)
        return cast("Tree", found)

    async def watch(self, target: str) -> AsyncGenerator[Tree, None]:
        """The events of a watch (`?watch=1` in `target`) until the server ends it. APIError when it does not start."""
        import orjson

        answer = await self.send("GET", target)
        if isinstance(answer, Response):
            data = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
            raise _failure(answer.status, orjson.loads(data) if data[:1] == b"{" else {}, data)
        writer = Pipe()
        try:
            answer.start(writer)
            rest = b""
            async for piece in writer:
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    yield orjson.loads(line)
        finally:
            writer.abort()


def _failure(status: int, found: Any, data: bytes) -> APIError:
    """The Status that came back; a plain text is its own message."""
    if isinstance(found, dict) and found.get("kind") == "Status":
        return APIError(found.get("reason", ""), found.get("message", ""), code=status, details=found.get("details"))
    return APIError("", data.decode("utf-8", "replace").strip(), code=status)


class Pipe:
    """The writing end of a stream whose reader is in this process (`http.exchange.StreamWriter`)."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._on_close: list[Callable[[], None]] = []
        self._wake: Callable[[], None] | None = None
        self.closed = False

    @property
    def buffered(self) -> int:
        return sum(map(len, self._pieces))

    def write(self, data: bytes) -> None:
        if not self.closed and data:
            self._pieces.append(data)
            self._notify()

    def write_framed(self, frames: bytes) -> None:
        from fastapi_core._ext.http1 import unframed

        self.write(unframed(frames))

    def write_later(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            self.write_framed(piece)

    congested = False
    cut = False

    def on_drain(self, callback: Callable[[], None]) -> None:
        """Nothing is ever behind: the reader takes what there is."""

    def finish(self, trailers: Sequence[Header] = ()) -> None:
        """No more will be written; what was written can still be read."""
        if not self.closed:
            self.closed = True
            callbacks, self._on_close = self._on_close, []
            for callback in callbacks:
                callback()
            self._notify()

    abort = finish

    def on_close(self, callback: Callable[[], None]) -> None:
        if self.closed:
            callback()
        else:
            self._on_close.append(callback)

    def on_data(self, callback: Callable[[bytes], None]) -> None:
        """Nothing comes from this side."""

    def pause_reading(self) -> None:
        """Nothing to pause."""

    def resume_reading(self) -> None:
        """Nothing to resume."""

    def _notify(self) -> None:
        if self._wake is not None:
            self._wake()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        import asyncio

        ready = asyncio.Event()
        self._wake = ready.set
        while True:
            while self._pieces:
                yield self._pieces.popleft()
            if self.closed:
                return
            ready.clear()
            await ready.wait()

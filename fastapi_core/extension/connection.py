"""A request that is answered byte by byte: a stream of text, or an upgrade to another protocol."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from fastapi_core import errors
from fastapi_core.extension.failures import HandlerError, being_cancelled
from fastapi_core.http.exchange import Answer, Header, Response, Stream, StreamWriter
from fastapi_core.obs import logs

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext

log = logs.get("extension")

#: Bytes of a client that wait for the handler before the client has to.
_AHEAD = 1 << 18


class Connection:
    """What a `connect` handler has of its client.

    Exactly one of `respond`, `stream` and `upgrade` begins the answer. When the handler returns the answer ends; when
    the client goes, or the server does, the handler is cancelled.
    """

    def __init__(self, ctx: RequestContext) -> None:
        self._request = ctx.request
        self.query = ctx.info.query
        """Decoded query parameters, each with all its values."""
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._writer: StreamWriter | None = None
        self._received: deque[bytes] = deque()
        self._waiting = 0
        self._wake = asyncio.Event()

    @property
    def method(self) -> str:
        return self._request.method

    @property
    def body(self) -> bytes:
        """What came with the request, whole."""
        return self._request.body

    def header(self, name: str) -> str:
        """First value of a header of the request; empty when there is none."""
        value = self._request.header(name.lower().encode())
        return "" if value is None else value.decode("latin-1")

    # The answer

    def respond(self, body: bytes, *, status: int = 200, content_type: str = "text/plain") -> None:
        """Answer at once with all there is."""
        self._begin(Response(status, [(b"Content-Type", content_type.encode())], body, compress=True))

    async def stream(self, content_type: str = "text/plain", *, status: int = 200) -> None:
        """Begin an answer of unknown length; go on with `send`."""
        await self._streaming(Stream(status, [(b"Content-Type", content_type.encode())], self._started))

    async def upgrade(self, protocol: str) -> None:
        """Agree to another protocol: from now on bytes go both ways (`send`, `async for`). 400 unless it was offered."""
        offered = [name.strip().lower() for name in self.header("upgrade").split(",")]
        if not self._request.upgrade or protocol.lower() not in offered:
            raise errors.bad_request(f"upgrade request required, to {protocol}")
        headers: list[Header] = [(b"Connection", b"Upgrade"), (b"Upgrade", protocol.encode())]
        await self._streaming(Stream(101, headers, self._upgraded))

    async def send(self, data: bytes) -> None:
        """Send bytes; waits while the client is far behind."""
        writer = self._writer
        if writer is None:
            raise RuntimeError("begin the answer first, by stream() or upgrade()")
        writer.write(data)
        while writer.congested and not writer.closed:
            self._wake.clear()
            await self._wake.wait()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """What the client sends behind an upgrade, until it goes."""
        while True:
            while self._received:
                data = self._received.popleft()
                self._waiting -= len(data)
                if self._waiting < _AHEAD and self._writer is not None:
                    self._writer.resume_reading()
                yield data
            if self._writer is None or self._writer.closed:
                return
            self._wake.clear()
            await self._wake.wait()

    # The way there

    def finish(self) -> None:
        """The handler is done."""
        if self._writer is not None and not self._writer.closed:
            self._writer.finish()

    def _begin(self, answer: Answer) -> None:
        if self.answer.done():
            raise RuntimeError("the request has been answered already")
        self.answer.set_result(answer)

    async def _streaming(self, stream: Stream) -> None:
        self._begin(stream)
        while self._writer is None:
            self._wake.clear()
            await self._wake.wait()

    def _started(self, writer: StreamWriter) -> None:
        self._writer = writer
        writer.on_close(self._wake.set)
        writer.on_drain(self._wake.set)
        self._wake.set()

    def _upgraded(self, writer: StreamWriter) -> None:
        self._started(writer)
        writer.on_data(self._data)

    def _data(self, data: bytes) -> None:
        self._received.append(data)
        self._waiting += len(data)
        if self._waiting >= _AHEAD and self._writer is not None:
            self._writer.pause_reading()
        self._wake.set()


class Connections:
    """The connect handlers under way."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, ctx: RequestContext, run: Callable[[Connection], Awaitable[None]]) -> Answer:
        """The answer that the handler begins; it goes on in a task of its own."""
        connection = Connection(ctx)

        async def handle() -> None:
            try:
                await run(connection)
            except asyncio.CancelledError as error:
                if being_cancelled():
                    raise
                raise HandlerError("CancelledError was raised") from error
            except (SystemExit, GeneratorExit) as error:
                raise HandlerError(f"{type(error).__name__} was raised") from error
            finally:
                connection.finish()

        task = asyncio.ensure_future(handle())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        waited: list[asyncio.Future[Any]] = [task, connection.answer]
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not connection.answer.done():
            task.result()
            return Response(200, [])
        answer = connection.answer.result()
        if isinstance(answer, Stream):
            answer = _watched(answer, task)
        task.add_done_callback(_report)
        return answer

    async def close(self) -> None:
        """End them all, and wait until they have."""
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))


def _watched(stream: Stream, task: asyncio.Task[None]) -> Stream:
    """The stream whose end is that of its handler."""

    def gone() -> None:
        task.cancel()

    def start(writer: StreamWriter) -> None:
        stream.start(writer)
        writer.on_close(gone)

    return Stream(stream.status, stream.headers, start)


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("A connect handler failed", task.exception())

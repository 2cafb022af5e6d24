"""An HTTP/1.1 client for proxying: one request a connection, the answer's body as it comes, upgrades as raw bytes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, TypeVar

from fastapi_core.http.exchange import Header
from fastapi_core.records import dataclass

if TYPE_CHECKING:
    import socket

HEAD_LIMIT = 1 << 20
_PIECE = 1 << 16
#: What clients know verification failures by, as far as OpenSSL says it otherwise.
_EXPIRED, _UNKNOWN = "certificate has expired or is not yet valid", "certificate signed by unknown authority"
_VERIFICATION = {9: _EXPIRED, 10: _EXPIRED, 18: _UNKNOWN, 19: _UNKNOWN, 20: _UNKNOWN, 21: _UNKNOWN}


class UpstreamError(Exception):
    """The other side cannot be reached or does not speak HTTP; the text is as clients know it."""


class Tunnel(Protocol):
    """A way to servers in another network."""

    async def open(self, host: str, port: int) -> socket.socket:
        """A socket whose bytes go to that server and come from it. Raises OSError."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes. `tls` None for plain HTTP."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    name: str = ""
    """Whom the certificate must be of, where that is not the host."""
    through: Tunnel | None = None
    """How to get there, where it is not reached directly."""

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(slots=True)
class Reply:
    """Head of an answer; the body follows by `body`, the connection stays open until `close`."""

    status: int
    headers: list[Header]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    length: int = field(default=-1)
    """Content-Length; -1 when unknown."""
    chunked: bool = False
    bodiless: bool = False

    def header(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.headers if key == name), None)

    async def body(self) -> AsyncIterator[bytes]:
        """The body piece by piece; UpstreamError when it ends early."""
        try:
            if self.bodiless or self.length == 0:
                return
            if self.chunked:
                async for piece in self._chunks():
                    yield piece
                return
            left = self.length
            while left:
                piece = await self.reader.read(_PIECE if left < 0 else min(left, _PIECE))
                if not piece:
                    if left > 0:
                        raise UpstreamError("unexpected EOF")
                    return
                if left > 0:
                    left -= len(piece)
                yield piece
        except (OSError, ValueError, asyncio.IncompleteReadError) as error:
            raise UpstreamError("unexpected EOF") from error

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            line = await self.reader.readline()
            size = int(line.split(b";", 1)[0].strip(), 16)
            if size < 0:
                raise ValueError("a chunk has a size")
            if size == 0:
                break
            while size:
                piece = await self.reader.read(min(size, _PIECE))
                if not piece:
                    raise UpstreamError("unexpected EOF")
                size -= len(piece)
                yield piece
            if await self.reader.readexactly(2) != b"\r\n":
                raise ValueError("a chunk ends with its line")
        while (await self.reader.readline()).strip():
            pass

    async def whole(self, limit: int) -> bytes:
        """The body, cut after `limit` bytes."""
        parts, size = [], 0
        async for piece in self.body():
            parts.append(piece)
            size += len(piece)
            if size >= limit:
                break
        return b"".join(parts)[:limit]

    def close(self) -> None:
        self.writer.close()


def dial_problem(error: BaseException, target: Target) -> str:
    """A failed connection in the words clients of the reference know."""
    import socket

    if isinstance(error, TimeoutError):
        return f"dial tcp {target.authority}: i/o timeout"
    if isinstance(error, ConnectionRefusedError):
        return f"dial tcp {target.authority}: connect: connection refused"
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {target.host}: no such host"
    if isinstance(error, ssl.SSLCertVerificationError):
        words = _VERIFICATION.get(error.verify_code, error.verify_message)
        return f"tls: failed to verify certificate: x509: {words}"
    if isinstance(error, ssl.SSLError):
        return f"tls: {error.reason or error}"
    if isinstance(error, OSError) and error.strerror:
        return f"dial tcp {target.authority}: connect: {error.strerror.lower()}"
    return str(error) or type(error).__name__


class _Reader(asyncio.StreamReader):
    """Keeps what has come when the connection breaks: the break is the end, and who counts bytes notices."""

    def set_exception(self, exc: BaseException) -> None:
        self.feed_eof()


_P = TypeVar("_P", bound=asyncio.BaseProtocol)


async def create_transport(
    loop: asyncio.AbstractEventLoop, protocol: Callable[[], _P], target: Target
) -> tuple[asyncio.Transport, _P]:
    """A connection to `target`. Raises OSError."""
    name = (target.name or target.host) if target.tls is not None else None
    if target.through is None:
        return await loop.create_connection(protocol, target.host, target.port, ssl=target.tls, server_hostname=name)
    sock = await target.through.open(target.host, target.port)
    try:
        return await loop.create_connection(protocol, sock=sock, ssl=target.tls, server_hostname=name)
    except BaseException:
        sock.close()
        raise


async def _open(target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = _Reader(limit=HEAD_LIMIT, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport, _ = await create_transport(loop, lambda: protocol, target)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def connect(target: Target, timeout: float) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection; raises UpstreamError."""
    try:
        return await asyncio.wait_for(_open(target), timeout)
    except (OSError, TimeoutError) as error:
        raise UpstreamError(dial_problem(error, target)) from error


async def send(
    target: Target, method: str, path: str, headers: Sequence[Header], body: bytes = b"", *, timeout: float
) -> Reply:
    """One request and the head of its answer. `timeout` is for the connection; the answer takes as long as it takes."""
    reader, writer = await connect(target, timeout)
    try:
        lines = [f"{method} {path} HTTP/1.1\r\n".encode("utf-8", "surrogateescape")]
        lines += [b"%b: %b\r\n" % header for header in headers]
        writer.write(b"".join(lines) + b"\r\n" + body)
        await writer.drain()
        while True:
            reply = _head(await reader.readuntil(b"\r\n\r\n"), reader, writer)
            if reply.status >= 200 or reply.status == 101:
                break
        reply.bodiless = method == "HEAD" or reply.status in (101, 204, 304)
        return reply
    except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
        writer.close()
        raise UpstreamError("EOF" if isinstance(error, EOFError) else f"malformed HTTP response: {error}") from error
    except BaseException:
        writer.close()
        raise


def _head(data: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Reply:
    """Parse an answer's head; ValueError when it is none."""
    first, *lines = data[:-4].split(b"\r\n")
    protocol, _, rest = first.partition(b" ")
    if not protocol.startswith(b"HTTP/1."):
        raise ValueError("not an HTTP/1 status line")
    status = int(rest[:3])
    if not 100 <= status <= 999:
        raise ValueError("status out of range")
    headers = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not name or name != name.strip():
            raise ValueError("bad header line")
        headers.append((name.lower(), value.strip()))
    reply = Reply(status, headers, reader, writer)
    encoding = reply.header(b"transfer-encoding")
    length = reply.header(b"content-length")
    if encoding is not None and encoding.lower() == b"chunked":
        reply.chunked = True
    elif length is not None:
        reply.length = int(length)
        if reply.length < 0:
            raise ValueError("negative length")
    return reply

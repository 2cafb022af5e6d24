"""A transport without a socket, a parser of answers, and certificates for tests of the HTTP server."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import functools
import gc
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fastapi_core._ext import http1
from fastapi_core.http.exchange import Handler, Response, Stream
from fastapi_core.http.server import HTTPServer


class MockTransport:
    """Keeps what is written; `capacity` bytes are taken before the protocol is paused, until `drain`."""

    def __init__(self, capacity: int | None = None) -> None:
        self.sent = bytearray()
        self.writes = 0
        self.capacity = capacity
        self.closed = False
        self.aborted = False
        self.eof = False
        self.reading = True
        self.protocol: http1.HTTP1Protocol | None = None
        self._buffered = 0
        self._paused = False

    def write(self, data: bytes | memoryview) -> None:
        assert not self.eof
        self.writes += 1
        self.sent += data
        if self.capacity is not None:
            self._buffered += len(data)
            if self._buffered > self.capacity and not self._paused:
                self._paused = True
                assert self.protocol is not None
                self.protocol.pause_writing()

    def drain(self, count: int | None = None) -> None:
        """The client reads `count` bytes, or all."""
        self._buffered -= self._buffered if count is None else count
        if self._paused and self._buffered == 0:
            self._paused = False
            assert self.protocol is not None
            self.protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        return self._buffered

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def get_extra_info(self, name: str) -> Any:
        return ("192.0.2.1", 4711) if name == "peername" else None

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.eof = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True


@dataclass
class Client:
    """A connected protocol with its transport."""

    protocol: http1.HTTP1Protocol
    transport: MockTransport
    registry: http1.Registry
    _lost: bool = field(default=False)

    def send(self, data: bytes) -> None:
        self.protocol.data_received(data)

    def take(self) -> bytes:
        """What was written since the last look."""
        sent = bytes(self.transport.sent)
        self.transport.sent.clear()
        return sent

    def lose(self) -> None:
        if not self._lost:
            self._lost = True
            self.transport.closed = True
            self.protocol.connection_lost(None)
            self.transport.protocol = None


def connect(
    handler: Handler,
    *,
    limits: http1.Limits | None = None,
    registry: http1.Registry | None = None,
    capacity: int | None = None,
    **options: Any,
) -> Client:
    """A client on a mock transport, connected to a new protocol."""
    registry = registry or http1.Registry(asyncio.get_running_loop(), Response, Stream, **options)
    protocol = http1.HTTP1Protocol(handler, registry, limits or http1.Limits())
    transport = MockTransport(capacity)
    transport.protocol = protocol
    protocol.connection_made(transport)  # type: ignore[arg-type]
    return Client(protocol, transport, registry)


@dataclass
class Parsed:
    status: int
    headers: dict[str, str]
    body: bytes


def answers(data: bytes, *, head: bool = False) -> list[Parsed]:
    """Answers in a byte string; `head` when they are to HEAD requests."""
    found = []
    while data:
        top, _, rest = data.partition(b"\r\n\r\n")
        lines = top.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
        status = int(lines[0].split(" ")[1])
        body, data = b"", rest
        if head or status in (100, 204, 304):
            pass
        elif headers.get("transfer-encoding") == "chunked":
            while True:
                size, _, data = data.partition(b"\r\n")
                body += data[: int(size, 16)]
                data = data[int(size, 16) + 2 :]
                if int(size, 16) == 0:
                    break
        elif "content-length" in headers:
            length = int(headers["content-length"])
            assert len(rest) >= length
            body, data = rest[:length], rest[length:]
        else:
            body, data = rest, b""
        found.append(Parsed(status, headers, body))
    return found


@dataclass
class Authority:
    """A throw-away certificate authority that writes PEM files."""

    name: str
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def __post_init__(self) -> None:
        self.cert = self._sign(self.name, self.key.public_key(), authority=True)

    def _sign(self, name: str, key: ec.EllipticCurvePublicKey, *, authority: bool) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        usage = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)]))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if not authority:
            names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
            builder = builder.add_extension(x509.ExtendedKeyUsage(usage), critical=False)
        return builder.sign(self.key, hashes.SHA256())

    def write_ca(self, path: Path) -> str:
        path.write_bytes(self.cert.public_bytes(serialization.Encoding.PEM))
        return str(path)

    def write_pair(self, cert: Path, key: Path, name: str) -> tuple[str, str]:
        """A certificate for `name`, usable by servers and clients, with its key."""
        private = ec.generate_private_key(ec.SECP256R1())
        signed = self._sign(name, private.public_key(), authority=False)
        key.write_bytes(
            private.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        cert.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        return str(cert), str(key)


def client_context(ca: str, pair: tuple[str, str] | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    if pair is not None:
        context.load_cert_chain(*pair)
    return context


def on_uvloop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a coroutine test on uvloop, the loop the server is made for."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        uvloop.run(test(**fixtures))
        gc.collect()
        assert set(http1.live().values()) == {0}

    return run


@contextlib.asynccontextmanager
async def serving(handler: Handler, **options: Any) -> AsyncIterator[HTTPServer]:
    """A server on a free port, closed at the end whatever happens."""
    server = HTTPServer()
    await server.start(handler, **options)
    try:
        yield server
    finally:
        await server.close()


async def exchange(port: int, data: bytes, context: ssl.SSLContext | None = None) -> bytes:
    """Send bytes, return everything until the server ends the connection."""
    reader, writer = await open_connection(port, context)
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.read(-1), 20)
    finally:
        writer.close()


async def open_connection(
    port: int, context: ssl.SSLContext | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    name = "localhost" if context else None
    return await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)


async def read_answer(reader: asyncio.StreamReader) -> Parsed:
    """One answer with a Content-Length."""
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
    lines = head.decode("latin-1").split("\r\n")
    length = next((int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:")), 0)
    return answers(head + await asyncio.wait_for(reader.readexactly(length), 20))[0]


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait for a condition another task brings about; fail when it does not come."""
    end = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < end, "the awaited condition did not come"
        await asyncio.sleep(0.005)

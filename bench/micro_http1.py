"""CPU cost of the HTTP protocol alone: bytes into a connected protocol with a mock transport, beside bare httptools.

`python bench/micro_http1.py [rounds]` prints microseconds per request of the process's CPU time; the best of five runs.
`--tls` adds a large and a small GET over real TLS on loopback, beside a bare uvloop protocol writing the same bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httptools
import uvloop

from fastapi_core._ext import http1
from fastapi_core.http.exchange import Answer, Response, Stream
from fastapi_core.http.server import HTTPServer
from fastapi_core.http.tls import build_context

GET = (
    b"GET /api/v1/namespaces/default/configmaps/config-0 HTTP/1.1\r\nHost: 127.0.0.1:6443\r\n"
    b"User-Agent: kubectl/v1.36.2 (linux/amd64) kubernetes/abcdef0\r\nAccept: application/json\r\n"
    b"Authorization: Bearer 0123456789abcdef0123456789abcdef\r\nAccept-Encoding: gzip\r\n\r\n"
)
BODY = b"x" * 1024
FIELDS = [
    (b"Audit-Id", b"0b7bd0ae-1b7c-4bd6-a57d-6b1d3a2c7f4e"),
    (b"Cache-Control", b"no-cache, private"),
    (b"Content-Type", b"application/json"),
]
ANSWER = (
    b"HTTP/1.1 200 OK\r\nAudit-Id: 0b7bd0ae-1b7c-4bd6-a57d-6b1d3a2c7f4e\r\nCache-Control: no-cache, private\r\n"
    b"Content-Type: application/json\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: %d\r\n\r\n%s"
)
LARGE = 5_000_000


class MockTransport:
    """Takes everything at once."""

    def __init__(self) -> None:
        self.written = 0

    def write(self, data: bytes) -> None:
        self.written += len(data)

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def get_extra_info(self, name: str) -> None:
        return None


class BareProtocol(asyncio.Protocol):
    """The least one can do with httptools: collect the headers, write fixed bytes."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._parser = httptools.HttpRequestParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._url = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url = url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_message_complete(self) -> None:
        self._headers = []
        self._transport.write(self._answer)  # type: ignore[attr-defined]


def handle(request: http1.Request) -> Answer:
    """A GET answer of 1 KB, or a large one."""
    return Response(200, FIELDS, LARGE_BODY if request.path == "/large" else BODY)


LARGE_BODY = b"x" * LARGE


def feed(receive: Callable[[bytes], None], rounds: int) -> float:
    """Microseconds of CPU per request."""
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        for _ in range(rounds):
            receive(GET)
        best = min(best, time.process_time() - start)
    return best / rounds * 1e6


async def protocols(rounds: int) -> None:
    """The two protocols on a mock transport."""
    registry = http1.Registry(asyncio.get_running_loop(), Response, Stream)
    protocol = http1.HTTP1Protocol(handle, registry, http1.Limits())
    protocol.connection_made(MockTransport())  # type: ignore[arg-type]
    bare = BareProtocol(ANSWER % (len(BODY), BODY))
    bare.connection_made(MockTransport())  # type: ignore[arg-type]
    print(f"http1 protocol, GET         {feed(protocol.data_received, rounds):8.2f} us/request")
    print(f"bare httptools protocol     {feed(bare.data_received, rounds):8.2f} us/request")
    protocol.connection_lost(None)


CLIENT = """
import socket, ssl, sys
port, path, rounds, size = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
with context.wrap_socket(socket.create_connection(("127.0.0.1", port))) as s:
    request = sys.stdin.buffer.read().replace(b"/api/v1/namespaces/default/configmaps/config-0", path.encode())
    buffer = bytearray(1 << 18)
    for _ in range(rounds):
        s.sendall(request)
        left = size
        while left > 0:
            left -= s.recv_into(buffer)
"""


def cpu() -> float:
    """CPU seconds of this process, without its children."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def measure(port: int, path: str, rounds: int, size: int) -> float:
    """Microseconds of server CPU per request of a client in its own process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CLIENT, str(port), path, str(rounds), str(size), stdin=subprocess.PIPE
    )
    start = cpu()
    await process.communicate(GET)
    return (cpu() - start) / rounds * 1e6


def certificate(folder: Path) -> tuple[str, str]:
    """A throw-away P-256 certificate made by the openssl program."""
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
         "-subj", "/CN=localhost", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


async def over_tls(context: ssl.SSLContext) -> None:
    """Small and large answers over loopback TLS, ours and bare."""
    server = HTTPServer()
    await server.start(handle, ssl_context=context)
    loop = asyncio.get_running_loop()
    for name, path, body, rounds in (("1 KB", "/small", BODY, 4000), ("5 MB", "/large", LARGE_BODY, 60)):
        answer = ANSWER % (len(body), body)
        bare = await loop.create_server(partial(BareProtocol, answer), "127.0.0.1", 0, ssl=context)
        for label, port in (("http1", server.port), ("bare ", bare.sockets[0].getsockname()[1])):
            best = min([await measure(port, path, rounds, len(answer)) for _ in range(3)])
            print(f"{label} over TLS, {name}         {best:8.2f} us/request")
        bare.close()
    await server.close()


async def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=50_000)
    parser.add_argument("--tls", action="store_true")
    arguments = parser.parse_args()
    await protocols(arguments.rounds)
    if arguments.tls:
        with tempfile.TemporaryDirectory() as folder:
            await over_tls(build_context(*certificate(Path(folder))))


if __name__ == "__main__":
    uvloop.run(main())

"""The generic server over real TLS sockets: identity from the connection, watches at shutdown, draining."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fastapi_core._ext.router import Router
from fastapi_core.http.exchange import Answer, Response, Stream, StreamWriter
from fastapi_core.options.complete import Completed, complete
from fastapi_core.options.options import Options
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.server.generic import GenericServer
from fastapi_core.server.routes import routes
from tests.fixtures.exchange import header


class Running:
    """A started server with an endpoint that tells who asked, one that waits, and one that streams."""

    def __init__(self, completed: Completed) -> None:
        self.completed = completed
        self.hold = asyncio.Event()
        self.entered = asyncio.Event()
        self.writers: list[StreamWriter] = []
        self.server = GenericServer(completed.config, lambda: self.router, known_group=lambda group: False)
        self.server.on_shutdown(self.end_streams)
        own: list[tuple[str, dict[str, Endpoint]]] = [
            ("/api/v1/who", {"GET": self.who}),
            ("/api/v1/wait", {"GET": self.wait, "POST": self.who}),
            ("/api/v1/pods", {"GET": self.stream}),
        ]
        self.router: Router[Endpoint] = Router([*own, *routes(self.server)])

    def who(self, ctx: RequestContext) -> Answer:
        return Response(200, [], f"{ctx.user.name} {','.join(ctx.user.groups)}".encode())

    def wait(self, ctx: RequestContext) -> Awaitable[Answer]:
        return self._wait(ctx)

    async def _wait(self, ctx: RequestContext) -> Answer:
        self.entered.set()
        await self.hold.wait()
        return self.who(ctx)

    def stream(self, ctx: RequestContext) -> Answer:
        return Stream(200, [], self.started)

    def started(self, writer: StreamWriter) -> None:
        self.writers.append(writer)
        writer.write(b"first\n")

    def end_streams(self) -> None:
        for writer in self.writers:
            writer.finish()

    def tls(self, *, admin: bool = False) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.completed.pki.ca)
        if admin:
            context.load_cert_chain(self.completed.pki.admin_cert, self.completed.pki.admin_key)
        return context

    async def connect(self, *, admin: bool = False) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.server.port, ssl=self.tls(admin=admin))

    async def get(
        self, path: str, *, admin: bool = False, extra: str = "", body: bytes = b""
    ) -> tuple[int, Any, bytes]:
        reader, writer = await self.connect(admin=admin)
        method = "POST" if body else "GET"
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{length}{extra}\r\n".encode() + body)
        head, _, answer = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        first, *lines = head.split(b"\r\n")
        headers = Response(0, [(name, value.strip()) for name, _, value in (line.partition(b":") for line in lines)])
        return int(first.split()[1]), headers, answer


@pytest_asyncio.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    flags = ["--secure-port=0", "--bind-address=127.0.0.1", f"--data-dir={tmp_path}", "--request-timeout=5s"]
    flags += ["--authorization-mode=AlwaysAllow"]
    found = Running(complete(Options.parse(flags)))
    await found.server.start()
    yield found
    found.hold.set()
    await found.server.stop()


async def test_identity_from_certificate_and_token(running: Running) -> None:
    everything = b"kubernetes-admin system:masters,system:authenticated"
    status, headers, body = await running.get("/api/v1/who", admin=True)
    assert (status, body) == (200, everything)
    assert header(headers, "Cache-Control") == "no-cache, private"
    token = running.completed.pki.admin_token()
    assert (await running.get("/api/v1/who", extra=f"Authorization: Bearer {token}\r\n"))[2] == everything
    assert (await running.get("/api/v1/who"))[0] == 401
    assert (await running.get("/api/v1/who", extra="Authorization: Bearer x\r\n"))[0] == 401
    assert (await running.get("/livez"))[2] == b"ok"


async def test_certificates_of_strangers_end_the_handshake(running: Running, tmp_path: Path) -> None:
    stranger = complete(Options.parse([f"--data-dir={tmp_path / 'other'}"]))
    context = running.tls()
    context.load_cert_chain(stranger.pki.admin_cert, stranger.pki.admin_key)
    assert await first_byte(running.server.port, context) == b""


async def first_byte(port: int, context: ssl.SSLContext) -> bytes:
    """The first byte of an answer, nothing when the server will not talk to us."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    except OSError:
        return b""
    try:
        writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        return await reader.read(1)
    except OSError:
        return b""
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def test_too_large_bodies(running: Running) -> None:
    big = b"x" * ((3 << 20) + 1)
    status, _, body = await running.get("/api/v1/wait", admin=True, body=big)
    assert status == 413
    assert b"Request entity too large: limit is 3145728" in body
    assert (await running.get("/api/v1/wait", body=big))[0] == 401


async def test_shutdown_ends_streams_and_waits_for_requests(running: Running) -> None:
    waiting = asyncio.create_task(running.get("/api/v1/wait", admin=True))
    streaming = asyncio.create_task(running.get("/api/v1/pods?watch=1", admin=True))
    await running.entered.wait()
    while not running.writers:
        await asyncio.sleep(0.001)
    stopping = asyncio.create_task(running.server.stop())
    status, _, body = await streaming
    assert (status, body) == (200, b"6\r\nfirst\n\r\n0\r\n\r\n")
    await running.server.signals.not_accepting.wait()
    with pytest.raises(OSError):  # noqa: PT011 - refused or reset
        await running.connect()
    assert not stopping.done()
    running.hold.set()
    assert (await waiting)[0] == 200
    await stopping


async def test_a_client_that_leaves_gives_its_place_back(running: Running) -> None:
    _, writer = await running.connect(admin=True)
    writer.write(b"GET /api/v1/wait HTTP/1.1\r\nHost: x\r\n\r\n")
    await running.entered.wait()
    writer.transport.abort()
    inflight = b'apiserver_current_inflight_requests{request_kind="readOnly"} '
    while inflight + b"1\n" not in (await running.get("/metrics", admin=True))[2]:
        await asyncio.sleep(0.001)
    assert b"apiserver_request_aborts_total{" in (await running.get("/metrics", admin=True))[2]

"""The server on real sockets, plain and TLS."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from pathlib import Path

import pytest

from fastapi_core._ext import http1
from fastapi_core.http.exchange import Answer, Response, Stream, StreamWriter
from fastapi_core.http.server import HTTPServer, _listen
from fastapi_core.http.tls import ServerTLS, TLSFiles, build_context
from fastapi_core.obs.files import FileWatcher
from tests.unit.http.http_support import (
    Authority,
    answers,
    client_context,
    exchange,
    on_uvloop,
    open_connection,
    read_answer,
    serving,
    until,
)

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"


class Pki:
    """A server pair and a client pair of one authority."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority("ca")
        self.ca = self.authority.write_ca(folder / "ca.pem")
        self.server = self.authority.write_pair(folder / "server.pem", folder / "server.key", "server")
        self.client = self.authority.write_pair(folder / "client.pem", folder / "client.key", "admin")

    def server_context(self) -> ssl.SSLContext:
        return build_context(*self.server, [self.ca])


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


def der(pem_file: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert(Path(pem_file).read_text())


def echo(request: http1.Request) -> Answer:
    return Response(200, [], request.body or request.path.encode())


@on_uvloop
async def test_port_zero_finds_a_free_port_and_a_taken_one_is_an_error() -> None:
    async with serving(echo) as server:
        assert server.port > 0
        assert answers(await exchange(server.port, GET + LAST))[1].body == b"/"
        other = HTTPServer()
        with pytest.raises(OSError, match="in use"):
            await other.start(echo, port=server.port)


def test_connections_inherit_keep_alive_and_no_delay() -> None:
    with _listen("127.0.0.1", 0) as listener:
        listener.listen()
        listener.setblocking(True)
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("tls", [False, True])
def test_requests_over_a_real_connection(tls: bool, pki: Pki) -> None:
    large = os.urandom(3_000_000)

    def handler(request: http1.Request) -> Answer:
        if request.path == "/large":
            return Response(200, [], [large[:70_000], large[70_000:70_010], large[70_010:]])
        return echo(request)

    async def run() -> None:
        context = client_context(pki.ca) if tls else None
        async with serving(handler, ssl_context=pki.server_context() if tls else None) as server:
            chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (large[:100], large[100:2_000_000]))
            data = (
                GET
                + b"PUT /p HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n"
                + large
                + b"PUT /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                + chunks
                + b"0\r\n\r\nGET /large HTTP/1.1\r\nHost: h\r\n\r\n"
                + LAST
            )
            found = answers(await exchange(server.port, data, context))
            assert [answer.body for answer in found] == [b"/", large, large[:2_000_000], large, b"/"]
            assert server.statistics()["requests"] == 5

    on_uvloop(run)()


async def refused(port: int, context: ssl.SSLContext) -> None:
    """The handshake fails; with TLS 1.3 the client learns it only when it reads."""
    try:
        assert await exchange(port, LAST, context) == b""
    except (ssl.SSLError, ConnectionError):
        pass


@on_uvloop
async def test_client_certificates(pki: Pki, tmp_path: Path) -> None:
    seen: list[bytes | None] = []

    def handler(request: http1.Request) -> Answer:
        seen.append(request.connection.peer_certificate)
        assert request.connection.tls
        return Response(200, [], b"ok")

    stranger = Authority("other").write_pair(tmp_path / "o.pem", tmp_path / "o.key", "admin")
    async with serving(handler, ssl_context=pki.server_context()) as server:
        await exchange(server.port, GET + LAST, client_context(pki.ca, pki.client))
        await exchange(server.port, LAST, client_context(pki.ca))
        assert seen == [der(pki.client[0]), der(pki.client[0]), None]
        await refused(server.port, client_context(pki.ca, stranger))
        assert len(seen) == 3


@on_uvloop
async def test_tls_versions_and_alpn(pki: Pki) -> None:
    async with serving(echo, ssl_context=pki.server_context()) as server:
        context = client_context(pki.ca)
        context.set_alpn_protocols(["h2", "http/1.1"])
        _, writer = await open_connection(server.port, context)
        tls = writer.get_extra_info("ssl_object")
        assert tls.selected_alpn_protocol() == "http/1.1"
        assert tls.version() == "TLSv1.3"
        writer.close()
        context = client_context(pki.ca)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        assert answers(await exchange(server.port, LAST, context))[0].status == 200


async def served_certificate(port: int, ca: str) -> bytes | None:
    _, writer = await open_connection(port, client_context(ca))
    try:
        certificate: bytes | None = writer.get_extra_info("ssl_object").getpeercert(True)
        return certificate
    finally:
        writer.close()


@on_uvloop
async def test_changed_files_are_used_by_new_handshakes_only(pki: Pki) -> None:
    watcher = FileWatcher(0.01)
    tls = ServerTLS(TLSFiles(*pki.server, (pki.ca,)), watcher)
    async with serving(echo, ssl_context=tls.context) as server:
        reader, writer = await open_connection(server.port, client_context(pki.ca))
        first = await served_certificate(server.port, pki.ca)
        assert first == der(pki.server[0])

        pki.authority.write_pair(Path(pki.server[0]), Path(pki.server[1]), "server again")
        before = tls.context.current
        watcher.start()
        await until(lambda: tls.context.current is not before)
        assert await served_certificate(server.port, pki.ca) == der(pki.server[0]) != first
        writer.write(LAST)
        assert answers(await reader.read(-1))[0].status == 200
        writer.close()
        watcher.close()


@on_uvloop
async def test_a_broken_file_is_logged_and_the_old_one_kept(pki: Pki, capsys: pytest.CaptureFixture[str]) -> None:
    watcher = FileWatcher()
    tls = ServerTLS(TLSFiles(*pki.server, (pki.ca,)), watcher)
    good = der(pki.server[0])
    async with serving(echo, ssl_context=tls.context) as server:
        Path(pki.server[0]).write_text("half a file")
        watcher.check()
        assert await served_certificate(server.port, pki.ca) == good
        Path(pki.server[0]).unlink()
        watcher.check()
        assert await served_certificate(server.port, pki.ca) == good
        pki.authority.write_pair(Path(pki.server[0]), Path(pki.server[1]), "server again")
        watcher.check()
        assert await served_certificate(server.port, pki.ca) == der(pki.server[0]) != good


@on_uvloop
async def test_a_client_authority_can_be_taken_away(pki: Pki, tmp_path: Path) -> None:
    trusted = Authority("old clients")
    ca = trusted.write_ca(tmp_path / "clients.pem")
    pair = trusted.write_pair(tmp_path / "c.pem", tmp_path / "c.key", "admin")
    watcher = FileWatcher()
    tls = ServerTLS(TLSFiles(*pki.server, (ca,)), watcher)
    async with serving(echo, ssl_context=tls.context) as server:
        assert answers(await exchange(server.port, LAST, client_context(pki.ca, pair)))[0].status == 200
        replacement = tmp_path / "new.pem"
        Authority("new clients").write_ca(replacement)
        replacement.replace(ca)
        watcher.check()
        await refused(server.port, client_context(pki.ca, pair))


def test_missing_files_are_an_error_at_start(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        ServerTLS(TLSFiles(str(tmp_path / "none.pem"), str(tmp_path / "none.key")), FileWatcher())


@on_uvloop
async def test_drain_lets_requests_finish_and_closes_the_rest() -> None:
    gate = asyncio.Event()

    async def handler(request: http1.Request) -> Answer:
        await gate.wait()
        return echo(request)

    async with serving(handler) as server:
        idle_reader, idle_writer = await open_connection(server.port)
        reader, writer = await open_connection(server.port)
        writer.write(GET)
        await until(lambda: server.statistics()["active"] == 1 and server.statistics()["connections"] == 2)
        server.stop_accepting()
        draining = asyncio.ensure_future(server.drain(10))
        with pytest.raises(ConnectionRefusedError):
            await open_connection(server.port)
        assert not draining.done()
        gate.set()
        assert (await read_answer(reader)).headers["connection"] == "close"
        assert await draining is True
        assert await idle_reader.read(-1) == b""
        assert server.statistics()["connections"] == 0
        for each in (writer, idle_writer):
            each.close()


@on_uvloop
async def test_drain_gives_up_after_its_time_and_close_cuts() -> None:
    closed: list[int] = []

    def start(writer: StreamWriter) -> None:
        writer.on_close(lambda: closed.append(1))

    async with serving(lambda request: Stream(200, [], start)) as server:
        reader, writer = await open_connection(server.port)
        writer.write(GET)
        await reader.readuntil(b"\r\n\r\n")
        assert await server.drain(0.05) is False
        await server.close()
        assert closed == [1]
        assert await reader.read(-1) == b""
        writer.close()


@on_uvloop
async def test_drain_waits_for_a_large_answer_to_be_read() -> None:
    large = b"x" * 8_000_000
    async with serving(lambda request: Response(200, [], large)) as server:
        reader, writer = await open_connection(server.port)
        writer.write(GET)
        await until(lambda: server.statistics()["requests"] == 1)
        draining = asyncio.ensure_future(server.drain(20))
        assert len((await read_answer(reader)).body) == len(large)
        assert await draining is True
        writer.close()


@on_uvloop
async def test_methods_of_a_server_that_never_started() -> None:
    server = HTTPServer()
    server.stop_accepting()
    assert await server.drain(1) is True
    await server.close()
    assert server.statistics() == {}

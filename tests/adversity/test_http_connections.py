"""Clients that cut, stall, drip, half-close or flood: each holds its own connection and nothing else."""

from __future__ import annotations

import asyncio
import resource
import socket
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fastapi_core._ext import http1
from fastapi_core.http.exchange import Answer, Response, Stream, StreamWriter
from fastapi_core.http.tls import build_context
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

pytestmark = pytest.mark.adversity

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
QUICK = http1.Limits(header_timeout=0.2, body_timeout=0.2, idle_timeout=0.4, write_timeout=0.3, linger=0.2)


def ok(request: http1.Request) -> Answer:
    return Response(200, [], b"ok")


def connect(port: int, receive_buffer: int | None = None) -> socket.socket:
    """A plain blocking socket, for what asyncio would smooth over."""
    client = socket.socket()
    if receive_buffer is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    client.settimeout(20)
    client.connect(("127.0.0.1", port))
    return client


def reset(client: socket.socket) -> None:
    """Close with a RST instead of a FIN."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


async def in_thread(call: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, call, *arguments)


def read_all(client: socket.socket) -> bytes:
    data = b""
    while piece := client.recv(65536):
        data += piece
    return data


async def works(port: int) -> bool:
    return answers(await exchange(port, LAST))[0].status == 200


CUTS = [
    b"",
    b"GET / HT",
    b"GET / HTTP/1.1\r\nHost: h\r",
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nabc",
    b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\nT: ",
]


@pytest.mark.parametrize("end", [socket.socket.close, reset])
@pytest.mark.parametrize("data", CUTS)
def test_a_request_cut_anywhere_leaves_nothing(data: bytes, end: Callable[[socket.socket], None]) -> None:
    async def run() -> None:
        async with serving(ok) as server:
            client = connect(server.port)
            client.sendall(data)
            await until(lambda: server.statistics()["connections"] == 1)
            end(client)
            await until(lambda: server.statistics()["connections"] == 0)
            assert server.statistics()["requests"] == 0
            assert await works(server.port)

    on_uvloop(run)()


@pytest.mark.parametrize("data", CUTS[1:])
def test_a_request_that_stalls_is_told_and_ended(data: bytes) -> None:
    async def run() -> None:
        async with serving(ok, limits=QUICK) as server:
            (answer,) = answers(await exchange(server.port, data))
            assert answer.status == 408
            await until(lambda: server.statistics()["connections"] == 0)

    on_uvloop(run)()


@on_uvloop
async def test_silent_connections_are_closed_without_a_word() -> None:
    async with serving(ok, limits=QUICK) as server:
        assert await exchange(server.port, b"") == b""
        reader, writer = await open_connection(server.port)
        writer.write(GET)
        assert (await read_answer(reader)).status == 200
        assert await reader.read(-1) == b""
        writer.close()


@on_uvloop
async def test_reset_while_the_handler_waits_cancels_it() -> None:
    cancelled = asyncio.Event()

    async def handler(request: http1.Request) -> Answer:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return Response(200, [])

    async with serving(handler) as server:
        client = connect(server.port)
        client.sendall(GET)
        await until(lambda: server.statistics()["active"] == 1)
        reset(client)
        await asyncio.wait_for(cancelled.wait(), 10)
        assert server.statistics()["active"] == 0


@pytest.mark.parametrize("end", [socket.socket.close, reset])
def test_a_stream_learns_that_its_client_is_gone(end: Callable[[socket.socket], None]) -> None:
    async def run() -> None:
        closed = asyncio.Event()

        def start(writer: StreamWriter) -> None:
            writer.on_close(closed.set)
            writer.write(b"first")

        async with serving(lambda request: Stream(200, [], start)) as server:
            client = connect(server.port)
            client.sendall(GET)
            await in_thread(client.recv, 1000)
            end(client)
            await asyncio.wait_for(closed.wait(), 10)
            await until(lambda: server.statistics()["connections"] == 0)

    on_uvloop(run)()


@on_uvloop
async def test_a_half_closed_client_gets_its_answer() -> None:
    gate = asyncio.Event()

    async def handler(request: http1.Request) -> Answer:
        await gate.wait()
        return Response(200, [], request.body)

    async with serving(handler) as server:
        client = connect(server.port)
        client.sendall(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc")
        client.shutdown(socket.SHUT_WR)
        await until(lambda: server.statistics()["active"] == 1)
        gate.set()
        (answer,) = answers(await in_thread(read_all, client))
        assert answer.body == b"abc"
        client.close()


@pytest.mark.parametrize("tls", [False, True])
def test_a_client_that_does_not_read_is_cut_and_others_are_served(tls: bool, tmp_path: Path) -> None:
    large = b"x" * 30_000_000

    def handler(request: http1.Request) -> Answer:
        return Response(200, [], large if request.path == "/large" else b"ok")

    async def run() -> None:
        authority = Authority("ca")
        ca = authority.write_ca(tmp_path / "ca.pem")
        pair = authority.write_pair(tmp_path / "s.pem", tmp_path / "s.key", "server")
        context = client_context(ca) if tls else None
        async with serving(handler, ssl_context=build_context(*pair) if tls else None, limits=QUICK) as server:
            client = await in_thread(connect, server.port, 4096)
            if context is not None:
                client = await in_thread(partial(context.wrap_socket, client, server_hostname="localhost"))
            client.sendall(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
            await until(lambda: server.statistics()["active"] == 1)
            assert answers(await exchange(server.port, LAST, context))[0].status == 200
            await until(lambda: server.statistics()["connections"] == 0)
            assert server.statistics()["timeouts"] == 1
            client.close()

    on_uvloop(run)()


@on_uvloop
async def test_clients_that_do_not_read_cost_a_bounded_buffer_each() -> None:
    large = b"x" * 20_000_000
    async with serving(lambda request: Response(200, [], large)) as server:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        clients = [connect(server.port, receive_buffer=4096) for _ in range(20)]
        for client in clients:
            client.sendall(GET)
        await until(lambda: server.statistics()["active"] == 20)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 100_000  # kilobytes on Linux; 400 MB of answers are owed
        for client in clients:
            reset(client)
        await until(lambda: server.statistics()["connections"] == 0)


@on_uvloop
async def test_a_slow_reader_gets_everything() -> None:
    large = bytes(range(256)) * 12_000

    def sip(client: socket.socket) -> bytes:
        data = bytearray()
        while piece := client.recv(30_000):
            data += piece
        return bytes(data)

    async with serving(lambda request: Response(200, [], large)) as server:
        client = connect(server.port, receive_buffer=4096)
        client.sendall(LAST)
        (answer,) = answers(await in_thread(sip, client))
        assert answer.body == large
        client.close()


@on_uvloop
async def test_a_flood_of_pipelined_requests_stops_being_read() -> None:
    gate = asyncio.Event()

    async def handler(request: http1.Request) -> Answer:
        await gate.wait()
        return Response(200, [], b"ok")

    async with serving(handler) as server:
        client = connect(server.port)
        client.setblocking(False)
        sent = 0
        idle = 0
        while idle < 20:  # until nothing is taken any more
            try:
                sent += client.send(GET * 1000)
                idle = 0
            except BlockingIOError:
                idle += 1
            await asyncio.sleep(0.005)
        assert sent < 20_000_000  # kernel buffers, not the server's memory
        assert server.statistics()["active"] == 1
        assert await server.drain(0.01) is False
        reset(client)


@on_uvloop
async def test_many_slow_headers_do_not_delay_others() -> None:
    async with serving(ok) as server:
        slow = [connect(server.port) for _ in range(100)]
        for step in (b"GET / HTTP/1.1\r\n", b"Host: h\r\n", b"X: y\r\n"):
            for client in slow:
                client.sendall(step)
            assert await works(server.port)
        assert server.statistics()["connections"] >= 100
        for client in slow:
            client.close()
        await until(lambda: server.statistics()["connections"] == 0)


@pytest.mark.parametrize("tls", [False, True])
def test_a_refused_upload_reads_its_answer(tls: bool, tmp_path: Path) -> None:
    """A client that writes all of its body before it reads must find the 413, not a reset."""

    async def run() -> None:
        authority = Authority("ca")
        ca = authority.write_ca(tmp_path / "ca.pem")
        pair = authority.write_pair(tmp_path / "s.pem", tmp_path / "s.key", "server")
        context = client_context(ca)

        def upload(port: int) -> bytes:
            client = connect(port)
            if tls:
                client = context.wrap_socket(client, server_hostname="localhost")
            client.sendall(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8000000\r\n\r\n")
            client.sendall(b"x" * 8_000_000)
            try:
                return read_all(client)
            finally:
                client.close()

        async with serving(ok, ssl_context=build_context(*pair) if tls else None) as server:
            (answer,) = answers(await in_thread(upload, server.port))
            assert answer.status == 413
            await until(lambda: server.statistics()["connections"] == 0)

    on_uvloop(run)()


@on_uvloop
async def test_broken_tls_handshakes_leave_the_server_well(tmp_path: Path) -> None:
    authority = Authority("ca")
    ca = authority.write_ca(tmp_path / "ca.pem")
    pair = authority.write_pair(tmp_path / "s.pem", tmp_path / "s.key", "server")
    async with serving(ok, ssl_context=build_context(*pair), limits=QUICK) as server:
        stalled = connect(server.port)
        garbage = connect(server.port)
        garbage.sendall(GET)
        half = connect(server.port)
        half.sendall(b"\x16\x03\x01\x02\x00\x01")
        half.close()
        for client in (stalled, garbage):
            try:
                assert GET not in await in_thread(read_all, client)
            except ConnectionError:
                pass
            client.close()
        assert answers(await exchange(server.port, LAST, client_context(ca)))[0].status == 200
        await until(lambda: server.statistics()["connections"] == 0)


@on_uvloop
async def test_a_stream_to_a_stalled_client_is_bounded_by_its_producer() -> None:
    writers: list[StreamWriter] = []
    async with serving(lambda request: Stream(200, [], writers.append)) as server:
        client = connect(server.port, receive_buffer=4096)
        client.sendall(GET)
        await until(lambda: bool(writers))
        (writer,) = writers
        frame = b"x" * 65536
        for _ in range(1000):
            if writer.buffered > 1_000_000:
                break
            writer.write(frame)
        assert writer.buffered > 1_000_000
        writer.abort()
        await until(lambda: server.statistics()["connections"] == 0)
        assert writer.closed
        client.close()

"""A stream with status 101 takes the connection over."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from fastapi_core._ext import http1
from fastapi_core.http.exchange import Answer, Response, Stream, StreamWriter
from tests.unit.http.http_support import connect, on_uvloop

REQUEST = b"GET /x HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
HEADERS = [(b"Connection", b"Upgrade"), (b"Upgrade", b"echo")]


def tunnel(start: Callable[[StreamWriter], None]) -> Callable[[http1.Request], Answer]:
    return lambda request: Stream(101, list(HEADERS), start)


def echo(writer: StreamWriter) -> None:
    writer.on_data(lambda data: writer.finish() if data == b"end" else writer.write(data.upper()))


@on_uvloop
async def test_bytes_go_both_ways() -> None:
    client = connect(tunnel(echo))
    client.protocol.data_received(REQUEST + b"GET / HTTP/1.1\r\n\r\n")
    head, _, rest = bytes(client.transport.sent).partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 101 Switching Protocols"
    assert b"Connection: Upgrade" in lines
    assert not [line for line in lines if line.lower().startswith((b"transfer-encoding", b"content-length"))]
    assert not [line for line in lines if line == b"Connection: close"]
    assert rest == b"GET / HTTP/1.1\r\n\r\n"
    client.protocol.data_received(b"more \xff")
    assert client.transport.sent.endswith(b"MORE \xff")
    client.protocol.data_received(b"end")
    assert client.transport.closed
    client.protocol.connection_lost(None)
    assert client.registry.active == 0


@on_uvloop
async def test_bytes_wait_for_somebody_to_take_them() -> None:
    writers: list[StreamWriter] = []
    client = connect(tunnel(writers.append))
    client.protocol.data_received(REQUEST + b"early ")
    client.protocol.data_received(b"bytes")
    received: list[bytes] = []
    writers[0].on_data(received.append)
    client.protocol.data_received(b"!")
    assert b"".join(received) == b"early bytes!"
    closed: list[bool] = []
    writers[0].on_close(lambda: closed.append(True))
    client.protocol.connection_lost(None)
    assert closed == [True]
    writers[0].write(b"into nothing")


@on_uvloop
async def test_reading_stops_and_goes_on() -> None:
    writers: list[StreamWriter] = []
    client = connect(tunnel(writers.append))
    client.protocol.data_received(REQUEST)
    writers[0].pause_reading()
    assert not client.transport.reading
    writers[0].resume_reading()
    assert client.transport.reading
    writers[0].abort()
    client.protocol.connection_lost(None)


@on_uvloop
async def test_a_taker_that_fails_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    def broken(data: bytes) -> None:
        raise ValueError(data)

    client = connect(tunnel(lambda writer: writer.on_data(broken)))
    client.protocol.data_received(REQUEST)
    with caplog.at_level(logging.CRITICAL, "fastapi_core.http"):  # a record would keep the connection alive
        client.protocol.data_received(b"x")
    assert client.transport.aborted
    client.protocol.connection_lost(None)


@on_uvloop
async def test_other_streams_are_http() -> None:
    errors: list[str] = []

    def start(writer: StreamWriter) -> None:
        with pytest.raises(RuntimeError) as raised:
            writer.on_data(lambda data: None)
        errors.append(str(raised.value))
        writer.finish()

    client = connect(lambda request: Stream(200, [], start))
    client.protocol.data_received(REQUEST)
    assert errors == ["the connection still speaks HTTP"]
    client.protocol.connection_lost(None)


@on_uvloop
async def test_an_upgrade_that_is_declined() -> None:
    client = connect(lambda request: Response(400, [], b"no"))
    client.protocol.data_received(REQUEST)
    assert client.transport.sent.startswith(b"HTTP/1.1 400 ")
    client.protocol.connection_lost(None)

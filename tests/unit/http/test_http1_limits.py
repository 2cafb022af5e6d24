"""Deadlines, numbers of connections and drain, on a mock transport with a clock that the test moves."""

from __future__ import annotations

import asyncio

import pytest

from fastapi_core._ext import http1
from fastapi_core.http.exchange import Answer, Response, Stream
from tests.unit.http.http_support import answers, connect

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


def limits() -> http1.Limits:
    return http1.Limits(header_timeout=10, body_timeout=20, idle_timeout=30, write_timeout=40, linger=1)


def ok(request: http1.Request) -> Answer:
    return Response(200, [], request.body or b"ok")


async def test_a_silent_new_connection_is_closed_without_a_word() -> None:
    client = connect(ok, limits=limits())
    client.registry.sweep(http1.monotonic() + 9)
    assert not client.transport.closed
    client.registry.sweep(http1.monotonic() + 11)
    assert client.transport.closed
    assert client.take() == b""
    client.lose()


async def test_an_idle_connection_is_closed_without_a_word() -> None:
    client = connect(ok, limits=limits())
    client.send(GET)
    client.take()
    client.registry.sweep(http1.monotonic() + 29)
    assert not client.transport.closed
    client.registry.sweep(http1.monotonic() + 31)
    assert client.transport.closed
    assert client.take() == b""
    client.lose()


@pytest.mark.parametrize(
    ("begun", "seconds"),
    [
        (b"GET / HTT", 10),
        (GET + b"G", 10),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab", 20),
        (b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", 20),
        (b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", 20),
    ],
)
async def test_a_request_that_does_not_get_on_is_408(begun: bytes, seconds: int) -> None:
    client = connect(ok, limits=limits())
    client.send(begun)
    client.take()
    start = http1.monotonic()
    client.registry.sweep(start + seconds - 1)
    assert client.take() == b""
    client.registry.sweep(start + seconds + 1)
    (answer,) = answers(client.take())
    assert (answer.status, answer.headers["connection"]) == (408, "close")
    client.registry.sweep(start + seconds + 10)
    assert client.transport.closed
    assert client.registry.statistics()["timeouts"] == 1
    client.lose()


async def test_a_drip_of_header_bytes_does_not_move_the_deadline() -> None:
    client = connect(ok, limits=limits())
    start = http1.monotonic()
    for byte in b"GET / HTTP/1.1\r\n":
        client.send(bytes([byte]))
    client.registry.sweep(start + 11)
    assert answers(client.take())[0].status == 408
    client.lose()


async def test_a_waiting_handler_has_no_deadline_here() -> None:
    waiting: list[asyncio.Future[Answer]] = []

    def handler(request: http1.Request) -> asyncio.Future[Answer]:
        waiting.append(asyncio.get_running_loop().create_future())
        return waiting[0]

    client = connect(handler, limits=limits())
    client.send(GET)
    client.registry.sweep(http1.monotonic() + 3600)
    assert not client.transport.closed
    waiting[0].set_result(Response(200, []))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert answers(client.take())[0].status == 200
    client.lose()


async def test_a_client_that_takes_nothing_of_its_answer_is_cut() -> None:
    client = connect(lambda request: Response(200, [], b"x" * 3_000_000), limits=limits(), capacity=100)
    client.send(GET)
    start = http1.monotonic()
    client.registry.sweep(start + 39)
    assert not client.transport.closed
    client.transport.drain(10)  # slow, but alive
    client.registry.sweep(start + 41)
    assert not client.transport.closed
    client.registry.sweep(start + 100)
    assert client.transport.aborted
    client.lose()
    assert client.registry.active == 0


async def test_output_that_does_not_leave_a_closed_connection_is_given_up() -> None:
    client = connect(ok, limits=limits())
    client.send(b"GET / HTTP/1.0\r\n\r\n")
    assert client.transport.closed
    client.registry.sweep(http1.monotonic() + 39)
    assert not client.transport.aborted
    client.registry.sweep(http1.monotonic() + 41)
    assert client.transport.aborted
    client.lose()


async def test_connections_over_the_limit_are_told_and_closed() -> None:
    registry = http1.Registry(asyncio.get_running_loop(), Response, Stream, max_connections=2)
    clients = [connect(ok, registry=registry, limits=limits()) for _ in range(3)]
    (answer,) = answers(clients[2].take())
    assert (answer.status, answer.headers["connection"]) == (503, "close")
    clients[2].send(GET)
    assert clients[2].take() == b""
    clients[0].send(GET)
    assert answers(clients[0].take())[0].status == 200
    registry.sweep(http1.monotonic() + 2)
    assert clients[2].transport.closed
    assert registry.statistics()["refused"] == 1
    clients[2].lose()
    clients[0].lose()
    again = connect(ok, registry=registry)
    assert again.take() == b""
    again.lose()
    clients[1].lose()


async def test_far_too_many_connections_are_cut() -> None:
    registry = http1.Registry(asyncio.get_running_loop(), Response, Stream, max_connections=1)
    clients = [connect(ok, registry=registry) for _ in range(100)]
    assert clients[-1].transport.aborted
    assert not clients[1].transport.aborted
    for client in clients:
        client.lose()
    assert registry.connections == 0


async def test_drain_marks_answers_and_closes_the_idle() -> None:
    registry = http1.Registry(asyncio.get_running_loop(), Response, Stream)
    idle, busy, reading = (connect(ok, registry=registry) for _ in range(3))
    reading.send(GET[:10])
    registry.drain()
    busy.send(GET)
    (answer,) = answers(busy.take())
    assert answer.headers["connection"] == "close"
    assert busy.transport.closed
    registry.close_idle()
    assert idle.transport.closed
    assert not reading.transport.closed
    reading.send(GET[10:])
    assert reading.transport.closed
    called = []
    registry.when_idle(lambda: called.append(1))
    assert called == [1]
    for client in (idle, busy, reading):
        client.lose()


async def test_abort_cuts_everyone() -> None:
    registry = http1.Registry(asyncio.get_running_loop(), Response, Stream)
    clients = [connect(ok, registry=registry) for _ in range(2)]
    registry.abort()
    assert all(client.transport.aborted for client in clients)
    for client in clients:
        client.lose()


async def test_statistics() -> None:
    client = connect(ok)
    client.send(GET + GET)
    assert client.registry.statistics() == {
        "connections": 1,
        "active": 0,
        "accepted": 1,
        "refused": 0,
        "requests": 2,
        "malformed": 0,
        "timeouts": 0,
        "backlog": 0,
        "cut": 0,
    }
    client.lose()

"""Streams on a mock transport: framing, corking, ends."""

from __future__ import annotations

import asyncio
import logging

import pytest

from fastapi_core._ext import http1
from fastapi_core.http.exchange import Answer, Stream, StreamWriter
from tests.unit.http.http_support import Client, answers, connect

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


class Producer:
    """Answers with a stream and keeps its writer; `first` is written inside start."""

    def __init__(self, first: bytes = b"") -> None:
        self.first = first
        self.writers: list[StreamWriter] = []
        self.closed = 0

    def __call__(self, request: http1.Request) -> Answer:
        return Stream(200, [(b"Content-Type", b"application/json")], self.start)

    def start(self, writer: StreamWriter) -> None:
        writer.on_close(self.on_close)
        self.writers.append(writer)
        writer.write(self.first)

    def on_close(self) -> None:
        self.closed += 1


def open_stream(producer: Producer, request: bytes = GET, capacity: int | None = None) -> Client:
    client = connect(producer, capacity=capacity)
    client.send(request)
    return client


async def test_head_and_first_frames_are_one_write() -> None:
    producer = Producer(b"first")
    client = open_stream(producer)
    assert client.transport.writes == 1
    sent = client.take()
    assert b"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n" in sent
    assert b"Content-Length" not in sent
    client.lose()


async def test_a_stream_without_first_frames_sends_its_head_at_once() -> None:
    client = open_stream(Producer())
    assert client.take().endswith(b"\r\n\r\n")
    client.lose()


async def test_frames_then_the_next_request() -> None:
    producer = Producer()
    client = open_stream(producer, GET + GET)
    (writer,) = producer.writers
    writer.write(b"a" * 300)
    writer.write(b"")
    writer.write_framed(b"1\r\nb\r\n2\r\ncc\r\n")
    assert client.registry.active == 1
    writer.finish()
    sent = client.take()
    assert b"12c\r\n" in sent
    first, _, rest = sent.partition(b"0\r\n\r\n")
    assert answers(first + b"0\r\n\r\n")[0].body == b"a" * 300 + b"bcc"
    assert rest.startswith(b"HTTP/1.1 200 OK")
    assert writer.closed
    assert writer.buffered == 0
    writer.write(b"ignored")
    writer.finish()
    assert (client.take(), producer.closed, len(producer.writers)) == (b"", 1, 2)
    client.lose()
    assert producer.closed == 2


async def test_http10_gets_plain_bytes_and_the_end_of_the_connection() -> None:
    producer = Producer(b"a")
    client = open_stream(producer, b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    producer.writers[0].write_framed(b"1\r\nb\r\n2\r\ncc\r\n")
    producer.writers[0].finish()
    (answer,) = answers(client.take())
    assert answer.headers["connection"] == "close"
    assert "transfer-encoding" not in answer.headers
    assert answer.body == b"abcc"
    assert client.transport.closed
    client.lose()


async def test_finish_inside_start() -> None:
    def start(writer: StreamWriter) -> None:
        writer.write(b"all")
        writer.finish()

    client = connect(lambda request: Stream(200, [], start))
    client.send(GET)
    assert client.transport.writes == 1
    assert answers(client.take())[0].body == b"all"
    assert client.registry.active == 0
    client.lose()


async def test_abort_leaves_the_body_incomplete() -> None:
    producer = Producer(b"x")
    client = open_stream(producer)
    producer.writers[0].abort()
    assert client.transport.aborted
    assert not client.take().endswith(b"0\r\n\r\n")
    client.lose()
    assert producer.closed == 1
    assert client.registry.active == 0


async def test_abort_inside_start() -> None:
    closed = []

    def start(writer: StreamWriter) -> None:
        writer.on_close(lambda: closed.append(1))
        writer.write(b"part")
        writer.abort()

    client = connect(lambda request: Stream(200, [], start))
    client.send(GET)
    assert client.transport.aborted
    assert client.take().endswith(b"4\r\npart\r\n")
    client.lose()
    assert closed == [1]


async def test_a_start_that_fails_is_a_500(caplog: pytest.LogCaptureFixture) -> None:
    closed = []

    def start(writer: StreamWriter) -> None:
        writer.on_close(lambda: closed.append(1))
        writer.write(b"part")
        raise RuntimeError("broken")

    client = connect(lambda request: Stream(200, [], start))
    with caplog.at_level(logging.CRITICAL, "fastapi_core.http"):
        client.send(GET)
    (answer,) = answers(client.take())
    assert answer.status == 500
    assert closed == [1]
    client.lose()


async def test_disconnect_closes_the_writer_once_and_writes_go_nowhere() -> None:
    producer = Producer()
    client = open_stream(producer)
    client.take()
    client.lose()
    assert producer.closed == 1
    writer = producer.writers[0]
    assert writer.closed
    writer.write(b"x")
    writer.write_framed(b"1\r\nx\r\n")
    writer.abort()
    assert client.take() == b""
    late = []
    writer.on_close(lambda: late.append(1))
    assert late == [1]


async def test_a_dying_transport_is_not_written_to() -> None:
    producer = Producer()
    client = open_stream(producer)
    client.take()
    client.transport.closed = True
    producer.writers[0].write(b"x")
    assert client.take() == b""
    client.lose()


async def test_end_of_input_ends_a_stream() -> None:
    producer = Producer()
    client = open_stream(producer)
    assert not client.protocol.eof_received()
    assert client.transport.closed
    client.lose()
    assert producer.closed == 1


async def test_the_producer_sees_what_is_buffered() -> None:
    producer = Producer()
    client = open_stream(producer, capacity=1000)
    client.transport.drain()
    producer.writers[0].write(b"x" * 5000)
    assert producer.writers[0].buffered == 5000 + len("1388\r\n\r\n")
    producer.writers[0].write(b"y")  # its own decision
    client.registry.sweep(http1.monotonic() + 3600)
    assert not client.transport.closed
    client.lose()


async def test_a_stream_answered_to_nobody_is_started_closed() -> None:
    seen: list[bool] = []
    gate = asyncio.Event()

    async def later(request: http1.Request) -> Answer:
        try:
            await gate.wait()
        except asyncio.CancelledError:
            pass
        return Stream(200, [], lambda writer: seen.append(writer.closed))

    client = connect(later)
    client.send(GET)
    await asyncio.sleep(0)
    client.lose()
    for _ in range(5):
        await asyncio.sleep(0)
    assert seen == [True]


async def test_draining_closes_after_a_stream() -> None:
    producer = Producer()
    client = open_stream(producer)
    client.registry.drain()
    idle = []
    client.registry.when_idle(lambda: idle.append(1))
    client.registry.close_idle()
    assert not client.transport.closed
    assert idle == []
    producer.writers[0].finish()
    assert idle == [1]
    client.registry.close_idle()
    assert client.transport.closed
    client.lose()


async def test_a_failing_callback_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    producer = Producer()
    client = open_stream(producer)
    calls = []

    def fail() -> None:
        raise RuntimeError

    producer.writers[0].on_close(fail)
    producer.writers[0].on_close(lambda: calls.append(1))
    with caplog.at_level(logging.CRITICAL, "fastapi_core.http"):
        client.lose()
    assert calls == [1]

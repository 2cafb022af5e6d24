"""What streams owe clients that do not read: order, sharing, the limit over all of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core._ext import http1
from fastapi_core.http.exchange import Answer, Response, Stream, StreamWriter
from tests.unit.http.http_support import Client, answers, connect

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
STALLED = 131072
"""What a stream that is behind counts for, whatever it owes."""


class Streams:
    """Clients of one registry, each with a stream; they take a byte and no more."""

    def __init__(self, limit: int = 0, request: bytes = GET) -> None:
        self.registry = http1.Registry(asyncio.get_running_loop(), Response, Stream, max_backlog=limit)
        self.request = request
        self.writers: list[StreamWriter] = []
        self.closed: list[StreamWriter] = []
        self.clients: list[Client] = []

    def __call__(self, request: http1.Request) -> Answer:
        def start(writer: StreamWriter) -> None:
            self.writers.append(writer)
            writer.on_close(lambda: self.closed.append(writer))

        return Stream(200, [], start)

    def open(self, capacity: int = 1) -> tuple[Client, StreamWriter]:
        client = connect(self, registry=self.registry, capacity=capacity)
        client.send(self.request)
        self.clients.append(client)
        client.take()
        return client, self.writers[-1]

    @property
    def owed(self) -> int:
        return self.registry.statistics()["backlog"]

    def end(self) -> None:
        for client in self.clients:
            client.lose()
        self.clients.clear()
        assert self.owed == 0


def framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def test_what_a_client_does_not_take_waits_and_comes_in_order() -> None:
    streams = Streams()
    client, writer = streams.open()
    drained: list[int] = []
    writer.on_drain(lambda: drained.append(1))
    assert writer.congested
    writer.write(b"one")
    writer.write_later(iter([framed(b"two"), framed(b"three")]))
    writer.write(b"four")
    assert client.take() == b""
    assert writer.buffered == client.transport.get_write_buffer_size() + len(framed(b"one") + framed(b"four"))
    while writer.congested:
        client.transport.drain()
    assert client.take() == b"".join(map(framed, (b"one", b"two", b"three", b"four")))
    assert drained
    assert streams.owed == 0
    writer.write(b"five")
    assert client.take() == framed(b"five")
    streams.end()


async def test_a_piece_many_wait_for_counts_once() -> None:
    streams = Streams()
    pairs = [streams.open() for _ in range(10)]
    before = streams.owed
    assert before == 10 * STALLED
    frame = framed(b"x" * 100_000)
    for _, writer in pairs:
        writer.write_framed(frame)
    assert len(frame) <= streams.owed - before < len(frame) + 1000
    for client, writer in pairs:
        while writer.congested:
            client.transport.drain()
        assert client.take() == frame
    assert streams.owed == 0
    streams.end()


async def test_a_large_piece_is_not_given_to_the_transport_at_once() -> None:
    streams = Streams()
    client, writer = streams.open(capacity=100_000)
    client.transport.drain()
    large = framed(b"x" * 1_000_000)
    writer.write_framed(large)
    assert client.transport.get_write_buffer_size() < 200_000
    writer.write_later([large, framed(b"y")])
    while writer.congested:
        client.transport.drain()
        assert client.transport.get_write_buffer_size() < 200_000
    assert client.take() == large + large + framed(b"y")
    assert streams.owed == 0
    streams.end()


async def test_over_the_limit_those_that_owe_most_are_cut() -> None:
    streams = Streams(limit=3 * STALLED + 100_000)
    (little, a), (much, b), (first, c) = (streams.open() for _ in range(3))
    c.write_later(framed(b"i" * 1000) for _ in range(3))
    c.write(b"z" * 90_000)
    a.write(b"a" * 1000)
    b.write(b"b" * 2000)
    assert [w.cut for w in (a, b, c)] == [False] * 3
    a.write(b"a" * 9_000)
    assert [w.cut for w in (a, b, c)] == [True, False, False]
    assert little.transport.aborted
    assert not (much.transport.aborted)
    assert not (first.transport.aborted)
    assert streams.registry.statistics()["cut"] == 1
    a.write(b"more")
    # A stream in its first events only when nothing else is left.
    c.write(b"z" * 400_000)
    assert [w.cut for w in (a, b, c)] == [True, True, True]
    assert streams.owed == 0
    streams.end()
    assert len(streams.closed) == 3


async def test_a_client_that_reads_slowly_is_not_the_first_to_be_cut() -> None:
    streams = Streams(limit=2 * STALLED + 300_000)
    (_, dead), (client, slow) = (streams.open() for _ in range(2))
    dead.write(b"d" * 50_000)
    slow.write(b"s" * 200_000)
    began = http1.monotonic()
    while http1.monotonic() - began < 1.1:  # a second without taking anything
        await asyncio.sleep(0.1)
    client.transport.drain()
    slow.write(b"s" * 100_000)
    assert (dead.cut, slow.cut) == (True, False)
    streams.end()


async def test_a_finished_stream_sends_what_it_owes_then_the_next_answer() -> None:
    streams = Streams(request=GET + GET)
    client, writer = streams.open()
    writer.write(b"last words")
    writer.finish()
    assert writer.closed
    assert streams.closed == [writer]
    assert client.registry.active == 1
    writer.write(b"ignored")
    writer.finish()
    for _ in range(4):
        client.transport.drain()
    assert client.take().startswith(framed(b"last words") + b"0\r\n\r\nHTTP/1.1 200 OK")
    assert len(streams.writers) == 2
    streams.end()


async def test_a_finished_stream_nobody_reads_is_given_up() -> None:
    streams = Streams()
    client, writer = streams.open()
    writer.write(b"x")
    streams.registry.sweep(http1.monotonic() + 3600)
    assert not client.transport.aborted
    writer.finish()
    streams.registry.sweep(http1.monotonic() + 59)
    assert not client.transport.aborted
    streams.registry.sweep(http1.monotonic() + 61)
    assert client.transport.aborted
    streams.end()


@pytest.mark.parametrize("first", ["finish", "drain"])
async def test_and_sooner_when_the_server_goes_down(first: str) -> None:
    streams = Streams()
    client, writer = streams.open()
    writer.write(b"x")
    if first == "drain":
        streams.registry.drain()
    writer.finish()
    streams.registry.drain()
    streams.registry.sweep(http1.monotonic() + 1.5)
    assert client.transport.aborted
    streams.end()


async def test_first_events_nobody_reads_end_the_stream() -> None:
    streams = Streams()
    client, writer = streams.open()
    writer.write_later([framed(b"x" * 100_000)] * 3)
    streams.registry.sweep(http1.monotonic() + 61)
    assert client.transport.aborted
    streams.end()


async def test_first_events_go_out_with_the_head_and_no_faster_than_taken() -> None:
    made = []

    def pieces() -> Iterator[bytes]:
        for number in range(100):
            made.append(number)
            yield framed(b"x" * 10_000)

    def start(writer: StreamWriter) -> None:
        writer.write_later(pieces())
        writer.write(b"end")
        writer.finish()

    client = connect(lambda request: Stream(200, [], start), capacity=100_000)
    client.send(GET)
    assert client.transport.writes < 4
    assert len(made) < 20
    while client.registry.active:
        client.transport.drain()
    (answer,) = answers(client.take())
    assert answer.body == b"x" * 1_000_000 + b"end"
    client.lose()


async def test_http10_has_no_frames() -> None:
    streams = Streams(request=b"GET / HTTP/1.0\r\n\r\n")
    client, writer = streams.open()
    writer.write_framed(framed(b"a"))
    writer.write_later([framed(b"b"), framed(b"c")])
    writer.finish()
    client.transport.drain()
    assert client.take() == b"abc"
    assert client.transport.closed
    streams.end()


async def test_pieces_that_cannot_be_made_cut_the_stream(caplog: pytest.LogCaptureFixture) -> None:
    def pieces() -> Iterator[bytes]:
        yield framed(b"a" * 100_000)
        raise RuntimeError("broken")

    streams = Streams()
    client, writer = streams.open()
    writer.write_later(pieces())
    with caplog.at_level(logging.CRITICAL, "fastapi_core.http"):
        client.transport.drain()
        client.transport.drain()
    assert client.transport.aborted
    streams.end()


steps = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["write", "shared", "later", "drain", "finish", "abort", "lose"])),
    max_size=60,
)


@given(steps=steps, limit=st.sampled_from([0, 4 * STALLED + 3000]))
@settings(max_examples=100, deadline=None)
def test_whatever_happens_bytes_are_in_order_and_the_account_comes_to_nothing(
    steps: list[tuple[int, str]], limit: int
) -> None:
    async def run() -> None:
        streams = Streams(limit)
        pairs = [streams.open(capacity=2000) for _ in range(4)]
        expected = [b"" for _ in pairs]
        got = [b"" for _ in pairs]
        gone: set[int] = set()
        for number, (who, what) in enumerate(steps):
            client, writer = pairs[who]
            data = b"%d:" % number + b"x" * 700
            if what in ("write", "shared", "later"):
                for index in [who] if what != "shared" else range(4):
                    other = pairs[index][1]
                    if other.closed:
                        continue
                    frame = framed(data)
                    expected[index] += frame
                    if what == "later":
                        other.write_later([frame])
                    else:
                        other.write_framed(frame)
            elif what == "drain":
                if who not in gone:
                    client.transport.drain()
            elif what == "finish":
                writer.finish()
            elif what == "abort":
                writer.abort()
                gone.add(who)
            else:
                client.lose()
                gone.add(who)
            if limit:
                assert streams.owed <= limit
            for index, (other_client, _) in enumerate(pairs):
                got[index] += other_client.take()
        for index, (client, writer) in enumerate(pairs):
            if index in gone or writer.cut:
                assert (expected[index] + b"0\r\n\r\n").startswith(got[index])
                continue
            finished = writer.closed
            while writer.congested or (
                finished and client.registry.active and client.transport.get_write_buffer_size()
            ):
                client.transport.drain()
            got[index] += client.take()
            assert got[index] == expected[index] + (b"0\r\n\r\n" if finished else b"")
        streams.end()

    asyncio.run(run())

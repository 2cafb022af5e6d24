"""Whole answers: any bytes in any pieces end in one or in an error, and nothing is left behind."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.http.asking import Whole, ask
from fastapi_core.http.client import BodyError, Target, UpstreamError
from fastapi_core.http.connection import Connection
from fastapi_core.http.pool import Pool

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


TARGET = Target("127.0.0.1", 1)


class Transport:
    """Remembers what is written and whether it is closed."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close


class Line:
    """One connection of a pool, without a socket, that is kept already."""

    def __init__(self) -> None:
        self.pool = Pool()
        self.transport = Transport()
        self.connection = Connection(self.pool, TARGET)
        self.connection.connection_made(cast(Any, self.transport))
        self.pool.give_back(self.connection)

    async def ask(self, pieces: list[bytes], *, limit: int = 1 << 16, lost: bool = True) -> Any:
        """The answer or the error after these bytes and, unless told, the end."""
        task = asyncio.ensure_future(ask(self.pool, TARGET, b"question", limit=limit))
        await asyncio.sleep(0)
        for piece in pieces:
            if not self.transport.closed:
                self.connection.data_received(piece)
        if lost:
            self.connection.connection_lost(None)
        try:
            return await asyncio.wait_for(task, 5)
        except UpstreamError as error:
            return error
        finally:
            self.pool.close()

    @property
    def reusable(self) -> bool:
        return self.connection.usable and self.pool.take(TARGET) is self.connection


PIECES = st.lists(
    st.binary(max_size=30)
    | st.sampled_from(
        (
            OK, b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"Content-Length: 5\r\n", b"\r\n", b"hello",
            b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n", b"Connection: close\r\n", b"HTTP/1.0 500 x\r\n",
            b"Upgrade: x\r\nConnection: Upgrade\r\n", b"HTTP/1.1 204 No Content\r\n\r\n",
        )
    ),
    max_size=8,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(PIECES)
def test_any_bytes_end_in_an_answer_or_an_error(pieces: list[bytes]) -> None:
    async def run() -> None:
        line = Line()
        found = await line.ask([piece for piece in pieces if piece])
        assert isinstance(found, UpstreamError) or found.status >= 200
        assert line.pool.take(TARGET) is None

    asyncio.run(run())


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, len(OK) - 1), max_size=6))
def test_pieces_do_not_matter(cuts: list[int]) -> None:
    edges = [0, *sorted(set(cuts)), len(OK)]
    pieces = [OK[a:b] for a, b in itertools.pairwise(edges)]

    async def run() -> None:
        line = Line()
        task = asyncio.ensure_future(ask(line.pool, TARGET, b"question", limit=100))
        await asyncio.sleep(0)
        for piece in pieces:
            line.connection.data_received(piece)
        assert await task == Whole(200, [(b"content-length", b"2")], b"hi")
        assert line.reusable
        assert line.transport.written == b"question"
        line.pool.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", b"hi"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"hi"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
    ],
)
async def test_bodies(answer: bytes, body: bytes) -> None:
    found = await Line().ask([answer])
    assert (found.status, found.body) == (200, body)


@pytest.mark.parametrize(
    ("pieces", "kind", "text"),
    [
        ([b"SSH-2.0-x\r\n"], UpstreamError, 'malformed HTTP response "SSH-2.0-x"'),
        ([b"HTTP/1.1 2"], UpstreamError, "unexpected EOF"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"], BodyError, "unexpected EOF"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" * 2], None, ""),
        (
            [b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"],
            UpstreamError,
            "a switch of protocols",
        ),
    ],
)
async def test_answers_that_are_none(pieces: list[bytes], kind: type[UpstreamError] | None, text: str) -> None:
    found = await Line().ask(pieces)
    assert type(found) is (kind or Whole)
    assert text in str(found)


async def test_a_long_answer_is_cut_off() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n"
    line = Line()
    found = await line.ask([head, b"x" * 600, b"x" * 600], limit=1000, lost=False)
    assert type(found) is BodyError
    assert str(found) == "the answer is longer than 1000 bytes"
    assert line.transport.closed


async def test_who_stops_waiting_ends_the_connection() -> None:
    line = Line()
    task = asyncio.ensure_future(ask(line.pool, TARGET, b"question", limit=100))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert line.transport.closed


async def test_the_end_of_the_pool_is_an_answer_too() -> None:
    asked = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(100):
            asked.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        pool = Pool()
        target = Target("127.0.0.1", server.sockets[0].getsockname()[1])
        task = asyncio.ensure_future(ask(pool, target, b"question", limit=100))
        await asked.wait()
        pool.close()
        with pytest.raises(UpstreamError, match="shutting down"):
            await asyncio.wait_for(task, 5)


async def test_a_kept_connection_that_was_closed_is_replaced() -> None:
    """Once each server hangs up behind its first answer, when the next question is on its way."""
    served: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(0)
        mine = len(served) - 1
        while await reader.read(100):
            served[mine] += 1
            if served[mine] == 2:
                break
            writer.write(OK)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        target = Target("127.0.0.1", server.sockets[0].getsockname()[1])
        pool = Pool()
        for _ in range(2):
            assert (await ask(pool, target, b"question", limit=100)).body == b"hi"
        assert served == [2, 1]
        with pytest.raises(UpstreamError, match="EOF"):
            await ask(pool, target, b"question", limit=100, repeat=False)
        assert served == [2, 2]
        assert (await ask(pool, target, b"question", limit=100)).body == b"hi"
        with pytest.raises(UpstreamError, match="EOF"):
            await ask(pool, target, b"question", limit=100, fresh=60)
        assert served == [2, 2, 2]
        pool.close()

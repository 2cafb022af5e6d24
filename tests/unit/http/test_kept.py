"""Kept connections: any bytes in any pieces end in an answer or an error, and nothing is left behind."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.http.client import UpstreamError
from fastapi_core.http.kept import _Connection as Connection  # the protocol below the pool

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


class Transport:
    """Remembers what is written and whether it was aborted."""

    def __init__(self) -> None:
        self.written = b""
        self.aborted = False

    def write(self, data: bytes) -> None:
        self.written += data

    def abort(self) -> None:
        self.aborted = True


async def exchange(
    pieces: list[bytes], *, limit: int = 1 << 16, lost: bool = True
) -> tuple[Any, Connection, Transport]:
    """(the answer or the error, the connection, its transport) after these bytes and, unless told, the end."""
    transport = Transport()
    connection = Connection(limit)
    connection.connection_made(cast(Any, transport))
    task = asyncio.ensure_future(connection.ask(b"question"))
    await asyncio.sleep(0)
    for piece in pieces:
        connection.data_received(piece)
    if lost:
        connection.connection_lost(None)
    try:
        return await asyncio.wait_for(task, 5), connection, transport
    except Exception as error:
        return error, connection, transport


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
    found, connection, transport = asyncio.run(exchange(pieces))
    assert not isinstance(found, TimeoutError)
    assert isinstance(found, UpstreamError) or found.status >= 200
    assert connection.answer is None
    if isinstance(found, UpstreamError):
        assert transport.aborted
        assert not connection.reusable


@given(st.lists(st.integers(1, len(OK) - 1), max_size=6))
def test_pieces_do_not_matter(cuts: list[int]) -> None:
    edges = [0, *sorted(set(cuts)), len(OK)]
    pieces = [OK[a:b] for a, b in itertools.pairwise(edges)]
    found, connection, transport = asyncio.run(exchange(pieces, lost=False))
    assert (found.status, found.body, found.headers) == (200, b"hi", {b"content-length": b"2"})
    assert connection.reusable
    assert transport.written == b"question"
    assert not transport.aborted


@pytest.mark.parametrize(
    ("answer", "body", "kept"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", b"hi", False),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"hi", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", b"hi", False),
    ],
)
async def test_bodies(answer: bytes, body: bytes, kept: bool) -> None:
    found, connection, _ = await exchange([answer])
    assert (found.status, found.body) == (200, body)
    assert connection.reusable is kept


async def test_a_long_answer_is_cut_off() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n"
    found, _, transport = await exchange([head, b"x" * 600, b"x" * 600], limit=1000, lost=False)
    assert str(found) == "the answer is longer than 1000 bytes"
    assert transport.aborted


async def test_bytes_nobody_asked_for_end_the_connection() -> None:
    found, connection, transport = await exchange([OK], lost=False)
    assert found.status == 200
    connection.data_received(b"HTTP/1.1 200 OK\r\n\r\n")
    assert transport.aborted
    assert not connection.reusable


async def test_who_stops_waiting_ends_the_connection() -> None:
    transport = Transport()
    connection = Connection(100)
    connection.connection_made(cast(Any, transport))
    task = asyncio.ensure_future(connection.ask(b"question"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert transport.aborted

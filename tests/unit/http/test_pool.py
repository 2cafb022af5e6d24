"""Kept connections: framing of answers however they come, what may be used again, and any bytes at all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.http.client import Target, UpstreamError
from fastapi_core.http.connection import FIELD_LIMIT, HEAD_LIMIT, Connection
from fastapi_core.http.exchange import Header
from fastapi_core.http.pool import Pool

TARGET = Target("127.0.0.1", 1)
OK = b"HTTP/1.1 200 OK\r\n"


class Transport:
    """What a connection needs of one."""

    def __init__(self) -> None:
        self.sent = b""
        self.closing = False
        self.paused = False

    def write(self, data: bytes) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    abort = close

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


class Seen:
    """An exchange that notes what it is told, and minds the order."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[Header] = []
        self.length: int | None = None
        self.body = b""
        self.ended: list[str] = []
        self.trailers: Sequence[Header] = ()
        self.untouched = False
        self.error = ""

    def head(self, status: int, headers: list[Header], length: int) -> None:
        assert not self.status
        assert not self.ended
        self.status, self.headers, self.length = status, headers, length

    def data(self, data: bytes) -> None:
        assert self.status
        assert not self.ended
        self.body += data

    def settle(self) -> None:
        assert not self.ended

    def end(self, trailers: Sequence[Header]) -> None:
        assert self.status
        self.ended.append("end")
        self.trailers = trailers

    def failed(self, error: UpstreamError, *, untouched: bool) -> None:
        self.ended.append("failed")
        self.error, self.untouched = str(error), untouched

    def congested(self) -> None: ...
    def relieved(self) -> None: ...


class Talk:
    """One connection in a pool, without a socket."""

    def __init__(self) -> None:
        self.pool = Pool()
        self.connection = Connection(self.pool, TARGET)
        self.transport = Transport()
        self.connection.connection_made(cast("Any", self.transport))

    def ask(self, *pieces: bytes, head: bool = False, eof: bool = False) -> Seen:
        seen = Seen()
        self.connection.start(seen, b"GET / HTTP/1.1\r\n\r\n", head=head)
        for piece in pieces:
            if not self.transport.closing:
                self.connection.data_received(piece)
        if eof or self.transport.closing:
            self.connection.connection_lost(None)
        return seen


@pytest.fixture
async def talk() -> Talk:
    return Talk()


@pytest.mark.parametrize(
    ("pieces", "body", "kept"),
    [
        ((OK + b"Content-Length: 3\r\n\r\nabc",), b"abc", True),
        ((OK + b"Content-", b"Length: 3\r\n\r\na", b"bc"), b"abc", True),
        ((OK + b"Content-Length: 3\r\nConnection: close\r\n\r\nabc",), b"abc", False),
        ((OK + b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n", b"1\r\nd\r\n0\r\n\r\n"), b"abcd", True),
        ((b"HTTP/1.1 204 No Content\r\n\r\n",), b"", True),
        ((b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",), b"", True),
        ((b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\nx",), b"x", True),
        ((b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",), b"x", False),
    ],
)  # fmt: skip
async def test_whole_answers(talk: Talk, pieces: tuple[bytes, ...], body: bytes, kept: bool) -> None:
    seen = talk.ask(*pieces)
    assert (seen.ended, seen.body) == (["end"], body)
    assert (talk.pool.take(TARGET) is talk.connection) is kept


async def test_a_connection_is_used_again_and_again(talk: Talk) -> None:
    for number in range(3):
        seen = talk.ask(OK + b"X-N: %d\r\nContent-Length: 1\r\n\r\n%d" % (number, number))
        assert seen.headers == [(b"x-n", b"%d" % number), (b"content-length", b"1")]
        assert seen.body == b"%d" % number
        assert talk.pool.take(TARGET) is talk.connection


async def test_head_answers_have_no_body_and_the_connection_goes_on(talk: Talk) -> None:
    seen = talk.ask(OK + b"Content-Length: 500\r\n\r\n", head=True)
    assert seen.ended == ["end"]
    assert seen.length == 0
    assert talk.pool.take(TARGET) is talk.connection
    assert talk.ask(OK + b"Content-Length: 2\r\n\r\nhi").body == b"hi"


async def test_until_the_end(talk: Talk) -> None:
    seen = talk.ask(OK + b"\r\n", b"until", b" the end", eof=True)
    assert seen.ended == ["end"]
    assert seen.body == b"until the end"


async def test_trailers(talk: Talk) -> None:
    seen = talk.ask(OK + b"Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n1\r\na\r\n0\r\nX-Sum: 7\r\n\r\n")
    assert seen.trailers == [(b"x-sum", b"7")]


@pytest.mark.parametrize(
    "pieces",
    [
        (OK + b"Content-Length: 5\r\n\r\nabc",),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabc",),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",),
        (OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",),
        (OK + b"Content-Length: -3\r\n\r\n",),
        (OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",),
        (OK + b"Transfer-Encoding: gzip\r\n\r\nabc",),
        (b"SSH-2.0-OpenSSH\r\n",),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",),
        (OK + b"X: " + b"a" * (HEAD_LIMIT + 1),),
        (OK, *[b"X: y\r\n"] * (FIELD_LIMIT + 1)),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * (HEAD_LIMIT // 20),),
        (b"HTTP/1.1 099 X\r\nContent-Length: 3\r\n\r\nabc" + OK + b"Content-Length: 3\r\n\r\ndef",),
        (b"HTTP/1.1 000 X\r\nContent-Length: 3\r\n\r\nabc",),
        (b"HTTP/1.1 100 Continue\r\nContent-Length: 3\r\n\r\nabc" + OK + b"Content-Length: 3\r\n\r\ndef",),
        (b"",),
    ],
)
async def test_lies(talk: Talk, pieces: tuple[bytes, ...]) -> None:
    seen = talk.ask(*pieces, eof=True)
    assert seen.ended == ["failed"]
    assert seen.error
    assert talk.pool.take(TARGET) is None


async def test_what_nobody_asked_for_ends_the_connection(talk: Talk) -> None:
    """Else the next request on it would get that answer."""
    seen = talk.ask(OK + b"Content-Length: 1\r\n\r\nx" + OK + b"Content-Length: 5\r\n\r\nwrong")
    assert seen.body == b"x"
    assert talk.transport.closing
    assert talk.pool.take(TARGET) is None
    late = Talk()
    late.ask(OK + b"Content-Length: 1\r\n\r\nx")
    late.connection.data_received(OK + b"Content-Length: 5\r\n\r\nwrong")
    assert late.transport.closing
    assert late.pool.take(TARGET) is None


async def test_a_kept_connection_that_ends_has_seen_nothing(talk: Talk) -> None:
    first = talk.ask(eof=True)
    assert first.ended == ["failed"]
    assert not first.untouched, "a fresh connection may have been read from"
    again = Talk()
    again.ask(OK + b"Content-Length: 0\r\n\r\n")
    assert again.ask(eof=True).untouched
    half = Talk()
    half.ask(OK + b"Content-Length: 0\r\n\r\n")
    assert not half.ask(b"HTTP/1.1 2", eof=True).untouched


@given(
    st.lists(
        st.sampled_from(
            [
                OK, b"HTTP/1.1 100 Continue\r\n", b"HTTP/1.1 204 No\r\n", b"HTTP/1.1 99 x\r\n", b"\r\n", b"\r\n\r\n",
                b"Content-Length: 3\r\n", b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n", b"3\r\nabc\r\n",
                b"0\r\n\r\n", b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"abc", b"X: y\r\n", b"\x00",
            ]
        )
        | st.binary(max_size=8),
        max_size=12,
    ),
    st.booleans(),
)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_any_bytes_end_once(pieces: list[bytes], head: bool) -> None:
    async def run() -> None:
        talk = Talk()
        seen = talk.ask(*(piece for piece in pieces if piece), head=head, eof=True)
        assert len(seen.ended) == 1
        # An answer that was told whole is the same in one piece.
        whole = Talk().ask(b"".join(pieces) or b"\x00", head=head, eof=True)
        assert len(whole.ended) == 1
        if seen.ended == ["end"] and whole.ended == ["end"]:
            assert (seen.status, seen.body) == (whole.status, whole.body)

    asyncio.run(run())


@given(
    st.sampled_from([200, 201, 404, 500]),
    st.lists(st.tuples(st.from_regex(rb"X-[A-Za-z]{1,5}", fullmatch=True), st.from_regex(rb"[a-z ]{0,9}", fullmatch=True)), max_size=5),
    st.lists(st.binary(min_size=1, max_size=20), max_size=4),
    st.booleans(),
    st.lists(st.integers(1, 40), min_size=1, max_size=30),
)  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_every_division_is_the_same_answer(
    status: int, headers: list[Header], body: list[bytes], chunked: bool, cuts: list[int]
) -> None:
    data = b"HTTP/1.1 %d X\r\n" % status + b"".join(b"%b: %b\r\n" % h for h in headers)
    if chunked:
        data += (
            b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in body) + b"0\r\n\r\n"
        )
    else:
        data += b"Content-Length: %d\r\n\r\n" % sum(map(len, body)) + b"".join(body)
    pieces, position = [], 0
    for cut in cuts:
        pieces.append(data[position : position + cut])
        position += cut
    pieces.append(data[position:])

    async def run() -> None:
        talk = Talk()
        seen = talk.ask(*(piece for piece in pieces if piece))
        assert seen.ended == ["end"]
        assert seen.status == status
        assert seen.body == b"".join(body)
        assert [(n, v) for n, v in seen.headers if n.startswith(b"x-")] == [(n.lower(), v.strip()) for n, v in headers]
        assert talk.pool.take(TARGET) is talk.connection

    asyncio.run(run())


# The pool with sockets


async def test_the_limit_makes_requests_wait_and_idle_ones_go() -> None:
    accepted = 0
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        accepted += 1
        while await reader.read(1000):
            writer.write(OK + b"Content-Length: 1\r\n\r\nx")
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        gone.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        target = Target("127.0.0.1", server.sockets[0].getsockname()[1])
        pool = Pool(limit=1, idle_timeout=0.04)
        first = await pool.connect(target)
        waiting = asyncio.ensure_future(pool.connect(target))
        given_up = asyncio.ensure_future(pool.connect(target))
        await asyncio.sleep(0)
        given_up.cancel()
        done = asyncio.get_running_loop().create_future()
        seen = Seen()
        seen.end = lambda trailers: done.set_result(None)  # type: ignore[method-assign]
        first.start(seen, b"GET / HTTP/1.1\r\n\r\n")
        await done
        assert await waiting is first
        assert accepted == 1
        pool.give_back(first)
        assert pool.statistics() == {"open": 1, "idle": 1}
        async with asyncio.timeout(5):
            while pool.statistics()["open"]:
                await asyncio.sleep(0.01)
            await gone.wait()
        pool.close()


async def test_what_cannot_be_reached() -> None:
    pool = Pool()
    with pytest.raises(UpstreamError, match="connection refused"):
        await pool.connect(TARGET)
    assert pool.statistics() == {"open": 0, "idle": 0}


@pytest.mark.parametrize("host", ["a" * 64 + ".example.com", "a..b", "b" * 300])
async def test_what_is_no_name_of_a_host(host: str) -> None:
    pool = Pool()
    with pytest.raises(UpstreamError, match=f"dial tcp: lookup {host}: no such host"):
        await pool.connect(Target(host, 1))
    assert pool.statistics() == {"open": 0, "idle": 0}


async def test_no_more_wait_than_the_queue_has_places_and_nobody_jumps_it() -> None:
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        gone.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        target = Target("127.0.0.1", server.sockets[0].getsockname()[1])
        pool = Pool(limit=1, queue=2)
        first = await pool.connect(target)
        waiting = [asyncio.ensure_future(pool.connect(target)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(UpstreamError, match="too many requests wait"):
            await pool.connect(target)
        pool.give_back(first)
        assert pool.take(target) is None
        assert await waiting[0] is first
        pool.give_back(first)
        assert await waiting[1] is first
        pool.give_back(first)
        assert pool.take(target) is first
        pool.close()
        async with asyncio.timeout(5):
            await gone.wait()

"""Answers that are passed on: against a scripted server, and against any bytes at all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.http.client import Target, UpstreamError
from fastapi_core.rest.upstream import Reply, Upstreams


@contextlib.asynccontextmanager
async def answering(*pieces: bytes) -> AsyncIterator[Target]:
    """A server that reads a head, sends `pieces` and hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield Target("127.0.0.1", server.sockets[0].getsockname()[1])


async def ask(target: Target, method: str = "GET") -> tuple[Reply, bytes]:
    reply = await Upstreams().fetch(target, method, "/x", [(b"host", b"h")])
    return reply, await reply.whole(1 << 20)


async def result(*pieces: bytes, method: str = "GET") -> tuple[int, bytes]:
    async with answering(*pieces) as target:
        reply, body = await ask(target, method)
        return reply.status, body


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ((OK + b"Content-Length: 3\r\n\r\nabcdef",), (200, b"abc")),
        ((OK + b"\r\n", b"until", b" the end"), (200, b"until the end")),
        (
            (OK + b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n", b"2\r\nde\r\n0\r\nTrailer: x\r\n\r\n"),
            (200, b"abcde"),
        ),
        ((b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\n!",), (200, b"!")),
        ((b"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n",), (204, b"")),
        ((b"HTTP/1.0 404\r\n\r\nno",), (404, b"no")),
    ],
)
def test_answers(pieces: tuple[bytes, ...], expected: tuple[int, bytes]) -> None:
    assert asyncio.run(result(*pieces)) == expected


def test_answers_to_head_have_no_body() -> None:
    assert asyncio.run(result(OK + b"Content-Length: 5\r\n\r\n", method="HEAD")) == (200, b"")


@pytest.mark.parametrize(
    "pieces",
    [
        (),
        (b"HTTP/1.1 200 OK\r\n",),
        (b"SSH-2.0-x\r\n\r\n",),
        (b"HTTP/1.1 abc\r\n\r\n",),
        (b"HTTP/1.1 99\r\n\r\n",),
        (OK + b"no colon\r\n\r\n",),
        (OK + b"Content-Length: -1\r\n\r\n",),
        (OK + b"Content-Length: 5\r\n\r\nabc",),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nab",),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabXX0\r\n\r\n",),
    ],
)
def test_answers_that_are_none(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(UpstreamError):
        asyncio.run(result(*pieces))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.binary(max_size=60), max_size=4), st.sampled_from([b"", OK, OK + b"Transfer-Encoding: chunked\r\n\r\n"])
)
def test_any_bytes_end_in_an_answer_or_an_error(pieces: list[bytes], head: bytes) -> None:
    async def run() -> None:
        with contextlib.suppress(UpstreamError):
            await asyncio.wait_for(result(head, *pieces), 10)

    asyncio.run(run())


def test_nobody_there() -> None:
    async def run() -> str:
        server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        with pytest.raises(UpstreamError) as raised:
            await ask(Target("127.0.0.1", port))
        return str(raised.value).replace(str(port), "PORT")

    assert asyncio.run(run()) == "dial tcp 127.0.0.1:PORT: connect: connection refused"


def test_authority_of_an_ipv6_address() -> None:
    assert Target("fd00::1", 80).authority == "[fd00::1]:80"

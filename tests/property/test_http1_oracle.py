"""The HTTP parser against its oracle: same requests, same refusals, however the bytes are cut."""

from __future__ import annotations

import asyncio
import re
from email.utils import formatdate
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fastapi_core._ext import http1
from fastapi_core.http.exchange import Response, Stream
from tests.oracles import http1 as oracle
from tests.unit.http.http_support import MockTransport

HEADER_LIMIT = 300
BODY_LIMIT = 40

Outcome = tuple[list[oracle.Message], int | None]


def parse(pieces: list[bytes]) -> Outcome:
    """What the compiled parser makes of a stream that arrives in pieces."""
    parser = http1.RequestParser(http1.Limits(header=HEADER_LIMIT, body=BODY_LIMIT))
    messages: list[oracle.Message] = []
    for piece in pieces:
        parser.feed(piece)
        try:
            while (request := parser.next()) is not None:
                target = request.target.encode("utf-8", "surrogateescape")
                messages.append(
                    oracle.Message(request.method, target, tuple(request.headers), request.body, parser.keep_alive)
                )
                if not parser.keep_alive:
                    return messages, None
        except http1.RefusedError as error:
            return messages, error.status
    return messages, None


def cut(stream: bytes, points: list[int]) -> list[bytes]:
    edges = [0, *sorted({point % (len(stream) + 1) for point in points}), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges) if start < end]


def mostly(good: list[bytes], bad: list[bytes]) -> st.SearchStrategy[bytes]:
    """Nearly always one of the good; every rule still meets the bad ones often enough over a run."""
    return st.sampled_from(good * (1 + 12 * len(bad) // len(good)) + bad)


methods = mostly(
    [b"GET", b"POST", b"HEAD", b"CONNECT", b"PRI", b"OPTIONS", b"M-SEARCH", b"frob", b"SOURCE"], [b"G@T", b""]
)
targets = mostly(
    [
        b"/",
        b"/a/b?x=1&y=%zz",
        b"/%41",
        b"http://h/p?q",
        b"https://h",
        b"/\xc3\xa9",
        b"/\xff#f",
        b'/"<>{}|\\^`',
        b"//x",
        b"/?",
    ],
    [b"*", b"/%41%zz", b"http:///p", b"h:80", b"/a b", b"/%", b"HTTP://h?x"],
)
versions = mostly(
    [b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.7"], [b"HTTP/2.0", b"HTTP/0.9", b"HTTP/11", b"http/1.1"]
)
fields = mostly(
    [
        b"Accept: */*",
        b"X:",
        b"X: \t v \t",
        b"X: \xff",
        b"Connection: close",
        b"Connection: keep-alive",
        b"Connection: Upgrade",
        b"Upgrade: h2c",
        b"upgrade: websocket",
        b"_pgrade: x",
        b"Connection: x, close",
        b"Expect: 100-continue",
        b"Keep-Alive: 5",
        b"Proxy-Connection: close",
        b"TE: trailers",
    ],
    [
        b"X : v",
        b" folded",
        b"\tfolded",
        b"X: a\x01",
        b"Host: h",
        b"Host: b@d",
        b"Expect: tea",
        b"Nocolon",
        b": v",
        b"X\x00: v",
        b"Content-Length: +4",
        b"Content-Length: 4, 4",
        b"Content-Length: ",
        b"Content-Length: 0x4",
        b"Content-Length: 99999999999999999999",
        b"Transfer-Encoding: gzip",
        b"Transfer-Encoding: gzip, chunked",
        b"Transfer-Encoding: identity",
        b"transfer-encoding: chunked",
    ],
)
endings = mostly([b"\r\n"], [b"\n", b"\r", b"\r\r\n", b""])
sizes = mostly(
    [b"%x", b"%X", b"000%x", b"%x;a", b'%x;a=b;c="q\\"\xe9"'],
    [b"%x;", b" %x", b"%x ", b"+%x", b"0x%x", b"%x;a = b", b'%x;a="'],
)
trailers = mostly(
    [b"", b"T: v\r\n", b"T: v\r\nU:\r\n"], [b"Content-Length: 3\r\n", b"T : v\r\n", b"Transfer-Encoding: chunked\r\n"]
)


@st.composite
def chunked_bodies(draw: st.DrawFn) -> bytes:
    parts = []
    for _ in range(draw(st.integers(0, 3))):
        data = draw(st.binary(min_size=1, max_size=18))
        parts.append(draw(sizes) % len(data) + draw(endings) + data + draw(endings))
    last = draw(mostly([b"0", b"000", b"0;x"], [b""]))
    return b"".join(parts) + last + draw(endings) + draw(trailers) + draw(endings)


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    lines = [b" ".join([draw(methods), draw(targets), draw(versions)]), draw(mostly([b"Host: h"], [b"X: h", b"Host:"]))]
    lines += draw(st.lists(fields, max_size=3))
    kind = draw(mostly([b"none", b"length", b"chunked"], [b"both", b"twice"]))
    data = draw(st.binary(max_size=BODY_LIMIT + 3))
    body = b"" if kind == b"none" else data
    if kind in (b"length", b"both", b"twice"):
        lines.append(b"Content-Length: %d" % len(data))
    if kind == b"twice":
        lines.append(b"content-length: %d" % draw(st.sampled_from([len(data), 0])))
    if kind in (b"chunked", b"both"):
        lines.append(b"Transfer-Encoding: chunked")
        body = draw(chunked_bodies())
    return b"".join(line + draw(endings) for line in lines) + draw(endings) + body


UPGRADE_WITH_BODY = (
    b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 3\r\n\r\nabc"
    b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
)
streams = st.lists(messages(), min_size=1, max_size=3).map(b"".join)
points = st.lists(st.integers(0, 1 << 16), max_size=6)


@settings(max_examples=200, deadline=None)
@given(streams, points)
@example(UPGRADE_WITH_BODY, [])
@example(b"GET /" + b"a" * HEADER_LIMIT + b" HTTP/1.1\r\n\r\n", [200])
@example(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * (BODY_LIMIT + 1), [])
def test_parser_agrees_with_the_oracle(stream: bytes, points: list[int]) -> None:
    expected = oracle.parse(stream, HEADER_LIMIT, BODY_LIMIT)
    assert parse([stream]) == expected
    assert parse(cut(stream, points)) == expected


@settings(max_examples=60, deadline=None)
@given(streams)
def test_one_byte_at_a_time_gives_the_same(stream: bytes) -> None:
    assert parse([stream[i : i + 1] for i in range(len(stream))]) == parse([stream])


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), points)
def test_any_bytes_are_parsed_or_refused(stream: bytes, points: list[int]) -> None:
    expected = oracle.parse(stream, HEADER_LIMIT, BODY_LIMIT)
    assert parse(cut(stream, points)) == expected


@settings(max_examples=200, deadline=None)
@given(messages(), st.integers(0, 400), st.binary(max_size=3))
def test_a_damaged_message_is_judged_alike(message: bytes, place: int, patch: bytes) -> None:
    place %= len(message)
    damaged = message[:place] + patch + message[place + 1 :]
    assert parse([damaged]) == oracle.parse(damaged, HEADER_LIMIT, BODY_LIMIT)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=300), max_size=5))
def test_unframed_undoes_chunk_framing(pieces: list[bytes]) -> None:
    framed = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    assert http1.unframed(framed) == b"".join(pieces)


@pytest.mark.parametrize("lines", [1000, 1001])
def test_number_of_field_lines(lines: int) -> None:
    stream = b"GET / HTTP/1.0\r\n" + b"a:\r\n" * lines + b"\r\n"
    parser = http1.RequestParser(http1.Limits())
    parser.feed(stream)
    found, status = oracle.parse(stream, 1 << 20, 0)
    if status is None:
        assert parser.next() is not None
        assert len(found) == 1
    else:
        with pytest.raises(http1.RefusedError):
            parser.next()


def converse(pieces: list[bytes]) -> tuple[bytes, bool]:
    """What a connected protocol answers to a stream in pieces, and whether it ended the connection."""
    loop = asyncio.new_event_loop()
    registry = http1.Registry(loop, Response, Stream)
    transport = MockTransport()
    protocol = http1.HTTP1Protocol(answer, registry, http1.Limits(header=HEADER_LIMIT, body=BODY_LIMIT))
    protocol.connection_made(transport)  # type: ignore[arg-type]
    for piece in pieces:
        protocol.data_received(piece)
    ended = transport.closed or transport.eof
    protocol.connection_lost(None)
    loop.close()
    without_dates = re.sub(rb"Date: [^\r]*\r\n", b"", bytes(transport.sent))
    return without_dates.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b""), ended


def answer(request: http1.Request) -> Response:
    return Response(200, [], b"%d %s" % (len(request.headers), request.body))


@settings(max_examples=100, deadline=None)
@given(streams, points)
def test_a_connection_answers_alike_however_the_bytes_are_cut(stream: bytes, points: list[int]) -> None:
    whole = converse([stream])
    assert converse(cut(stream, points)) == whole
    found, status = oracle.parse(stream, HEADER_LIMIT, BODY_LIMIT)
    assert whole[0].count(b"HTTP/1.1 ") >= len(found) + (status is not None)
    assert whole[1] == (status is not None or any(not message.keep_alive for message in found))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 250_000_000_000))
def test_dates_are_those_of_the_library(second: int) -> None:
    assert http1.http_date(second).decode() == formatdate(second, usegmt=True)


def test_refusal_texts_name_no_internals() -> None:
    parser = http1.RequestParser(http1.Limits())
    parser.feed(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(http1.RefusedError) as refused:
        parser.next()
    assert refused.value.text == "missing required Host header"

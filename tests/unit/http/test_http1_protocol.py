"""One connection on a mock transport: requests, answers, order, ends."""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import AsyncIterator
from email.utils import parsedate_to_datetime

import pytest

from fastapi_core._ext import http1
from fastapi_core.http.exchange import Answer, Response, Stream, StreamWriter
from tests.unit.http.http_support import answers, connect

TEXT = (b"Content-Type", b"text/plain")
GET = b"GET /x?y=1 HTTP/1.1\r\nHost: h\r\n\r\n"


@pytest.fixture
async def waiting() -> AsyncIterator[dict[str, asyncio.Future[Answer]]]:
    """Futures that `later` hands out by path."""
    futures: dict[str, asyncio.Future[Answer]] = {}
    yield futures
    for future in futures.values():
        future.cancel()


async def turn() -> None:
    """Let callbacks that are ready run."""
    for _ in range(5):
        await asyncio.sleep(0)


def echo(request: http1.Request) -> Answer:
    return Response(200, [TEXT], f"{request.method} {request.target} ".encode() + request.body)


async def test_request_fields() -> None:
    seen: list[http1.Request] = []

    def handler(request: http1.Request) -> Answer:
        seen.append(request)
        return Response(200, [], b"ok")

    client = connect(handler)
    client.send(b"POST /a%20b?q=%zz HTTP/1.1\r\nHost: h\r\nX-Two: 1\r\nx-two:  2 \r\nContent-Length: 3\r\n\r\nabc")
    request = seen.pop()
    assert (request.method, request.target, request.path, request.query) == ("POST", "/a%20b?q=%zz", "/a%20b", "q=%zz")
    assert request.headers == [(b"host", b"h"), (b"x-two", b"1"), (b"x-two", b"2"), (b"content-length", b"3")]
    assert request.body == b"abc"
    assert request.header(b"x-two") == b"1"
    assert request.header(b"none") is None
    assert request.header_all(b"x-two") == [b"1", b"2"]
    assert request.connection.peer == "192.0.2.1:4711"
    assert not request.connection.tls
    assert request.connection.peer_certificate is None
    assert not request.upgrade
    request.connection.memo["k"] = 1
    client.send(GET)
    assert seen.pop().connection.memo == {"k": 1}
    client.lose()


async def test_answer_head() -> None:
    client = connect(lambda request: Response(201, [TEXT, (b"X", b"a\r\nEvil: 1")], b"body"))
    client.send(GET)
    (answer,) = answers(client.take())
    assert client.transport.writes == 1
    assert answer.status == 201
    assert answer.body == b"body"
    assert list(answer.headers) == ["content-type", "x", "date", "content-length"]
    assert answer.headers["x"] == "a  Evil: 1"
    assert parsedate_to_datetime(answer.headers["date"]).tzinfo is not None
    client.lose()


async def test_the_servers_own_fields_are_not_taken_from_the_handler() -> None:
    own = [
        (b"Content-Length", b"99"),
        (b"transfer-encoding", b"chunked"),
        (b"DATE", b"then"),
        (b"Connection", b"close"),
        TEXT,
    ]
    client = connect(lambda request: Response(200, own, b"body"))
    client.send(GET)
    assert client.take() == (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: then\r\n"
        b"Content-Length: 4\r\nConnection: close\r\n\r\nbody"
    )
    assert client.transport.closed
    client.lose()


@pytest.mark.parametrize("status", [204, 304])
async def test_statuses_without_body(status: int) -> None:
    client = connect(lambda request: Response(status, [], b"never"))
    client.send(GET)
    sent = client.take()
    assert sent.endswith(b"\r\n\r\n")
    assert b"Content-Length" not in sent
    client.lose()


async def test_head_has_the_length_of_the_body_it_leaves_out() -> None:
    client = connect(lambda request: Response(200, [], b"x" * 300_000, compress=True))
    client.send(b"HEAD / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n" + GET)
    sent = client.take()
    head, _, rest = sent.partition(b"\r\n\r\n")
    assert b"Content-Length: 300000" in head
    assert rest.startswith(b"HTTP/1.1 200 OK")
    client.lose()


async def test_pipelined_answers_keep_their_order(waiting: dict[str, asyncio.Future[Answer]]) -> None:
    order: list[str] = []

    def handler(request: http1.Request) -> object:
        order.append(request.path)
        if request.path == "/slow":
            return waiting.setdefault("/slow", asyncio.get_running_loop().create_future())
        return echo(request)

    client = connect(handler)  # type: ignore[arg-type]
    for path in ("/a", "/slow", "/b"):
        client.send(f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    assert order == ["/a", "/slow"]
    assert len(answers(client.take())) == 1
    waiting["/slow"].set_result(Response(200, [], b"slow"))
    await turn()
    assert [answer.body for answer in answers(client.take())] == [b"slow", b"GET /b "]
    client.lose()


async def test_a_burst_lets_others_have_their_turn() -> None:
    client = connect(echo)
    client.send(GET * 50)
    first = len(answers(client.take()))
    assert first < 50
    await turn()
    assert first + len(answers(client.take())) == 50
    client.lose()


async def test_a_flood_of_quick_requests_is_not_read_faster_than_answered() -> None:
    client = connect(echo)
    count = 0
    while client.transport.reading:
        client.send(GET * 100)
        count += 100
        assert count < 10_000
    assert client.protocol.eof_received() is True
    for _ in range(count):
        await asyncio.sleep(0)
    assert client.transport.closed
    assert len(answers(client.take())) == count
    client.lose()


async def test_reading_stops_while_requests_pile_up(waiting: dict[str, asyncio.Future[Answer]]) -> None:
    def handler(request: http1.Request) -> object:
        return waiting.setdefault("/", asyncio.get_running_loop().create_future()) if not waiting else echo(request)

    client = connect(handler)  # type: ignore[arg-type]
    client.send(GET + b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n" + b"x" * 1000)
    assert client.transport.reading
    client.send(b"x" * 99_000)
    assert not client.transport.reading
    waiting["/"].set_result(Response(200, [], b""))
    await turn()
    assert client.transport.reading
    assert len(answers(client.take())[1].body) == 100_000 + len("POST / ")
    client.lose()


async def test_a_slow_reader_holds_back_its_own_next_answer() -> None:
    client = connect(lambda request: Response(200, [], b"x" * 400_000), capacity=100_000)
    client.send(GET + GET)
    total = len(client.take())
    assert total < 350_000
    assert client.registry.active == 1
    while client.registry.active:
        client.transport.drain()
        total += len(client.take())
    client.transport.drain()
    total += len(client.take())
    assert 800_000 < total < 801_000
    client.lose()


@pytest.mark.parametrize("sizes", [[10] * 20_000, [300_000, 5, 0, 70_000, 1], [65_536], [65_537], [0, 0], []])
async def test_a_list_of_chunks_arrives_whole(sizes: list[int]) -> None:
    body = [bytes([65 + index % 26]) * size for index, size in enumerate(sizes)]
    client = connect(lambda request: Response(200, [], body), capacity=1000)
    client.send(GET)
    sent = client.take()
    while client.registry.active:
        client.transport.drain()
        sent += client.take()
    (answer,) = answers(sent)
    assert answer.body == b"".join(body)
    assert client.transport.writes < 20
    client.lose()


async def test_gzip_only_for_large_bodies_of_clients_that_take_it() -> None:
    large = bytes(range(256)) * 1024

    def handler(request: http1.Request) -> Answer:
        body: bytes | list[bytes] = [large[:1000], large[1000:]] if request.path == "/list" else large
        return Response(200, [(b"Vary", b"Accept")], b"small" if request.path == "/small" else body, compress=True)

    async def ask(path: str, encoding: str) -> tuple[bytes, bytes]:
        client = connect(handler)
        client.send(f"GET {path} HTTP/1.1\r\nHost: h\r\nAccept-Encoding: {encoding}\r\n\r\n".encode())
        while client.registry.active:
            await asyncio.sleep(0.001)
        head, _, body = client.take().partition(b"\r\n\r\n")
        client.lose()
        return head, body

    for path in ("/", "/list"):
        head, body = await ask(path, "br, gzip")
        assert b"\r\nContent-Encoding: gzip" in head
        assert b"\r\nVary: Accept\r\n" in head
        assert b"\r\nVary: Accept-Encoding\r\n" in head
        assert gzip.decompress(body) == large
    for path, encoding in (("/small", "gzip"), ("/", "br, deflate"), ("/", "xgzip")):
        head, body = await ask(path, encoding)
        assert b"Content-Encoding" not in head


async def test_client_gone_while_its_answer_is_compressed() -> None:
    client = connect(lambda request: Response(200, [], bytes(3_000_000), compress=True))
    client.send(b"GET / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n")
    client.lose()
    assert client.registry.active == 0
    await asyncio.get_running_loop().run_in_executor(None, lambda: None)
    await asyncio.get_running_loop().shutdown_default_executor()
    assert client.take() == b""


async def test_disconnect_cancels_the_task_and_tells_the_request() -> None:
    cancelled, told = [], []

    async def wait(request: http1.Request) -> Answer:
        request.on_disconnect(lambda: told.append(request.path))
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.append(request.path)
            raise
        return Response(200, [])

    client = connect(wait)
    client.send(GET)
    await turn()
    assert client.registry.active == 1
    client.lose()
    await turn()
    assert (cancelled, told) == (["/x"], ["/x"])
    assert client.registry.active == 0


async def test_an_answered_request_is_not_told_of_the_disconnect() -> None:
    told = []

    def handler(request: http1.Request) -> Answer:
        request.on_disconnect(lambda: told.append(1))
        return Response(200, [])

    client = connect(handler)
    client.send(GET)
    client.lose()
    assert told == []


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_failing_handler_is_a_500_and_the_end(asynchronous: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def fail_later(request: http1.Request) -> Answer:
        raise RuntimeError("secret")

    def fail(request: http1.Request) -> Answer:
        raise RuntimeError("secret")

    client = connect(fail_later if asynchronous else fail)
    with caplog.at_level(logging.CRITICAL, "fastapi_core.http"):
        client.send(GET)
        await turn()
    (answer,) = answers(client.take())
    assert (answer.status, answer.body) == (500, b"500 Internal Server Error")
    assert answer.headers["connection"] == "close"
    assert client.transport.closed
    client.lose()


async def test_a_task_cancelled_by_others_cuts_the_connection() -> None:
    tasks: list[asyncio.Future[Answer]] = []

    def handler(request: http1.Request) -> asyncio.Future[Answer]:
        tasks.append(asyncio.get_running_loop().create_future())
        return tasks[0]

    client = connect(handler)
    client.send(GET)
    tasks[0].cancel()
    await turn()
    assert client.transport.aborted
    client.lose()


@pytest.mark.parametrize(
    ("head", "closes", "says"),
    [
        (b"HTTP/1.1\r\nHost: h", False, None),
        (b"HTTP/1.1\r\nHost: h\r\nConnection: close", True, "close"),
        (b"HTTP/1.0\r\nHost: h", True, "close"),
        (b"HTTP/1.0\r\nConnection: keep-alive", False, "keep-alive"),
    ],
)
async def test_keep_alive(head: bytes, closes: bool, says: str | None) -> None:
    client = connect(echo)
    client.send(b"GET / " + head + b"\r\n\r\n")
    (answer,) = answers(client.take())
    assert client.transport.closed is closes
    assert answer.headers.get("connection") == says
    client.lose()


async def test_continue_is_sent_only_when_the_body_is_wanted_and_missing() -> None:
    head = b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: "
    client = connect(echo, limits=http1.Limits(body=10))
    client.send(head + b"3\r\n\r\n")
    assert client.take() == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"abc")
    assert answers(client.take())[0].body == b"POST / abc"
    client.send(head + b"3\r\n\r\nabc")
    assert answers(client.take())[0].status == 200
    client.send(head + b"11\r\n\r\n")
    assert answers(client.take())[0].status == 413
    client.lose()


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_limit_is_answered_before_it_has_come(chunked: bool) -> None:
    def too_large(request: http1.Request) -> Answer:
        return Response(413, [TEXT], f"{request.path} {len(request.body)}".encode())

    client = connect(echo, limits=http1.Limits(body=10), too_large=too_large)
    if chunked:
        client.send(b"POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n5\r\n")
    else:
        client.send(b"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n")
    (answer,) = answers(client.take())
    assert (answer.status, answer.body, answer.headers["connection"]) == (413, b"/p 0", "close")
    assert not client.transport.closed  # the client may still be writing: a reset would lose the answer
    client.send(b"x" * 11)
    client.registry.sweep(http1.monotonic() + 10)
    assert client.transport.closed
    assert client.take() == b""
    client.lose()


async def test_the_hook_for_large_bodies_may_wait_and_reading_goes_on_afterwards() -> None:
    gate = asyncio.Event()

    async def too_large(request: http1.Request) -> Answer:
        await gate.wait()
        return Response(413, [], b"no")

    client = connect(echo, limits=http1.Limits(body=10), too_large=too_large)
    client.send(b"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n")
    client.send(b"x" * 150_000)
    assert not client.transport.reading
    await turn()
    gate.set()
    await turn()
    assert answers(client.take())[0].body == b"no"
    assert client.transport.reading
    client.send(b"x" * 50_000)
    assert client.transport.closed
    client.lose()


async def test_the_body_of_a_refused_request_is_dropped_and_counted() -> None:
    client = connect(echo, limits=http1.Limits(body=10))
    client.send(b"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n12345")
    assert not client.transport.closed
    client.send(b"678901")
    assert client.transport.closed
    client.lose()


async def test_options_of_the_server_itself() -> None:
    client = connect(lambda request: Response(500, []))
    client.send(b"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n")
    (answer,) = answers(client.take())
    assert (answer.status, answer.headers["content-length"]) == (200, "0")
    client.lose()


async def test_upgrade_offers_are_flagged_and_can_be_declined() -> None:
    seen: list[tuple[bool, bytes]] = []

    def handler(request: http1.Request) -> Answer:
        seen.append((request.upgrade, request.body))
        return Response(200, [], b"")

    client = connect(handler)
    client.send(
        b"POST / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n\r\nabc" + GET
    )
    assert seen == [(True, b"abc"), (False, b"")]
    client.lose()


@pytest.mark.parametrize(
    ("data", "status", "text"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400, "400 Bad Request: missing required Host header"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400, "400 Bad Request: too many Host headers"),
        (b"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400, "400 Bad Request"),
        (b"GET / HTTP/1.1\n", 400, "400 Bad Request"),
        (b"GET / HTTP/1.1\r\nHost: a\r\n x\r\n", 400, "400 Bad Request"),
        (b"GET / HTTP/1.1\r\nHost : a\r\n", 400, "400 Bad Request"),
        (b"\x16\x03\x01\x02\x00", 400, "400 Bad Request"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, "400 Bad Request"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400, "400 Bad Request"),
        (b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
         b"Content-Length: 1\r\n\r\n", 400, "400 Bad Request"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\n", 400, "400 Bad Request"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501,
         "501 Not Implemented: unsupported transfer encoding"),
        (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505, "505 HTTP Version Not Supported: unsupported protocol version"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n", 417, "417 Expectation Failed"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 2000, 431, "431 Request Header Fields Too Large"),
    ],
)  # fmt: skip
async def test_refused_without_the_handler(data: bytes, status: int, text: str) -> None:
    client = connect(lambda request: Response(500, []), limits=http1.Limits(header=2000))
    client.send(data)
    (answer,) = answers(client.take())
    assert (answer.status, answer.body.decode()) == (status, text)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["connection"] == "close"
    assert client.transport.eof
    client.send(GET)
    assert client.take() == b""
    client.registry.sweep(http1.monotonic() + 10)
    assert client.transport.closed
    assert client.registry.statistics()["malformed"] == 1
    client.lose()


async def test_good_requests_before_a_bad_one_are_answered() -> None:
    client = connect(echo)
    client.send(GET + GET + b"BAD\r\n\r\n")
    assert [answer.status for answer in answers(client.take())] == [200, 200, 400]
    client.lose()


async def test_a_half_closed_client_gets_all_its_answers() -> None:
    async def later(request: http1.Request) -> Answer:
        await asyncio.sleep(0)
        return echo(request)

    client = connect(later)
    client.send(GET + GET)
    assert client.protocol.eof_received() is True
    for _ in range(5):
        await turn()
    first, second = answers(client.take())
    assert first.body == second.body == b"GET /x?y=1 "
    assert "connection" not in first.headers
    assert second.headers["connection"] == "close"
    assert client.transport.closed
    client.lose()


async def test_end_of_input_between_requests_closes() -> None:
    client = connect(echo)
    client.send(GET)
    assert client.protocol.eof_received() is False
    client.lose()


async def test_buffered_reads_are_the_same_as_plain_ones() -> None:
    client = connect(echo)
    view = client.protocol.get_buffer(-1)
    view[: len(GET)] = GET
    client.protocol.buffer_updated(len(GET))
    assert answers(client.take())[0].body == b"GET /x?y=1 "
    view.release()
    client.lose()


async def test_writer_is_closed_for_a_head_request() -> None:
    closed = []

    def start(writer: StreamWriter) -> None:
        writer.write(b"never")
        writer.on_close(lambda: closed.append(writer.closed))

    client = connect(lambda request: Stream(200, [], start))
    client.send(b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")
    assert client.take().endswith(b"Transfer-Encoding: chunked\r\n\r\n")
    assert closed == [True]
    client.lose()

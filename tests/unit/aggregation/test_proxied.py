"""The proxy between a real HTTP server and scripted backends: what passes, what does not, and who waits for whom."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from fastapi_core._ext.http1 import Limits, Request
from fastapi_core.aggregation.directory import APIService, Backing
from fastapi_core.aggregation.headers import UnsendableError, escaped
from fastapi_core.aggregation.passage import REDIRECTED
from fastapi_core.aggregation.proxy import Front, Proxied
from fastapi_core.http.client import Target
from fastapi_core.http.exchange import Answer
from fastapi_core.http.pool import Pool
from fastapi_core.http.server import HTTPServer
from fastapi_core.registry.services import Place, ServiceError
from fastapi_core.request.context import RequestContext, User
from fastapi_core.request.info import InfoParser
from fastapi_core.request.status import Overtime
from fastapi_core.rest.upstream import Upstreams

PATH = "/apis/g.test/v1/things"
OK = b"HTTP/1.1 200 OK\r\n"
SERVICE = APIService("v1.g.test", "g.test", "v1", 1, 1, Backing("n", "s", 443), False, b"", True, "u")
Script = Callable[["Call"], Awaitable[None]]


class Call:
    """One request at the backend."""

    def __init__(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.line, *lines = head.decode("latin-1").strip().split("\r\n")
        self.headers = [(n.lower(), v.strip()) for n, _, v in (line.partition(":") for line in lines)]
        self.reader, self.writer = reader, writer

    def header(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]

    async def body(self) -> bytes:
        if self.header("transfer-encoding"):
            data = b""
            while size := int(await self.reader.readline(), 16):
                data += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readline()
            return data
        return await self.reader.readexactly(int((self.header("content-length") or ["0"])[0]))

    async def reply(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()


class Backend:
    """A server that does with each request what its script says."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.calls: list[Call] = []
        self.connections = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while True:
                call = Call(await reader.readuntil(b"\r\n\r\n"), reader, writer)
                self.calls.append(call)
                await self.script(call)
                if writer.is_closing():
                    break
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()
            self._tasks.discard(task)

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        while self._tasks:
            await asyncio.sleep(0.001)


class Places:
    """In the place of the resolver."""

    def __init__(self, *places: Place) -> None:
        self.found = list(places)

    def places(self, namespace: str, name: str, port: int) -> list[Place]:
        if not self.found:
            raise ServiceError("nowhere")
        return self.found


class Plain:
    """In the place of the transports: no TLS."""

    def target(self, service: APIService, place: Place) -> Target:
        return Target(*place)


class Stage:
    """Front server, proxy, backend, and a client's way in."""

    user = User("ann", "7", ("devs", "all"), {"Scopes/x": ("a", "b")})
    deadline = 0.0

    def __init__(self, backend: Backend, places: Places, **more: Any) -> None:
        self.backend = backend
        self.places = places
        self.pool = Pool()
        front = Front(self.pool, cast("Any", places), cast("Any", Plain()), Upstreams(), **more)
        self.proxied = Proxied(front, SERVICE)
        self.parse = InfoParser()
        self.server = HTTPServer()

    def handle(self, request: Request) -> Answer | Awaitable[Answer]:
        ctx = RequestContext(request, self.parse(request.method, request.path, request.query))
        ctx.user, ctx.audit_id, ctx.long_running = self.user, "id-1", "watch" in request.query
        ctx.deadline = self.deadline
        return self.proxied(ctx)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.server.port, limit=1 << 16)

    async def ask(self, head: str, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
        """Status, headers and the whole answer as it stands on the wire behind its head."""
        reader, writer = await self.connect()
        writer.write(
            head.replace("\n", "\r\n").encode("latin-1") + b"\r\nHost: front\r\nConnection: close\r\n\r\n" + body
        )
        data = await reader.read(-1)
        writer.close()
        await writer.wait_closed()
        top, _, rest = data.partition(b"\r\n\r\n")
        line, *lines = top.decode("latin-1").split("\r\n")
        return int(line.split()[1]), {n.lower(): v.strip() for n, _, v in (x.partition(":") for x in lines)}, rest


Make = Callable[..., Awaitable[Stage]]


@pytest.fixture
async def stage() -> AsyncIterator[Make]:
    stack = contextlib.AsyncExitStack()

    async def make(script: Script, **more: Any) -> Stage:
        backend = Backend(script)
        listener = await asyncio.start_server(backend.serve, "127.0.0.1", 0)
        made = Stage(backend, Places(("127.0.0.1", listener.sockets[0].getsockname()[1])), **more)
        await made.server.start(made.handle, limits=Limits(body=1 << 16), too_large=made.handle)

        async def close() -> None:
            await made.server.close()
            made.pool.close()
            listener.close()
            await backend.close()

        stack.push_async_callback(close)
        return made

    async with stack:
        yield make


async def small(call: Call) -> None:
    await call.body()
    await call.reply(OK + b"Content-Type: text/x\r\nX-Own: 1\r\nContent-Length: 2\r\n\r\nhi")


async def test_who_asks_is_told_and_the_clients_word_for_it_is_not(stage: Make) -> None:
    made = await stage(small)
    status, headers, body = await made.ask(
        f"GET {PATH}?b=%2F&a=1&a=0 HTTP/1.1\nX-Remote-User: root\nX-Remote-Extra-y: z\nAuthorization: Bearer t\n"
        "Impersonate-User: root\nX-Forwarded-For: 9.9.9.9\nKeep-Alive: 5\nX-Mine: v\nTE: trailers"
    )
    assert (status, body, headers["x-own"], headers["content-type"]) == (200, b"hi", "1", "text/x")
    (call,) = made.backend.calls
    assert call.line == f"GET {PATH}?b=%2F&a=1&a=0 HTTP/1.1"
    assert call.header("x-remote-user") == ["ann"]
    assert call.header("x-remote-uid") == ["7"]
    assert call.header("x-remote-group") == ["devs", "all"]
    assert call.header("x-remote-extra-scopes%2fx") == ["a", "b"]
    assert not call.header("x-remote-extra-y")
    assert not call.header("authorization")
    assert not call.header("impersonate-user")
    assert not call.header("keep-alive")
    assert call.header("x-forwarded-for") == ["9.9.9.9, 127.0.0.1"]
    assert call.header("x-forwarded-uri") == [PATH]
    assert call.header("audit-id") == ["id-1"]
    assert call.header("x-mine") == ["v"]
    assert call.header("te") == ["trailers"]
    assert len(call.header("host")) == 1


async def test_connections_are_kept(stage: Make) -> None:
    made = await stage(small)
    for _ in range(5):
        assert (await made.ask(f"GET {PATH} HTTP/1.1"))[0] == 200
    assert made.backend.connections == 1
    assert len(made.backend.calls) == 5


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_kept_connection_that_has_ended_costs_no_read_and_repeats_no_write(stage: Make, method: str) -> None:
    async def once(call: Call) -> None:
        await call.body()
        if len(made.backend.calls) in (2, 5):
            call.writer.close()
        else:
            await small(Call(b"x", call.reader, call.writer))

    made = await stage(once)
    assert (await made.ask(f"GET {PATH} HTTP/1.1"))[0] == 200
    assert (await made.ask(f"GET {PATH} HTTP/1.1"))[0] == 200, "the second connection has answered"
    assert (await made.ask(f"GET {PATH} HTTP/1.1"))[0] == 200
    status, _, body = await made.ask(f"{method} {PATH} HTTP/1.1\nContent-Length: 1", b"x")
    assert (status, body) == (503, b"error trying to reach service: EOF\n")
    assert len(made.backend.calls) == 5


@pytest.mark.parametrize(("method", "calls"), [("GET", 2), ("HEAD", 2), ("POST", 1), ("PUT", 1), ("DELETE", 1)])
async def test_a_backend_that_dies_over_a_request_is_asked_again_only_when_nothing_was_to_change(
    stage: Make, method: str, calls: int
) -> None:
    async def script(call: Call) -> None:
        await call.body()
        if len(made.backend.calls) == 1:
            call.writer.transport.abort()
            return
        await call.reply(OK, b"content-length: 2\r\n\r\n" + (b"" if method == "HEAD" else b"ok"))

    made = await stage(script)
    status, _, body = await made.ask(f"{method} {PATH} HTTP/1.1\nContent-Length: 0")
    assert len(made.backend.calls) == calls
    assert status == (200 if calls == 2 else 503), body


async def test_a_backend_that_dies_over_every_request_is_asked_twice(stage: Make) -> None:
    async def script(call: Call) -> None:
        call.writer.transport.abort()

    made = await stage(script)
    assert (await made.ask(f"GET {PATH} HTTP/1.1"))[0] == 503
    assert len(made.backend.calls) == 2

    async def headed(call: Call) -> None:
        await call.reply(OK, b"content-length: 5\r\n\r\nab")
        call.writer.close()

    # One whose answer has a head has been asked enough.
    made.backend.script = headed
    await made.ask(f"GET {PATH} HTTP/1.1")
    assert len(made.backend.calls) == 3


async def test_another_place_is_tried_when_one_refuses(stage: Make) -> None:
    made = await stage(small)
    made.places.found.insert(0, ("127.0.0.1", 1))
    assert (await made.ask(f"POST {PATH} HTTP/1.1\nContent-Length: 1", b"x"))[0] == 200
    made.places.found = [("127.0.0.1", 1)]
    status, headers, body = await made.ask(f"GET {PATH} HTTP/1.1")
    assert status == 503
    assert body == b"error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused\n"
    assert headers["x-content-type-options"] == "nosniff"
    made.places.found = []
    assert (await made.ask(f"GET {PATH} HTTP/1.1"))[2] == b"service unavailable\n"


async def test_redirects_are_refused_but_where_told_otherwise(stage: Make) -> None:
    async def redirect(call: Call) -> None:
        await call.reply(b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 3\r\n\r\nabc")

    made = await stage(redirect)
    status, headers, body = await made.ask(f"GET {PATH} HTTP/1.1")
    assert (status, body.decode()) == (502, REDIRECTED)
    assert "location" not in headers
    lax = await stage(redirect, reject_redirects=False)
    assert (await lax.ask(f"GET {PATH} HTTP/1.1"))[:2][0] == 302

    async def streamed(call: Call) -> None:
        await call.reply(b"HTTP/1.1 307 X\r\nLocation: /x\r\nTransfer-Encoding: chunked\r\n\r\n", b"3\r\nabc\r\n")

    long = await stage(streamed)
    assert (await long.ask(f"GET {PATH}?watch=1 HTTP/1.1"))[0] == 502


async def test_streams_come_as_they_are_sent_with_trailers(stage: Make) -> None:
    go = asyncio.Event()

    async def watch(call: Call) -> None:
        await call.reply(OK + b"Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n4\r\none\n\r\n")
        await go.wait()
        await call.reply(b"4\r\ntwo\n\r\n0\r\nX-Sum: 9\r\n\r\n")

    made = await stage(watch)
    reader, writer = await made.connect()
    writer.write(f"GET {PATH}?watch=1 HTTP/1.1\r\nHost: f\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head
    assert b"x-sum" in head.lower()
    assert await reader.readexactly(9) == b"4\r\none\n\r\n"
    go.set()
    assert await reader.readuntil(b"\r\n\r\n") == b"4\r\ntwo\n\r\n0\r\nx-sum: 9\r\n\r\n"
    writer.write(f"GET {PATH}?watch=1 HTTP/1.1\r\nHost: f\r\n\r\n".encode())
    assert b" 200 " in await reader.readline(), "the connection goes on"
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 1000000\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"]
)
async def test_a_backend_killed_in_mid_stream_cuts_the_answer(stage: Make, framing: bytes) -> None:
    async def dies(call: Call) -> None:
        await call.reply(OK + framing)
        call.writer.transport.abort()

    made = await stage(dies)
    reader, writer = await made.connect()
    writer.write(f"GET {PATH} HTTP/1.1\r\nHost: f\r\n\r\n".encode())
    data = b""
    with contextlib.suppress(ConnectionError):
        data = await reader.read(-1)
    assert not data.endswith(b"0\r\n\r\n"), "an incomplete answer must not look whole"
    writer.close()


async def test_a_client_that_leaves_ends_the_backends_call(stage: Make) -> None:
    ended = asyncio.Event()

    async def endless(call: Call) -> None:
        await call.reply(OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        await call.reader.read(1)
        ended.set()

    made = await stage(endless)
    for query in ("?watch=1", ""):
        ended.clear()
        reader, writer = await made.connect()
        writer.write(f"GET {PATH}{query} HTTP/1.1\r\nHost: f\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()
        await asyncio.wait_for(ended.wait(), 5)


async def test_a_slow_client_holds_a_fast_backend_up(stage: Make) -> None:
    sent = 0

    async def flood(call: Call) -> None:
        nonlocal sent
        await call.reply(OK + b"Content-Length: 200000000\r\n\r\n")
        for _ in range(200_000_000 // 100_000):
            await call.reply(b"x" * 100_000)
            sent += 100_000

    made = await stage(flood)
    reader, writer = await made.connect()
    writer.write(f"GET {PATH} HTTP/1.1\r\nHost: f\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    before = -1
    while sent != before:
        before = sent
        await asyncio.sleep(0.2)
    assert sent < 60_000_000, "sockets hold some megabytes, the proxy none"
    for _ in range(300):
        await reader.read(1 << 16)
    async with asyncio.timeout(5):
        while sent == before:
            await reader.read(1 << 16)
    writer.transport.abort()


async def test_large_bodies_are_streamed_up(stage: Make) -> None:
    async def echo(call: Call) -> None:
        data = await call.body()
        await call.reply(OK + b"Content-Length: %d\r\n\r\n" % len(data), data)

    made = await stage(echo)
    data = bytes(range(256)) * 4096
    status, _, body = await made.ask(f"POST {PATH} HTTP/1.1\nContent-Length: {len(data)}", data)
    assert status == 200
    assert len(body) > len(data)
    chunks = (
        b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in (data[:50_000], data[50_000:50_010], data[50_010:]))
        + b"0\r\n\r\n"
    )
    status, _, body = await made.ask(f"POST {PATH} HTTP/1.1\nTransfer-Encoding: chunked", chunks)
    assert status == 200
    assert len(body) > len(data)
    assert made.backend.calls[-1].header("transfer-encoding") == ["chunked"]
    assert made.backend.calls[0].header("content-length") == [str(len(data))]


async def test_a_backend_that_does_not_read_holds_the_client_up(stage: Make) -> None:
    gate = asyncio.Event()

    async def lazy(call: Call) -> None:
        await gate.wait()
        await call.body()
        await call.reply(OK + b"Content-Length: 2\r\n\r\nok")

    made = await stage(lazy)
    size = 100_000_000
    reader, writer = await made.connect()
    writer.transport.set_write_buffer_limits(high=0)
    writer.write(f"POST {PATH} HTTP/1.1\r\nHost: f\r\nContent-Length: {size}\r\n\r\n".encode())
    sent = 0

    async def send() -> None:
        nonlocal sent
        while sent < size:
            writer.write(b"y" * 100_000)
            await writer.drain()
            sent += 100_000

    sending = asyncio.ensure_future(send())
    before = -1
    while sent != before:
        before = sent
        await asyncio.sleep(0.2)
    assert sent < 50_000_000
    gate.set()
    await sending
    assert b" 200 " in await reader.readline()
    writer.close()


async def test_an_answer_before_the_body_is_whole(stage: Make) -> None:
    async def refuse(call: Call) -> None:
        await call.reply(b"HTTP/1.1 413 X\r\nContent-Length: 3\r\n\r\nbig")
        await call.reader.read(1 << 20)

    made = await stage(refuse)
    reader, writer = await made.connect()
    writer.write(f"POST {PATH} HTTP/1.1\r\nHost: f\r\nContent-Length: 90000000\r\n\r\n".encode() + b"z" * 100_000)
    assert b" 413 " in await reader.readline()
    writer.transport.abort()


async def test_whatever_keeps_a_request_from_the_backend_there_is_an_answer(
    stage: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await stage(small)
    made.places.found = [("a" * 64 + ".example.com", 1)]
    status, _, body = await made.ask(f"GET {PATH} HTTP/1.1")
    assert status == 503
    assert b"no such host" in body

    async def broken(target: Target) -> Any:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(made.pool, "connect", broken)
    status, _, body = await made.ask(f"GET {PATH} HTTP/1.1")
    assert status == 503
    assert b"a fault of ours" in body


async def test_times(stage: Make) -> None:
    hang = asyncio.Event()

    async def silent(call: Call) -> None:
        await hang.wait()

    made = await stage(silent, timeout=0.05)
    request = cast("Any", _request(PATH))
    ctx = RequestContext(request, made.parse("GET", PATH, ""))
    with pytest.raises(Overtime):
        await cast("Awaitable[Answer]", made.proxied(ctx))

    async def starts(call: Call) -> None:
        await call.reply(OK + b"Content-Length: 900000\r\n\r\nabc")
        await hang.wait()

    slow = await stage(starts)
    slow.deadline = asyncio.get_running_loop().time() + 0.1
    reader, writer = await slow.connect()
    writer.write(f"GET {PATH} HTTP/1.1\r\nHost: f\r\n\r\n".encode())
    with contextlib.suppress(ConnectionError):
        assert not (await asyncio.wait_for(reader.read(-1), 5)).endswith(b"0\r\n\r\n")
    writer.close()


class _Connection:
    peer, tls = "1.2.3.4:5", True

    def __init__(self) -> None:
        self.memo: dict[object, object] = {}


def _request(path: str) -> Any:
    class Asked:
        method, query, upgrade, body, reader, headers = "GET", "", False, b"", None, []
        connection = _Connection()

        def header(self, name: bytes) -> None:
            return None

        def header_all(self, name: bytes) -> list[bytes]:
            return []

    asked = Asked()
    asked.path = path  # type: ignore[attr-defined]
    return asked


async def test_the_breaker_refuses_until_a_probe_passes(stage: Make) -> None:
    probed: list[str] = []
    made = await stage(small, breaker=2, broken=probed.append, retry_after=7)
    live = made.places.found
    made.places.found = [("127.0.0.1", 1)]
    for _ in range(2):
        assert b"refused" in (await made.ask(f"GET {PATH} HTTP/1.1"))[2]
    assert probed == ["v1.g.test"]
    made.places.found = live
    status, headers, body = await made.ask(f"GET {PATH} HTTP/1.1")
    assert (status, headers["retry-after"], body) == (503, "7", b"service unavailable\n")
    made.proxied.mend()
    assert (await made.ask(f"GET {PATH} HTTP/1.1"))[0] == 200


async def test_names_no_header_can_carry(stage: Make) -> None:
    made = await stage(small)
    made.user = User("a\r\nX-Remote-Group: system:masters")
    status, _, body = await made.ask(f"GET {PATH} HTTP/1.1")
    assert status == 503
    assert b"invalid header field value" in body
    assert not made.backend.calls
    assert escaped("a b%/é") == b"a%20b%25%2F%C3%A9"
    assert issubclass(UnsendableError, ValueError)


async def test_upgrades_are_tunnels_and_nothing_else_is_an_answer(stage: Make) -> None:
    async def echo(call: Call) -> None:
        await call.reply(b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: thing\r\nX-A: 1\r\n\r\n")
        while data := await call.reader.read(100):
            await call.reply(data)
        call.writer.close()

    made = await stage(echo)
    reader, writer = await made.connect()
    token = "base64url.bearer.authorization.k8s.io.dG9r"
    writer.write(
        f"GET {PATH} HTTP/1.1\r\nHost: f\r\nConnection: Upgrade\r\nUpgrade: thing\r\n"
        f"Sec-WebSocket-Protocol: {token}, v4.x\r\n\r\n".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 ")
    assert b"x-a: 1" in head.lower()
    for text in (b"ping", b"pong"):
        writer.write(text)
        assert await reader.readexactly(4) == text
    assert made.backend.calls[0].header("sec-websocket-protocol") == ["v4.x"]
    assert made.backend.calls[0].header("x-remote-user") == ["ann"]
    writer.close()
    await writer.wait_closed()


async def test_a_tunnel_makes_either_side_wait_for_the_other(stage: Make) -> None:
    """Both send 30 MB, and begin to read when neither gets on with it."""
    size, piece = 30_000_000, b"x" * 100_000
    sent, reading = {"down": 0, "up": 0}, asyncio.Event()

    async def push(name: str, writer: asyncio.StreamWriter) -> None:
        while sent[name] < size:
            writer.write(piece)
            await writer.drain()
            sent[name] += len(piece)

    async def backend(call: Call) -> None:
        await call.reply(b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: thing\r\n\r\n")
        pushing = asyncio.ensure_future(push("down", call.writer))
        await reading.wait()
        await call.reader.readexactly(size)
        await pushing
        call.writer.close()

    made = await stage(backend)
    reader, writer = await made.connect()
    writer.write(f"GET {PATH} HTTP/1.1\r\nHost: f\r\nConnection: Upgrade\r\nUpgrade: thing\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    pushing = asyncio.ensure_future(push("up", writer))
    before: dict[str, int] = {}
    while sent != before:
        before = dict(sent)
        await asyncio.sleep(0.2)
    assert max(sent.values()) < 20_000_000, "sockets hold some megabytes, the proxy none"
    reading.set()
    async with asyncio.timeout(20):
        assert await reader.readexactly(size) == b"x" * size
        await pushing
        assert await reader.read() == b"", "the end of one side is that of the other"
    writer.close()
    await writer.wait_closed()


async def test_another_registration_of_the_same_backend_keeps_its_connections(stage: Make) -> None:
    made = await stage(small)
    for change in ({"version_priority": 7}, {"available": False}, {"available": True}, {"insecure": True}):
        made.proxied.update(replace(made.proxied.service, **change))
        status = (await made.ask(f"GET {PATH} HTTP/1.1"))[0]
        assert status == (503 if "available" in change and not change["available"] else 200)
    assert made.backend.connections == 2

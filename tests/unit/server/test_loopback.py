"""The server as its own client."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fastapi_core._ext.router import Router
from fastapi_core.authn.base import Union
from fastapi_core.authz.base import Attributes, Decision, Verdict
from fastapi_core.errors import APIError, not_found
from fastapi_core.http.exchange import Answer, Response, Stream, StreamWriter
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.server.config import ServerConfig
from fastapi_core.server.generic import GenericServer


class Masters:
    generation = 0

    def authorize(self, attributes: Attributes) -> Verdict:
        return Verdict(Decision.ALLOW if "system:masters" in attributes.user.groups else Decision.DENY)


class Bench:
    def __init__(self) -> None:
        self.writer: StreamWriter | None = None
        routes: list[tuple[str, dict[str, Endpoint]]] = [
            ("/api/v1/namespaces/{ns}/pods", {"POST": self.echo, "GET": self.watch}),
            ("/api/v1/nodes/{name}", {"GET": self.missing}),
            ("/text", {"GET": lambda ctx: Response(503, [], b"not now\n")}),
        ]
        router: Router[Any] = Router(routes)
        config = ServerConfig(authenticator=Union([]), authorizer=Masters())
        self.server = GenericServer(config, lambda: router, known_group=lambda group: False)

    def echo(self, ctx: RequestContext) -> Answer:
        assert ctx.request.header(b"content-type") == b"application/json"
        body = b'{"user":"%s","sent":%s}' % (ctx.user.name.encode(), ctx.request.body)
        return Response(201, [], [body[:5], body[5:]])

    async def missing(self, ctx: RequestContext) -> Answer:
        await asyncio.sleep(0)
        raise not_found("nodes", "", ctx.info.name)

    def watch(self, ctx: RequestContext) -> Answer:
        return Stream(200, [], self.started)

    def started(self, writer: StreamWriter) -> None:
        self.writer = writer
        writer.write(b'{"type":"ADDED"}\n{"type":')


async def test_requests_pass_the_chain_as_the_server_itself() -> None:
    loopback = Bench().server.loopback
    made = await loopback.call("POST", "/api/v1/namespaces/a/pods", {"kind": "Pod"})
    assert made == {"user": "system:apiserver", "sent": {"kind": "Pod"}}


async def test_failures_come_back_as_they_are() -> None:
    loopback = Bench().server.loopback
    with pytest.raises(APIError) as caught:
        await loopback.call("GET", "/api/v1/nodes/n")
    assert (caught.value.code, caught.value.reason) == (404, "NotFound")
    assert caught.value.message == 'nodes "n" not found'
    with pytest.raises(APIError, match="not now") as caught:
        await loopback.call("GET", "/text")
    assert caught.value.code == 503
    with pytest.raises(APIError):
        async for _ in loopback.watch("/api/v1/nodes/n?watch=1"):
            pass


async def test_nobody_else_becomes_the_server() -> None:
    bench = Bench()
    from tests.fixtures.exchange import FakeRequest

    request: Any = FakeRequest("GET", "/text", {"User-Agent": "fastapi-core/loopback"})
    answer: Any = bench.server.handler(request)
    assert answer.status == 401


async def test_a_watch_gives_its_events_and_its_end() -> None:
    bench = Bench()
    events = bench.server.loopback.watch("/api/v1/namespaces/a/pods?watch=1")
    assert await anext(events) == {"type": "ADDED"}
    assert bench.writer is not None
    bench.writer.write_framed(b'b\r\n"DELETED"}\n\r\n')
    assert await anext(events) == {"type": "DELETED"}
    bench.writer.finish()
    assert [event async for event in events] == []


async def test_leaving_a_watch_ends_it() -> None:
    bench = Bench()
    events = bench.server.loopback.watch("/api/v1/namespaces/a/pods?watch=1")
    await anext(events)
    assert bench.writer is not None
    left: list[bool] = []
    bench.writer.on_close(lambda: left.append(True))
    await events.aclose()
    assert left == [True]
    assert bench.writer.closed

"""Questions to the core API: how many at a time, and what a core API that hangs costs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic

import pytest

from fastapi_core.authn.base import WrongCredential
from fastapi_core.authn.outbound import OutboundError
from fastapi_core.authn.webhook import WebhookTokens
from fastapi_core.authz.base import Attributes, Decision, Verdict
from fastapi_core.authz.modes import Settings
from fastapi_core.authz.webhook import WebhookAuthorizer
from fastapi_core.extension.delegated import client as module
from fastapi_core.extension.delegated.access import by_kubeconfig
from fastapi_core.extension.delegated.client import CONNECTIONS, CoreClient
from fastapi_core.request.context import User

WHAT = Attributes(User("u"), "get", "g.io", "v1", "ns", "things", "", "x", "", True, "", "")


class Core:
    """Counts connections; answers `{}`, or a watch, when `open` is set."""

    def __init__(self) -> None:
        self.connections = self.questions = 0
        self.open = asyncio.Event()
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.questions += 1
                if b"watch=true" in head:
                    writer.write(b"HTTP/1.1 200 OK\r\n\r\n{}\n")
                    continue
                await self.open.wait()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        except (OSError, EOFError):
            writer.close()


@pytest.fixture
async def core() -> Core:
    return Core()


@pytest.fixture
async def client(core: Core, tmp_path: Path) -> AsyncIterator[CoreClient]:
    server = await asyncio.start_server(core.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    config = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(config))
    made = CoreClient(by_kubeconfig(str(file)), "test")
    yield made
    core.open.set()
    made.close()
    server.close()
    for writer in core.writers:
        writer.close()


async def until(condition: object) -> None:
    async with asyncio.timeout(5):
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0.001)


async def test_so_many_questions_at_a_time_and_watches_beside_them(core: Core, client: CoreClient) -> None:
    questions = [asyncio.ensure_future(client.get(f"/{number}")) for number in range(4 * CONNECTIONS)]
    await until(lambda: core.questions == CONNECTIONS)
    events = client.watch("/things?watch=true")
    assert await anext(events) == {}
    await events.aclose()
    assert core.connections == CONNECTIONS + 1
    core.open.set()
    assert await asyncio.gather(*questions) == [{}] * (4 * CONNECTIONS)
    assert core.connections == CONNECTIONS + 1


async def test_a_queue_has_an_end(core: Core, client: CoreClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUEUE", 3)
    short = CoreClient(client.access, "test")
    questions = [asyncio.ensure_future(short.get(f"/{number}")) for number in range(CONNECTIONS + 3)]
    await until(lambda: core.questions == CONNECTIONS)
    with pytest.raises(OutboundError, match="too many requests wait") as refused:
        await short.get("/more")
    assert not refused.value.again
    core.open.set()
    await asyncio.gather(*questions)
    short.close()


async def test_a_core_api_that_hangs_costs_one_time_limit(core: Core, client: CoreClient) -> None:
    reviews = client.reviews("/reviews", "hint")
    begun = monotonic()
    tokens = WebhookTokens(reviews, "v1", 10.0, timeout=0.2, within=0.2)
    found = tokens.check("t", None, 0.0)
    with pytest.raises(WrongCredential, match="Unauthorized") as failed:
        await found  # type: ignore[misc]
    assert "context deadline exceeded" in failed.value.reasons[0]
    verdict = WebhookAuthorizer(reviews, Settings("v1", timeout=0.2, within=0.2)).authorize(WHAT)
    assert not isinstance(verdict, Verdict)
    assert (await verdict).decision is Decision.NO_OPINION
    assert core.questions == 2, "who does not answer is not asked again"
    assert monotonic() - begun < 5.0

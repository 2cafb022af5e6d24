"""Hostile clients of every sort at once against the whole server, and what well-behaved ones notice of it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from fastapi_core.testing.server import RunningServer
from tests.adversity.killing import Client
from tests.adversity.test_stalled_watchers import metric

pytestmark = pytest.mark.adversity

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
TOKENS = [("flood", "mallory", "1", "devs"), ("good", "alice", "2", "devs"), ("root", "root", "3", "system:masters")]
MOST = 150
BIND = {
    "metadata": {"name": "devs-read"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "read-configmaps"},
    "subjects": [{"kind": "Group", "name": "devs", "apiGroup": "rbac.authorization.k8s.io"}],
}
ROLE = {
    "metadata": {"name": "read-configmaps"},
    "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}],
}
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    # Few seats, so that a flood of this size is one.
    flags = [f"--max-connections={MOST}", "--max-requests-inflight=8", "--max-mutating-requests-inflight=4"]
    running = RunningServer(folder, flags=flags, tokens=TOKENS)
    client = Client(running)
    assert client("POST", f"{RBAC}/clusterroles", ROLE)[0] == 201
    assert client("POST", f"{RBAC}/clusterrolebindings", BIND)[0] == 201
    for number in range(400):
        body = {"metadata": {"name": f"c-{number}"}, "data": {"number": "1", "filler": "x" * 3000}}
        assert client("POST", CONFIGMAPS, body)[0] == 201
    client.close()
    yield running
    assert running.stop() == 0


class Connection:
    """One TLS connection without a certificate."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, server: RunningServer) -> Connection:
        context = ssl.create_default_context(cafile=str(server.data_dir / "pki/ca.crt"))
        return cls(*await asyncio.open_connection("127.0.0.1", server.port, ssl=context))

    async def get(self, path: str, token: str, accept: str = "*/*") -> tuple[int, bytes]:
        head = f"GET {path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {token}\r\nAccept: {accept}\r\n\r\n"
        self.writer.write(head.encode())
        answer = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(answer.partition("content-length: ")[2].partition("\r\n")[0])
        return int(answer.split(" ")[1]), await self.reader.readexactly(length)

    def close(self) -> None:
        self.writer.transport.abort()


@contextlib.asynccontextmanager
async def crowd(server: RunningServer, count: int) -> AsyncIterator[list[Connection]]:
    connections = [await Connection.open(server) for _ in range(count)]
    try:
        yield connections
    finally:
        for connection in connections:
            connection.close()


async def times(server: RunningServer, token: str, count: int) -> list[float]:
    """How long each of so many reads took, one after the other."""
    client = await Connection.open(server)
    found = []
    for number in range(count):
        began = time.monotonic()
        status, body = await client.get(f"{CONFIGMAPS}/c-{number % 400}", token)
        assert status == 200, body
        found.append(time.monotonic() - began)
    client.close()
    return sorted(found)


async def drip(connection: Connection) -> None:
    """A head that never ends, a byte at a time."""
    connection.writer.write(b"GET / HTTP/1.1\r\nHost: h\r\nX-Slow: ")
    with contextlib.suppress(ConnectionError):
        while True:
            connection.writer.write(b"a")
            await asyncio.sleep(0.05)


async def pipeline(connection: Connection) -> None:
    """Requests without waiting for answers, which are thrown away as they come."""
    requests = b"GET /version HTTP/1.1\r\nHost: h\r\n\r\n" * 50
    with contextlib.suppress(ConnectionError):
        while True:
            connection.writer.write(requests)
            await asyncio.sleep(0)
            await connection.reader.read(1 << 16)


async def giant(server: RunningServer) -> None:
    """Heads beyond every limit, again and again."""
    while True:
        connection = await Connection.open(server)
        with contextlib.suppress(ConnectionError):
            connection.writer.write(b"GET / HTTP/1.1\r\nHost: h\r\nX-Giant: " + b"g" * (2 << 20) + b"\r\n\r\n")
            await connection.reader.read(1000)
        connection.close()
        await asyncio.sleep(0.2)


async def flood(connection: Connection) -> None:
    """Slow lists, each a YAML of all objects or a large JSON, refusals ignored."""
    number = 0
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            number += 1
            path = f"{CONFIGMAPS}?labelSelector=a!%3D{number}"
            await connection.get(path, "flood", "application/yaml" if number % 8 == 0 else "application/json")


def test_slow_heads_floods_and_giant_heads(server: RunningServer) -> None:
    async def run() -> tuple[list[float], list[float]]:
        alone = await times(server, "good", 200)
        async with crowd(server, 40) as connections:
            hostile = [asyncio.create_task(drip(c)) for c in connections[:37]]
            hostile += [asyncio.create_task(pipeline(c)) for c in connections[37:]]
            hostile.append(asyncio.create_task(giant(server)))
            meanwhile = await times(server, "good", 200)
            for task in hostile:
                task.cancel()
            await asyncio.wait(hostile)
        return alone, meanwhile

    alone, meanwhile = asyncio.run(run())
    print(f"p99 alone {alone[-3] * 1000:.1f} ms, meanwhile {meanwhile[-3] * 1000:.1f} ms")
    assert meanwhile[-3] < alone[-3] + 1


def test_a_flood_of_slow_lists_by_another_user(server: RunningServer) -> None:
    async def run() -> list[float]:
        async with crowd(server, 40) as connections:
            hostile = [asyncio.create_task(flood(c)) for c in connections]
            await asyncio.sleep(0.5)
            meanwhile = await times(server, "good", 60)
            for task in hostile:
                task.cancel()
            await asyncio.wait(hostile)
        return meanwhile

    meanwhile = asyncio.run(run())
    print(f"p50 {meanwhile[30] * 1000:.0f} ms, p99 {meanwhile[-2] * 1000:.0f} ms")
    # Two rounds of the requests before it, each of a few lists: far from the 40 that are there.
    assert meanwhile[-2] < 3


def test_connections_over_the_limit_and_room_again(server: RunningServer) -> None:
    async def run() -> None:
        async with crowd(server, MOST) as connections:
            assert (await connections[-1].get("/version", "good"))[0] == 200
            over = await Connection.open(server)
            answer = await asyncio.wait_for(over.reader.read(1000), 20)
            assert b" 503 " in answer
            over.close()
            assert (await connections[0].get("/version", "good"))[0] == 200
        end = time.monotonic() + 20
        while True:
            again = await Connection.open(server)
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                if (await again.get("/version", "good"))[0] == 200:
                    again.close()
                    return
            again.close()
            assert time.monotonic() < end
            await asyncio.sleep(0.05)

    asyncio.run(run())


def test_idle_watches_cost_little(server: RunningServer) -> None:
    """Of 100 watches, what one costs; thousands are a matter of multiplication (`bench`)."""

    async def run() -> tuple[float, float]:
        def resident() -> float:
            text = Path(f"/proc/{server.process.pid}/statm").read_text()
            return int(text.split()[1]) * 4096

        target = (
            f"GET {CONFIGMAPS}?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Dnone HTTP/1.1\r\nHost: h\r\n"
        )
        before = resident()
        async with crowd(server, 100) as connections:
            for connection in connections:
                connection.writer.write(f"{target}Authorization: Bearer good\r\n\r\n".encode())
            for connection in connections:
                await asyncio.wait_for(connection.reader.readuntil(b"\r\n\r\n"), 20)
            return before, resident()

    before, after = asyncio.run(run())
    each = (after - before) / 100
    print(f"{each / 1000:.0f} KB each")
    assert each < 300_000
    client = Client(server)
    assert metric(client, "fastapi_core_streams_cut_total") == 0
    client.close()

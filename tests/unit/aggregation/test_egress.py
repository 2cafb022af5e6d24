"""The proxy to another network: the file with all its errors, and bytes through CONNECT with TLS inside."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from fastapi_core.aggregation import egress
from fastapi_core.aggregation.egress import ConnectProxy
from fastapi_core.http.asking import ask
from fastapi_core.http.client import Target, UpstreamError
from fastapi_core.http.pool import Pool

HEAD = "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n"


def written(tmp_path: Path, text: str) -> str:
    file = tmp_path / "egress.yaml"
    file.write_text(HEAD + text)
    return str(file)


def test_what_the_file_says(tmp_path: Path) -> None:
    tcp = "- name: cluster\n  connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: 'http://p:81'}}}\n"
    assert egress.load(written(tmp_path, tcp)) == ConnectProxy("p", 81)
    uds = "- name: cluster\n  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: /s}}}\n"
    assert egress.load(written(tmp_path, uds)) == ConnectProxy(path="/s")
    assert egress.load(written(tmp_path, "- {name: cluster, connection: {proxyProtocol: Direct}}\n")) is None
    assert egress.load(written(tmp_path, "- {name: etcd, connection: {proxyProtocol: Direct}}\n")) is None


def test_everything_wrong_at_once(tmp_path: Path) -> None:
    text = (
        "- name: moon\n  connection: {proxyProtocol: Direct, speed: 1}\n"
        "- name: cluster\n  connection: {proxyProtocol: GRPC}\n"
        "- name: etcd\n  connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://p', tlsConfig: {caBundle: /no}}}}\n"
    )
    with pytest.raises(ValueError, match="unknown field") as caught:
        egress.load(written(tmp_path, text))
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == [
        'unknown field "egressSelections[0].connection.speed"', "egressSelections[0].name",
        "egressSelections[1].connection.proxyProtocol", "egressSelections[2].connection.transport.tcp.tlsConfig.caBundle",
    ]  # fmt: skip


async def test_bytes_go_through(tmp_path: Path) -> None:
    asked: list[bytes] = []

    async def backend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + b"x" * 300_000)
        await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.split(b"\r\n")[0])
        if b"refused" in head:
            writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
            writer.close()
            return
        there, back = await asyncio.open_connection("127.0.0.1", int(head.split(b" ")[1].split(b":")[1]))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await egress._join((reader, writer), (there, back))
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    behind = await asyncio.start_server(backend, "127.0.0.1", 0)
    path = str(tmp_path / "proxy.sock")
    front = await asyncio.start_unix_server(proxy, path)
    async with behind, front:
        port = behind.sockets[0].getsockname()[1]
        pool = Pool(idle_limit=0)
        inside, refused = (
            Target(*place, through=ConnectProxy(path=path)) for place in (("inside", port), ("refused", 1))
        )
        question = b"GET / HTTP/1.1\r\n\r\n"
        assert (await ask(pool, inside, question, limit=1 << 20)).body == b"x" * 300_000
        assert asked == [b"CONNECT inside:%d HTTP/1.1" % port]
        with pytest.raises(UpstreamError, match="403 Forbidden"):
            await ask(pool, refused, question, limit=1 << 20)
        async with asyncio.timeout(5):
            while egress._running:
                await asyncio.sleep(0.01)

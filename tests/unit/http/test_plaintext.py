"""Plain HTTP that comes to a TLS port is told so; everything else about handshakes stays."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from fastapi_core.http.exchange import Response
from fastapi_core.http.plaintext import ANSWER
from fastapi_core.http.tls import ReloadingContext, build_context
from tests.unit.http.http_support import Authority, client_context, exchange, on_uvloop, serving


def context(folder: Path) -> ReloadingContext:
    authority = Authority("ca")
    authority.write_ca(folder / "ca.crt")
    return ReloadingContext(build_context(*authority.write_pair(folder / "s.crt", folder / "s.key", "localhost")))


@on_uvloop
async def test_told_to_use_tls(tmp_path: Path) -> None:
    async with serving(lambda request: Response(200, [], b"ok"), ssl_context=context(tmp_path)) as server:
        for request in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /api HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(request)
            assert await asyncio.wait_for(reader.readexactly(len(ANSWER)), 10) == ANSWER
            # Whoever goes on is cut off.
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert await asyncio.wait_for(reader.read(), 10) == b""
            writer.close()
        assert ANSWER.startswith(b"HTTP/1.0 400 Bad Request\r\n")
        assert ANSWER.endswith(b"\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
        trusting = client_context(str(tmp_path / "ca.crt"))
        answer = await exchange(server.port, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", trusting)
        assert answer.endswith(b"\r\n\r\nok")


@on_uvloop
async def test_bytes_that_are_neither_are_cut_off(tmp_path: Path) -> None:
    async with serving(lambda request: Response(200, [], b""), ssl_context=context(tmp_path)) as server:
        for nonsense in (b"\x00" * 100, b"SSH-2.0-x\r\n", b"\x16\x03\x01\xff"):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(nonsense)
            writer.write_eof()
            try:
                answer = await asyncio.wait_for(reader.read(), 10)
            except ConnectionError:
                answer = b""
            assert not answer.startswith(b"HTTP")
            writer.close()


def test_other_failures_of_a_handshake_are_raised(tmp_path: Path) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    made = context(tmp_path).wrap_bio(incoming, outgoing, server_side=True)
    incoming.write(b"\x16\x03\x01\x00\x05hello")
    with pytest.raises(ssl.SSLError):
        made.do_handshake()
    assert not outgoing.read().startswith(b"HTTP")

"""Servers that are asked again and again keep their connections, others are asked on one of their own each time."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from fastapi_core.authn.outbound import OutboundError, Remote, ask, client_tls, kept
from tests.fixtures.rude import RudeServer, keeping

QUESTION = json.dumps({"kind": "K", "apiVersion": "v", "request": {"uid": "u"}}).encode()


async def test_connections_are_kept_where_it_is_said(tmp_path: Path) -> None:
    server = RudeServer(tmp_path)
    try:
        server.behave = keeping
        once = Remote(server.url, client_tls(server.ca.pem))
        for _ in range(2):
            assert (await ask(once, "POST", QUESTION, timeout=5)).status == 200
        assert server.connections == 2
        assert b"connection: close" in server.heads[0]
        often = kept(once)
        for _ in range(3):
            assert (await ask(often, "POST", QUESTION, timeout=5)).status == 200
        assert server.connections == 3
        assert b"connection: close" not in server.heads[-1]
        assert often.pool is not None
        often.pool.close()
    finally:
        server.close()


async def test_what_may_do_better_another_time(tmp_path: Path) -> None:
    server = RudeServer(tmp_path)
    try:
        remote = Remote(server.url, client_tls(server.ca.pem))
        server.behave = lambda connection, body: None
        with pytest.raises(OutboundError, match="EOF") as ended:
            await ask(remote, "POST", QUESTION, timeout=5)
        assert ended.value.again
        server.behave = lambda connection, body: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        with pytest.raises(OutboundError, match="unexpected EOF") as ended:
            await ask(remote, "POST", QUESTION, timeout=5)
        assert ended.value.again
        server.behave = lambda connection, body: connection.sendall(b"SSH-2.0\r\n")
        with pytest.raises(OutboundError, match="malformed HTTP response") as ended:
            await ask(remote, "POST", QUESTION, timeout=5)
        assert not ended.value.again
        hanging = threading.Event()
        server.behave = lambda connection, body: hanging.wait(10)
        with pytest.raises(OutboundError, match="context deadline exceeded") as ended:
            await ask(remote, "POST", QUESTION, timeout=0.2)
        hanging.set()
        assert not ended.value.again, "it had its time"
    finally:
        server.close()

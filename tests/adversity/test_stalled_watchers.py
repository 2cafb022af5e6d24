"""Watchers that never read: what they are owed is bounded over all of them, and who reads is not among the cut."""

from __future__ import annotations

import json
import re
import socket
import ssl
from pathlib import Path

import pytest

from fastapi_core.testing.server import RunningServer
from tests.adversity.killing import Client, Watcher
from tests.adversity.scale import scaled
from tests.adversity.test_memory import resident

pytestmark = pytest.mark.adversity

PATH = "/api/v1/namespaces/default/configmaps"
STALLED = 100
LIMIT = 32
CHANGES = scaled(400)


def stalled(server: RunningServer, query: str, context: ssl.SSLContext) -> ssl.SSLSocket:
    """A watch whose head has come; its client reads no more."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(30)
    plain.connect(("127.0.0.1", server.port))
    secure = context.wrap_socket(plain, server_hostname="127.0.0.1")
    accept = f"application/json{';as=Table;v=v1;g=meta.k8s.io' if 'includeObject' in query else ''}"
    secure.sendall(f"GET {PATH}?watch=1{query} HTTP/1.1\r\nHost: h\r\nAccept: {accept}\r\n\r\n".encode())
    assert secure.recv(100).startswith(b"HTTP/1.1 200")
    return secure


def metric(client: Client, name: str) -> float:
    client.connection.request("GET", "/metrics")
    text = client.connection.getresponse().read().decode()
    found = re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
    return sum(map(float, found))


@pytest.mark.parametrize(
    ("query", "size"), [("", 400_000), ("&includeObject=Object", 20_000)], ids=["same bytes", "bytes of their own"]
)
def test_watchers_that_never_read(tmp_path: Path, query: str, size: int) -> None:
    server = RunningServer(tmp_path / "data", flags=[f"--max-stream-backlog-mib={LIMIT}"])
    sockets: list[ssl.SSLSocket] = []
    try:
        client = Client(server)
        assert client("POST", PATH, {"metadata": {"name": "one"}, "data": {"number": "0"}})[0] == 201
        since = int(client("GET", PATH)[1]["metadata"]["resourceVersion"])
        context = server.ssl_context()
        sockets += [stalled(server, f"&resourceVersion={since}{query}", context) for _ in range(STALLED)]
        reader = Watcher(server, since, PATH)
        reader.start()
        before = peak = resident(server)
        for number in range(1, CHANGES + 1):
            body = {"data": {"number": str(number), "filler": f"{number:06}" * (size // 6)}}
            client.connection.request(
                "PATCH", f"{PATH}/one", json.dumps(body), {"Content-Type": "application/merge-patch+json"}
            )
            answer = client.connection.getresponse()
            answer.read()
            assert answer.status == 200
            if number % 20 == 0:
                peak = max(peak, resident(server))
                assert metric(client, "fastapi_core_stream_backlog_bytes") <= LIMIT << 20
        print(f"{before:.0f} MiB before, {peak:.0f} at most")
        cut = metric(client, "fastapi_core_streams_cut_total") + 0
        terminated = metric(client, "apiserver_terminated_watchers_total")
        print(f"{cut:.0f} cut, {terminated:.0f} terminated")
        if query:
            assert 0 < cut == terminated <= STALLED
        else:
            assert (cut, terminated) == (0, STALLED)
        assert client("DELETE", f"{PATH}/one")[0] == 200
        while not (reader.events and reader.events[-1].type == "DELETED"):
            assert reader.is_alive()
            reader.join(0.01)
        assert [e.number for e in reader.events] == [*range(1, CHANGES + 1), CHANGES]
        client.close()
        # The history of the watch cache has most of it.
        assert peak - before < CHANGES * size / (1 << 20) + 3 * LIMIT
    finally:
        for one in sockets:
            one.close()
        server.kill()

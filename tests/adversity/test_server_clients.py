"""Odd, slow and rude clients against a whole server over TLS: each harms its own connection and nothing else."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastapi_core.testing.server import RunningServer
from tests.adversity.killing import GONE, Client
from tests.unit.http.http_support import Authority

pytestmark = pytest.mark.adversity

MAPS = "/api/v1/namespaces/default/configmaps"
MAX_BUFFERED = 16 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    running = RunningServer(tmp_path_factory.mktemp("clients"))
    yield running
    assert running.process.poll() is None, "the server died"
    assert running.stop() == 0


@pytest.fixture
def client(server: RunningServer) -> Iterator[Client]:
    made = Client(server)
    yield made
    made.close()


def resident(server: RunningServer) -> int:
    """MiB."""
    for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) // 1024
    raise AssertionError("no VmRSS")


def connect(server: RunningServer, receive_buffer: int = 0) -> ssl.SSLSocket:
    raw = socket.socket()
    if receive_buffer:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    raw.settimeout(30)
    raw.connect(("127.0.0.1", server.port))
    return server.ssl_context().wrap_socket(raw, server_hostname="localhost")


def request(method: str, path: str, *fields: str) -> bytes:
    return "\r\n".join((f"{method} {path} HTTP/1.1", "Host: localhost", *fields, "", "")).encode()


def read_to_end(stream: ssl.SSLSocket) -> bytes:
    data = b""
    try:
        while piece := stream.recv(65536):
            data += piece
    except (ssl.SSLError, ConnectionError):
        pass
    return data


def answer_in(client: Client, seconds: float) -> None:
    """Somebody else's request is answered in time."""
    began = time.monotonic()
    assert client("GET", "/api/v1/namespaces/default")[0] == 200
    assert time.monotonic() - began < seconds


def test_watchers_that_never_read_are_cut_and_delay_nobody(server: RunningServer, client: Client) -> None:
    filler = "x" * 900_000
    count = MAX_BUFFERED // len(filler) + 10
    status, made = client("POST", MAPS, {"metadata": {"name": "large"}, "data": {"number": "0"}})
    assert status == 201
    since = made["metadata"]["resourceVersion"]
    path = f"{MAPS}?watch=1&resourceVersion={since}&timeoutSeconds=600"
    stalled = [connect(server, receive_buffer=4096) for _ in range(4)]
    for one in stalled:
        one.sendall(request("GET", path))
        assert b"200 OK" in one.recv(100)
    numbers: list[int] = []

    def read() -> None:
        reading = Client(server)
        for event in reading.watch(int(since), 600, MAPS):
            numbers.append(event.number)
            if event.number == count:
                break
        reading.close()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    before = resident(server)
    most = 0
    for number in range(1, count + 1):
        body = {"metadata": {"name": "large"}, "data": {"number": str(number), "filler": filler}}
        assert client("PUT", f"{MAPS}/large", body)[0] == 200
        answer_in(client, 2)
        most = max(most, resident(server) - before)
    reader.join(60)
    assert numbers == list(range(1, count + 1))
    # Each of the four may have 16 MiB waiting (encrypted one by one), and the events of the window are kept.
    assert most < 4 * 16 + 150, f"{most} MiB more"
    for one in stalled:
        got = read_to_end(one)
        assert len(got) < count * len(filler), "was never cut"
        assert not got.endswith(b"0\r\n\r\n"), "a cut watch must not look complete"
        one.close()
    assert client("DELETE", f"{MAPS}/large")[0] == 200


def read_until(stream: ssl.SSLSocket, mark: bytes) -> bytes:
    data = bytearray()
    while mark not in data[-100_000:]:
        piece = stream.recv(65536)
        assert piece, f"cut after {len(data)} bytes"
        data += piece
    return bytes(data)


def test_a_backlog_above_the_limit_is_no_reason_to_cut(tmp_path: Path) -> None:
    """What a watch has to begin with may be more than a client that does not read may be owed later."""
    count = MAX_BUFFERED // 900_000 + 10
    first = RunningServer(tmp_path)
    client = Client(first)
    since = 0
    for number in range(count):
        body = {"metadata": {"name": f"large-{number:02}"}, "data": {"filler": "x" * 900_000}}
        status, made = client("POST", MAPS, body)
        assert status == 201
        since = since or int(made["metadata"]["resourceVersion"])
    client.close()
    assert first.stop() == 0
    server = RunningServer(tmp_path)  # so that the backlog has to come from the history
    try:
        client = Client(server)
        for query, expected in ((f"resourceVersion={since}", count - 1), ("resourceVersion=0", count)):
            one = connect(server, receive_buffer=4096)
            one.sendall(request("GET", f"{MAPS}?watch=1&timeoutSeconds=60&{query}"))
            assert b" 200 OK" in one.recv(100)
            path = f"{MAPS}/mark"
            assert client("POST", MAPS, {"metadata": {"name": "mark"}, "data": {"mark": query}})[0] == 201
            assert client("DELETE", path)[0] == 200
            got = read_until(one, b'"DELETED"')
            assert got.count(b'"type":"ADDED","object"') == expected + 1
            one.close()
        client.close()
    finally:
        assert server.stop() == 0


def test_many_idle_connections(server: RunningServer, client: Client) -> None:
    context = server.ssl_context()
    before = resident(server)
    idle = []
    try:
        for _ in range(500):
            raw = socket.create_connection(("127.0.0.1", server.port), timeout=30)
            idle.append(context.wrap_socket(raw, server_hostname="localhost"))
        plain = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(500)]
        idle += plain  # not even a handshake
        answer_in(client, 1)
        assert (resident(server) - before) * 1024 / len(idle) < 150, "KiB per idle connection"
    finally:
        for one in idle:
            one.close()
    answer_in(client, 1)


def test_slow_heads_and_bodies_delay_nobody(server: RunningServer, client: Client) -> None:
    head = request("POST", MAPS, "Content-Type: application/json", "Content-Length: 100000")
    slow = [connect(server) for _ in range(40)]
    for at, one in enumerate(slow):
        one.sendall(head[: 30 + at] if at % 2 else head + b'{"metadata"')
    for step in range(3):
        for one in slow:
            one.sendall(b"x" if step else b" ")
        answer_in(client, 1)
    for one in slow:
        one.close()


def test_half_closed_connections(server: RunningServer, client: Client) -> None:
    for _ in range(5):
        one = connect(server)
        one.sendall(request("GET", "/version"))
        socket.socket.shutdown(one, socket.SHUT_WR)  # no close_notify: a FIN in the middle of TLS
        read_to_end(one)
        one.close()
        one = connect(server)
        one.sendall(request("GET", f"{MAPS}?watch=1"))
        one.recv(1000)
        socket.socket.shutdown(one, socket.SHUT_WR)
        one.close()
    answer_in(client, 1)


def test_huge_headers_are_refused(server: RunningServer, client: Client) -> None:
    one = connect(server)
    try:
        one.sendall(request("GET", "/version", "X-Large: " + "x" * 1_200_000))
    except (ssl.SSLError, ConnectionError):
        pass  # refused before all of it was sent
    assert read_to_end(one).startswith(b"HTTP/1.1 431 ")
    one.close()
    one = connect(server)
    one.sendall(request("GET", "/version", *(f"X-{n}: y" for n in range(20_000)), "Connection: close"))
    assert read_to_end(one)[:12] in (b"HTTP/1.1 200", b"HTTP/1.1 431")
    one.close()
    answer_in(client, 1)


def test_pipelined_requests_are_answered_in_order(server: RunningServer) -> None:
    names = [f"pipe-{n}" for n in range(60)]
    last = len(names) - 1
    one = connect(server)
    data = b""
    for n, name in enumerate(names):
        body = json.dumps({"metadata": {"name": name}}).encode()
        head = request("POST", MAPS, "Content-Type: application/json", f"Content-Length: {len(body)}")
        get = request("GET", f"{MAPS}/{name}", *(["Connection: close"] if n == last else []))
        data += head + body + get
    one.sendall(data)
    answers = read_to_end(one)
    one.close()
    codes = [line.split()[1] for line in answers.split(b"\n") if line.startswith(b"HTTP/1.1 ")]
    assert codes == [b"201", b"200"] * len(names)
    found = [json.loads(line)["metadata"]["name"] for line in answers.split(b"\n") if line.startswith(b'{"kind"')]
    assert found == [name for name in names for _ in range(2)]


def handshake(server: RunningServer, context: ssl.SSLContext) -> Any:
    raw = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    one = context.wrap_socket(raw, server_hostname="localhost")
    try:
        one.sendall(request("GET", "/api/v1/namespaces", "Connection: close"))
        return read_to_end(one)
    finally:
        one.close()


def test_wrong_tls(server: RunningServer, client: Client, tmp_path: Path) -> None:
    ca = str(server.data_dir / "pki/ca.crt")
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    plain.sendall(request("GET", "/version"))
    try:
        assert b"200 OK" not in plain.recv(1000)
    except ConnectionError:
        pass
    plain.close()
    strange = Authority("another")
    pair = strange.write_pair(tmp_path / "c.pem", tmp_path / "c.key", "admin")
    context = ssl.create_default_context(cafile=ca)
    context.load_cert_chain(*pair)
    try:
        assert b" 200 OK" not in handshake(server, context)
    except (ssl.SSLError, ConnectionError):
        pass  # refused in the handshake
    without = ssl.create_default_context(cafile=ca)
    assert handshake(server, without).startswith(b"HTTP/1.1 403 ")
    old = ssl.create_default_context(cafile=ca)
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.options &= ~ssl.OP_NO_TLSv1_1
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handshake(server, old)
    answer_in(client, 1)


def test_random_bytes_inside_tls(server: RunningServer, client: Client) -> None:
    import random

    rng = random.Random(7)
    for _ in range(30):
        one = connect(server)
        try:
            one.sendall(rng.randbytes(rng.randrange(1, 3000)) + b"\r\n\r\n")
            one.settimeout(0.02)
            read_to_end(one)
        except (TimeoutError, *GONE):
            pass
        one.close()
    answer_in(client, 1)


def test_requests_given_up_early(server: RunningServer, client: Client) -> None:
    """Lists of much that nobody waits for, and writes whose answers nobody reads."""
    body = json.dumps({"metadata": {"generateName": "g-"}, "data": {"k": "x" * 50_000}}).encode()
    head = request("POST", MAPS, "Content-Type: application/json", f"Content-Length: {len(body)}")
    for _ in range(40):
        one = connect(server)
        one.sendall(head + body + request("GET", MAPS))
        one.close()
    answer_in(client, 2)
    status, listing = client("GET", MAPS)
    assert status == 200
    assert all("resourceVersion" in item["metadata"] for item in listing["items"])
    assert http.client.responses[status] == "OK"
    assert client("DELETE", MAPS)[0] == 200

"""Servers that want the kit to wait for ever, or to fall over its own feet."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from fastapi_core.testing.conformance import client as module
from fastapi_core.testing.conformance.client import Client, EndlessError, unpacked
from fastapi_core.testing.conformance.runner import run
from fastapi_core.testing.conformance.target import Target
from fastapi_core.testing.conformance.verdicts import Failed

Script = Callable[[socket.socket, bytes], None]
HEAD = b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def whole(body: bytes, status: int = 200) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body


class Hostile:
    """Does what `script` says with every request, on a thread for each connection."""

    def __init__(self) -> None:
        self.script: Script = lambda connection, head: connection.sendall(whole(b"{}"))
        self.over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(10)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError), self._listener:
            while True:
                connection, _ = self._listener.accept()
                if self.over.is_set():
                    connection.close()
                    return
                thread = threading.Thread(target=self._serve, args=(connection,))
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.settimeout(10)
            data = b""
            while True:
                while b"\r\n\r\n" not in data:
                    piece = connection.recv(1 << 16)
                    if not piece:
                        return
                    data += piece
                head, data = data.split(b"\r\n\r\n", 1)
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
                while len(data) < length:
                    data += connection.recv(1 << 16)
                data = data[length:]
                self.script(connection, head)

    def close(self) -> None:
        self.over.set()
        socket.create_connection(self._listener.getsockname()).close()
        for thread in self._threads:
            thread.join(10)


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    made = Hostile()
    yield made
    made.close()


@pytest.fixture
def client(hostile: Hostile) -> Iterator[Client]:
    made = Client(Target(hostile.url, timeout=0.3, patience=0.3))
    yield made
    made.close()


def forever(hostile: Hostile, first: bytes, piece: bytes) -> Script:
    def script(connection: socket.socket, head: bytes) -> None:
        connection.sendall(first)
        while not hostile.over.wait(0.02):
            connection.sendall(piece)

    return script


@pytest.mark.parametrize(
    ("first", "piece"),
    [(b"HTTP/1.1 200 X\r\n", b"X: y\r\n"), (b"", b"HTTP/1.1 100 X\r\n\r\n"), (CHUNKED, b"1\r\n \r\n"), (HEAD + b"\r\n", b" ")],
)  # fmt: skip
def test_an_answer_has_its_time_as_a_whole(hostile: Hostile, client: Client, first: bytes, piece: bytes) -> None:
    hostile.script = forever(hostile, first, piece)
    begun = time.monotonic()
    with pytest.raises((OSError, http.client.HTTPException)):
        client.request("GET", "/x")
    assert time.monotonic() - begun < 3.0
    hostile.script = lambda connection, head: connection.sendall(whole(b'{"a":1}'))
    assert client.request("GET", "/x").tree() == {"a": 1}


def test_bodies_have_a_limit(hostile: Hostile, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", 1000)
    for answer in (
        HEAD + b"Content-Length: 1001\r\n\r\n",
        CHUNKED + b"3e9\r\n" + b" " * 1001 + b"\r\n0\r\n\r\n",
        HEAD + b"\r\n" + b" " * 1001,
    ):
        hostile.script = lambda connection, head, answer=answer: connection.sendall(answer)  # type: ignore[misc]
        with pytest.raises(EndlessError):
            client.request("GET", "/x")
    for answer in (whole(b" " * 1000), CHUNKED + b"3e8\r\n" + b" " * 1000 + b"\r\n0\r\n\r\n", whole(b"")):
        hostile.script = lambda connection, head, answer=answer: connection.sendall(answer)  # type: ignore[misc]
        assert client.request("GET", "/x").body.strip() == b""


def test_a_body_that_is_cut_off(hostile: Hostile, client: Client) -> None:
    def half(connection: socket.socket, head: bytes) -> None:
        connection.sendall(HEAD + b"Content-Length: 9\r\n\r\nhalf")
        connection.shutdown(socket.SHUT_RDWR)

    hostile.script = half
    with pytest.raises(http.client.IncompleteRead):
        client.request("GET", "/x")


def test_what_is_nested_without_end_is_a_failure(hostile: Hostile, client: Client) -> None:
    deep = b'{"metadata":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    hostile.script = lambda connection, head: connection.sendall(whole(deep))
    with pytest.raises(Failed, match="nested without end"):
        client.request("GET", "/x").tree()
    hostile.script = lambda connection, head: connection.sendall(HEAD + b"\r\n" + deep + b"\n")
    with client.watch("/x") as watch, pytest.raises(Failed, match="one event a line"):
        watch.next()


def test_watches_end_however_much_comes(hostile: Hostile, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def flood(connection: socket.socket, head: bytes) -> None:
        connection.sendall(HEAD + b"\r\n")
        while not hostile.over.is_set():
            connection.sendall(b'{"type":"ADDED","object":{}}\n' * 50)

    hostile.script = flood
    begun = time.monotonic()
    with client.watch("/x") as watch, pytest.raises(Failed, match="time is over"):
        watch.rest(0)
    hostile.script = forever(hostile, HEAD + b"\r\n", b" ")
    with client.watch("/x") as watch, pytest.raises(Failed, match="nothing came"):
        watch.next()
    monkeypatch.setattr(module, "LONGEST", 100)
    hostile.script = forever(hostile, HEAD + b"\r\n", b" " * 1000)
    with client.watch("/x") as watch, pytest.raises(Failed, match="does not end"):
        watch.next()
    assert time.monotonic() - begun < 5.0


def test_packed_bodies_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unpacked(gzip.compress(b"some text")) == b"some text"
    monkeypatch.setattr(module, "LONGEST", 1000)
    for data in (gzip.compress(b" " * 5000), gzip.compress(b"half")[:-3], b"text", b"", gzip.compress(b"x") + b"y"):
        with pytest.raises(ValueError, match=r"gzip|header|stream|check"):
            unpacked(data)


def test_pages_that_lead_in_a_circle_are_a_failure(hostile: Hostile) -> None:
    lists = b'{"kind":"KList","apiVersion":"h.io/v1","metadata":{"continue":"ever","resourceVersion":"1"},"items":[]}'
    resources = (
        b'{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"h.io/v1","resources":[{"name":"ks","kind":"K",'
        b'"singularName":"k","namespaced":false,"verbs":["get","list","create","delete"]}]}'
    )
    version = b'{"groupVersion":"h.io/v1","version":"v1"}'
    group = b'{"kind":"APIGroup","apiVersion":"v1","name":"h.io","versions":[%b],"preferredVersion":%b}' % (
        version,
        version,
    )
    made = b'{"kind":"K","apiVersion":"h.io/v1","metadata":{"name":"a","uid":"u","resourceVersion":"1"}}'

    def script(connection: socket.socket, head: bytes) -> None:
        method, path = head.split(b" ")[:2]
        documents = {b"/apis": b'{"kind":"APIGroupList","apiVersion":"v1","groups":[%b]}' % group,
                     b"/apis/h.io": group, b"/apis/h.io/v1": resources}  # fmt: skip
        if method == b"POST":
            connection.sendall(whole(made, 201))
        else:
            connection.sendall(whole(documents.get(path.partition(b"?")[0], lists)))

    hostile.script = script
    report = run(
        Target(hostile.url, timeout=5, patience=0.2, settle=0.0),
        "h.io",
        samples=[{"kind": "K", "apiVersion": "h.io/v1", "metadata": {"name": "a"}}],
        only=["page.one-state"],
    )
    (result,) = report.results
    assert "not back to where it has been" in result.reason[0]

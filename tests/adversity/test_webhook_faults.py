"""Webhook servers that misbehave: the request they were asked about fails as its policy says, everything else goes on."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastapi_core.testing.server import RunningServer
from tests.adversity.killing import Client
from tests.fixtures.rude import Behaviour, RudeServer, answer, keeping, reset, review

pytestmark = pytest.mark.adversity

MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
HOOKS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
FAILED = 'Internal error occurred: failed calling webhook "a.example.test": '
HUGE = 64 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    running = RunningServer(tmp_path_factory.mktemp("faults"))
    yield running
    assert running.process.poll() is None, "the server died"
    assert running.stop() == 0


@pytest.fixture
def client(server: RunningServer) -> Iterator[Client]:
    made = Client(server)
    yield made
    made.close()


@pytest.fixture
def rude(tmp_path: Path) -> Iterator[RudeServer]:
    made = RudeServer(tmp_path / "rude")
    yield made
    made.close()


@contextlib.contextmanager
def configured(client: Client, rude: RudeServer, kind: str = "validating", **more: Any) -> Iterator[str]:
    """A webhook on ConfigMaps for as long as the block lasts; yields the path of its configuration."""
    rule = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    hook = {
        "name": "a.example.test",
        "clientConfig": {"url": rude.url + "/a", "caBundle": rude.bundle},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
        **more,
    }
    path = HOOKS.format(kind)
    status, told = client("POST", path, {"metadata": {"name": "rude"}, "webhooks": [hook]})
    assert status == 201, told
    try:
        yield f"{path}/rude"
    finally:
        assert client("DELETE", f"{path}/rude")[0] in (200, 404)


def half_a_head(connection: Any, body: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Le")


def half_a_body(connection: Any, body: bytes) -> None:
    connection.sendall(answer(review(body))[:-20])


def half_a_chunk(connection: Any, body: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{")


def bad_chunk(connection: Any, body: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n")


def huge(connection: Any, body: bytes) -> None:
    connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {HUGE}\r\n\r\n".encode())
    for _ in range(HUGE >> 16):
        connection.sendall(b" " * 65536)


def endless_head(connection: Any, body: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    for number in range(1 << 20):
        connection.sendall(b"x-%d: %b\r\n" % (number, b"y" * 4096))


def says(text: bytes) -> Behaviour:
    return lambda connection, body: connection.sendall(text)


def tells(document: bytes) -> Behaviour:
    return says(answer(document))


FAULTS: dict[str, tuple[Behaviour, str]] = {
    "closes": (lambda connection, body: None, ": EOF"),
    "resets": (lambda connection, body: reset(connection), 'failed to call webhook: Post "https://127.0.0.1:'),
    "garbage": (says(b"garbage\r\n\r\n"), 'malformed HTTP response "garbage"'),
    "binary": (says(bytes(range(256))), "malformed HTTP response"),
    "half a head": (half_a_head, ": unexpected EOF"),
    "half a body": (half_a_body, "Original error: unexpected EOF"),
    "half a chunk": (half_a_chunk, "Original error: unexpected EOF"),
    "bad chunk": (bad_chunk, "error when reading response body"),
    "huge": (huge, "the answer is longer than"),
    "endless head": (endless_head, "server response headers exceeded"),
    "an upgrade": (
        says(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"),
        "failed to call",
    ),
    "no json": (tells(b"<html>"), "couldn't get version/kind; json parse error"),
    "no object": (tells(b"[]"), "json parse error"),
    "deep": (tells(b'{"a":' * 5000 + b"1" + b"}" * 5000), "failed to call webhook"),
    "nothing": (tells(b""), "0-length response with status code: 200"),
    "no response": (tells(b"{}"), "received invalid webhook response: webhook response was absent"),
    "another kind": (tells(b'{"kind":"Pod","apiVersion":"v1"}'), 'no kind "Pod" is registered for version "v1"'),
    "wrong types": (
        tells(b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":7}}'),
        "json: cannot unmarshal number into Go struct field",
    ),
    "wrong uid": (
        lambda connection, body: connection.sendall(answer(review(body, uid="x"))),
        'received invalid webhook response: expected response.uid="',
    ),
    "bad base64": (
        lambda connection, body: connection.sendall(answer(review(body, patch="!", patchType="JSONPatch"))),
        "failed to call webhook: ",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_answer_fails_the_request_or_is_ignored(fault: str, client: Client, rude: RudeServer) -> None:
    rude.behave, text = FAULTS[fault]
    with configured(client, rude):
        status, told = client("POST", MAPS, {"metadata": {"name": "x"}})
        assert (status, told["reason"]) == (500, "InternalError")
        assert told["message"].startswith(FAILED)
        assert text in told["message"]
        assert rude.asked == 1, "a question must not be repeated"
    with configured(client, rude, failurePolicy="Ignore"):
        assert client("POST", MAPS, {"metadata": {"name": "x"}})[0] == 201
        assert rude.asked == 2
    assert client("DELETE", f"{MAPS}/x")[0] == 200


def test_silence_delays_only_the_requests_it_is_about(server: RunningServer, client: Client, rude: RudeServer) -> None:
    rude.behave = lambda connection, body: rude.released.wait(30) and None
    answers: list[tuple[int, Any, float]] = []

    def ask(number: int) -> None:
        own = Client(server)
        started = time.monotonic()
        status, told = own("POST", MAPS, {"metadata": {"name": f"silent-{number}"}})
        answers.append((status, told, time.monotonic() - started))
        own.close()

    with configured(client, rude, timeoutSeconds=3) as path:
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(30)]
        for thread in threads:
            thread.start()
        while rude.asked < 30:
            assert any(thread.is_alive() for thread in threads)
            time.sleep(0.01)
        started = time.monotonic()
        assert client("POST", SECRETS, {"metadata": {"name": "free"}})[0] == 201
        assert client("GET", MAPS)[0] == 200
        assert client("DELETE", f"{SECRETS}/free")[0] == 200
        assert client("DELETE", path)[0] == 200
        assert client("POST", MAPS, {"metadata": {"name": "free"}})[0] == 201
        assert client("DELETE", f"{MAPS}/free")[0] == 200
        assert time.monotonic() - started < 2
        for thread in threads:
            thread.join()
    assert len(answers) == 30
    for status, told, seconds in answers:
        assert status == 500
        assert told["message"].startswith(FAILED)
        assert told["message"].endswith('?timeout=3s": context deadline exceeded')
        assert 2.9 < seconds < 8
    assert client("GET", f"{MAPS}/silent-0")[0] == 404


def test_a_trickle_is_cut_off_in_time(client: Client, rude: RudeServer) -> None:
    def trickle(connection: Any, body: bytes) -> None:
        for byte in answer(review(body)):
            connection.sendall(bytes((byte,)))
            if rude.released.wait(0.1):
                return

    rude.behave = trickle
    with configured(client, rude, timeoutSeconds=1):
        started = time.monotonic()
        status, told = client("POST", MAPS, {"metadata": {"name": "x"}})
        assert status == 500
        assert told["message"].endswith("context deadline exceeded")
        assert 0.9 < time.monotonic() - started < 4


def test_the_request_s_own_time_ends_first(client: Client, rude: RudeServer) -> None:
    rude.behave = lambda connection, body: rude.released.wait(30) and None
    for kind in ("mutating", "validating"):
        with configured(client, rude, kind, failurePolicy="Ignore", timeoutSeconds=30):
            status, told = client("POST", f"{MAPS}?timeout=1s", {"metadata": {"name": "x"}})
            assert (status, told["reason"]) == (504, "Timeout")
            assert client("GET", f"{MAPS}/x")[0] == 404


def test_an_expired_certificate(client: Client, tmp_path: Path) -> None:
    expired = RudeServer(tmp_path / "expired", days=(-2, -1))
    try:
        with configured(client, expired):
            status, told = client("POST", MAPS, {"metadata": {"name": "x"}})
            assert status == 500
            assert "x509: certificate has expired or is not yet valid" in told["message"]
            assert expired.asked == 0
    finally:
        expired.close()


def test_a_stranger_s_certificate(client: Client, rude: RudeServer, tmp_path: Path) -> None:
    other = RudeServer(tmp_path / "other")
    try:
        wrong = {"url": rude.url, "caBundle": other.bundle}
        with configured(client, rude, clientConfig=wrong):
            status, told = client("POST", MAPS, {"metadata": {"name": "x"}})
            assert status == 500
            assert "x509: certificate signed by unknown authority" in told["message"]
            assert rude.asked == 0
        named = {"url": rude.url.replace("127.0.0.1", "127.0.0.2"), "caBundle": rude.bundle}
        with configured(client, rude, clientConfig=named):
            assert client("POST", MAPS, {"metadata": {"name": "x"}})[0] == 500
    finally:
        other.close()


def test_connections_are_kept_and_a_stale_one_is_replaced(client: Client, rude: RudeServer) -> None:
    rude.behave = keeping
    with configured(client, rude):
        for number in range(5):
            assert client("POST", MAPS, {"metadata": {"name": f"kept-{number}"}})[0] == 201
        assert (rude.asked, rude.connections) == (5, 1)
        rude.behave = half_a_body
        assert client("POST", MAPS, {"metadata": {"name": "kept-5"}})[0] == 500
        rude.behave = keeping
        for number in range(5):
            assert client("DELETE", f"{MAPS}/kept-{number}")[0] == 200
    assert rude.connections == 2


def test_memory_stays_bounded(server: RunningServer, client: Client, rude: RudeServer) -> None:
    def resident() -> int:
        text = Path(f"/proc/{server.process.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) // 1024

    rude.behave = huge
    with configured(client, rude):
        client("POST", MAPS, {"metadata": {"name": "x"}})
        before = resident()
        for _ in range(8):
            assert client("POST", MAPS, {"metadata": {"name": "x"}})[0] == 500
    assert resident() - before < 48

"""Requests that take long to read, to check or to answer: others do not wait for them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fastapi_core.testing.server import RunningServer
from tests.adversity.killing import Client

pytestmark = pytest.mark.adversity

PATH = "/api/v1/namespaces/default/configmaps"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"


class Others(threading.Thread):
    """Somebody who reads one object after the other; `worst` is how long one took."""

    def __init__(self, server: RunningServer) -> None:
        super().__init__(daemon=True)
        self.client = Client(server)
        self.ended = threading.Event()
        self.times: list[float] = []

    def run(self) -> None:
        while not self.ended.is_set():
            began = time.monotonic()
            assert self.client("GET", "/api/v1/namespaces/default")[0] == 200
            self.times.append(time.monotonic() - began)
            self.ended.wait(0.002)
        self.client.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    running = RunningServer(tmp_path_factory.mktemp("heavy"))
    yield running
    assert running.stop() == 0


def send(server: RunningServer, method: str, path: str, body: bytes | None, kind: str = "", accept: str = "") -> Any:
    """(status, bytes, seconds, the worst time of others meanwhile)."""
    client = Client(server, timeout=120)
    client("GET", "/api/v1/namespaces/default")
    others = Others(server)
    others.start()
    while len(others.times) < 5:
        others.join(0.01)
    others.times.clear()
    began = time.monotonic()
    client.connection.request(method, path, body, {"Content-Type": kind, "Accept": accept or "application/json"})
    answer = client.connection.getresponse()
    found = answer.read()
    took = time.monotonic() - began
    others.ended.set()
    others.join(30)
    client.close()
    print(f"{method} {path}: {answer.status} in {took:.2f} s, others at most {max(others.times) * 1000:.0f} ms")
    return answer.status, found, took, max(others.times)


def yaml(name: str, keys: int) -> bytes:
    data = "".join(f"  key-{n:06}: some value\n" for n in range(keys))
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n{data}".encode()


def test_large_yaml(server: RunningServer) -> None:
    status, found, took, worst = send(server, "POST", PATH, yaml("created", 30_000), "application/yaml")
    assert status == 201, found
    assert worst < 0.3 + took / 3
    apply = "application/apply-patch+yaml"
    target = f"{PATH}/applied?fieldManager=test"
    for wanted in (201, 200):
        status, found, took, worst = send(server, "PATCH", target, yaml("applied", 12_000), apply)
        assert status == wanted, found
        assert worst < 0.3 + took / 3
    status, found, took, worst = send(server, "GET", PATH, None, accept="application/yaml")
    assert status == 200
    assert found.count(b"key-000007: some value") == 2
    assert worst < 0.3 + took / 3
    status, found, took, worst = send(server, "POST", PATH, b"data: [" + b"[]," * 900_000 + b"]", "application/yaml")
    assert status == 400
    assert worst < 0.3 + took / 3


def test_more_errors_than_an_answer_has_room_for(server: RunningServer) -> None:
    body = {"metadata": {"name": "x", "finalizers": ["/"] * 300_000}}
    status, found, took, worst = send(server, "POST", PATH, json.dumps(body).encode(), "application/json")
    assert status == 422
    assert b"more errors" in found
    assert len(found) < 10 << 20
    assert worst < 0.5 + took / 2


def test_a_policy_at_the_limit_of_its_budget(server: RunningServer) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [
            {"expression": f"object.data.all(k, object.data.all(j, k != j || {n} == {n}))"} for n in range(8)
        ],
    }
    client = Client(server)
    body = {"metadata": {"name": "heavy"}, "spec": spec}
    assert client("POST", f"{ADMISSION}/validatingadmissionpolicies", body)[0] == 201
    body = {"metadata": {"name": "heavy"}, "spec": {"policyName": "heavy", "validationActions": ["Deny"]}}
    assert client("POST", f"{ADMISSION}/validatingadmissionpolicybindings", body)[0] == 201
    client.close()
    secret = {"metadata": {"name": "heavy"}, "data": {f"k{n:04}": "" for n in range(2000)}}
    path = "/api/v1/namespaces/default/secrets"
    status, found, took, worst = send(server, "POST", path, json.dumps(secret).encode(), "application/json")
    assert status == 422, found
    assert b"cost limit exceeded" in found or b"cost budget" in found
    assert worst < 0.3 + took / 3

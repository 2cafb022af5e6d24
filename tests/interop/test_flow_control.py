"""Flow control of a running server: a flood by one user, the dumps, and the server without it."""

from __future__ import annotations

import http.client
import json
import math
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastapi_core.testing.server import RunningServer
from tests.fixtures.server import Api

TOKENS = (
    ("admintoken", "admin", "1", "system:masters"),
    ("rudetoken", "rude", "2", "devs"),
    ("calmtoken", "calm", "3", "devs"),
)
MAPS = "/api/v1/namespaces/default/configmaps"
ASKED = 40
DUMPS = "/debug/api_priority_and_fairness/"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Ten seats in all, so that each level has one or two."""
    flags = ["--max-requests-inflight=5", "--max-mutating-requests-inflight=5", "--authorization-mode=AlwaysAllow"]
    running = RunningServer(tmp_path_factory.mktemp("flow"), tokens=TOKENS, flags=flags)
    yield running
    assert running.stop() == 0


class Caller(Api):
    """Known by its token alone."""

    def __init__(self, server: RunningServer, token: str) -> None:
        self.server, self.token = server, token
        self.connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=bare(), timeout=60)


def bare() -> ssl.SSLContext:
    return ssl._create_unverified_context()


@pytest.fixture
def admin(small: RunningServer) -> Iterator[Api]:
    made = Api(small)
    yield made
    made.connection.close()


@pytest.fixture
def calm(small: RunningServer) -> Iterator[Api]:
    made = Caller(small, "calmtoken")
    yield made
    made.connection.close()


def value(api: Api, metric: str, labels: str) -> float:
    status, text = api("GET", "/metrics")
    assert status == 200
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(metric) and labels in line)


class Flood:
    """Writers of one user, each with a connection of its own, that go on until told to stop."""

    def __init__(self, server: RunningServer, count: int) -> None:
        self.statuses: dict[int, int] = {}
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run, args=(server, n), daemon=True) for n in range(count)]
        for thread in self._threads:
            thread.start()

    def _run(self, server: RunningServer, number: int) -> None:
        api = Caller(server, "rudetoken")
        serial = 0
        while not self._stop.is_set():
            serial += 1
            status, _ = api("POST", MAPS, {"metadata": {"name": f"flood-{number}-{serial}"}})
            with self._lock:
                self.statuses[status] = self.statuses.get(status, 0) + 1
        api.connection.close()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()


def open_watches(server: RunningServer, count: int) -> list[ssl.SSLSocket]:
    """A write that this many watches see keeps its seat for half a millisecond of each."""
    opened = []
    request = f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer admintoken\r\n\r\n"
    for _ in range(count):
        stream = bare().wrap_socket(socket.create_connection(("127.0.0.1", server.port), timeout=30))
        stream.sendall(request.encode())
        assert stream.recv(12) == b"HTTP/1.1 200"
        opened.append(stream)
    return opened


def test_a_flood_of_one_user_does_not_hold_up_another(small: RunningServer, admin: Api, calm: Api) -> None:
    watches = open_watches(small, 60)
    flood = Flood(small, 30)
    try:
        deadline = time.monotonic() + 60
        while value(admin, "apiserver_flowcontrol_current_inqueue_requests", 'flow_schema="global-default"') < 10:
            assert time.monotonic() < deadline, "the flood never had to wait"
        before = sum(flood.statuses.values())
        seconds: list[float] = []
        for _ in range(ASKED):
            began = time.monotonic()
            assert calm("GET", "/api/v1/namespaces/default")[0] == 200
            seconds.append(time.monotonic() - began)
        served = sum(flood.statuses.values()) - before
    finally:
        flood.stop()
        for watch in watches:
            watch.close()
    assert set(flood.statuses) <= {201, 429}
    # In the line of the flood the polite user would be behind twenty or more others each time. The flood fills the
    # six queues of its hand: a request of somebody else has at most one of each before it, and one that runs.
    assert served < ASKED * 12, f"{served} requests of the flood were served during {ASKED} of the other user"
    worst = sorted(seconds)[math.ceil(len(seconds) * 0.99) - 1]
    assert worst < 5, f"{worst:.2f} s"
    assert admin("GET", DUMPS + "dump_queues")[0] == 200


GROUP = "/apis/flowcontrol.apiserver.k8s.io/v1"


@pytest.fixture
def jail(admin: Api) -> Iterator[str]:
    """A priority level without seats, and a schema that sends the polite user's reads of namespaces there."""
    queuing = {"queues": 4, "handSize": 1, "queueLengthLimit": 10}
    limited = {
        "nominalConcurrencyShares": 0,
        "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Queue", "queuing": queuing},
    }
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["namespaces"], "clusterScope": True, "namespaces": ["*"]}
    schema = {
        "matchingPrecedence": 50,
        "priorityLevelConfiguration": {"name": "jail"},
        "rules": [{"subjects": [{"kind": "User", "user": {"name": "calm"}}], "resourceRules": [rule]}],
    }
    level = {"metadata": {"name": "jail"}, "spec": {"type": "Limited", "limited": limited}}
    assert admin("POST", f"{GROUP}/prioritylevelconfigurations", level)[0] == 201
    assert admin("POST", f"{GROUP}/flowschemas", {"metadata": {"name": "jail"}, "spec": schema})[0] == 201
    yield "jail"
    assert admin("DELETE", f"{GROUP}/flowschemas/jail")[0] == 200
    assert admin("DELETE", f"{GROUP}/prioritylevelconfigurations/jail")[0] == 200


def await_value(api: Api, metric: str, labels: str, wanted: float) -> None:
    deadline = time.monotonic() + 30
    while value(api, metric, labels) != wanted:
        assert time.monotonic() < deadline, f"{metric} never was {wanted}"


INQUEUE = "apiserver_flowcontrol_current_inqueue_requests"
QUEUED_READ = b"GET /api/v1/namespaces/default HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer calmtoken\r\n\r\n"


def test_a_client_that_leaves_the_queue_is_forgotten(small: RunningServer, admin: Api, jail: str) -> None:
    labels = f'priority_level="{jail}"'
    streams = []
    for _ in range(3):
        stream = bare().wrap_socket(socket.create_connection(("127.0.0.1", small.port), timeout=30))
        stream.sendall(QUEUED_READ)
        streams.append(stream)
    await_value(admin, INQUEUE, labels, 3)
    _, text = admin("GET", DUMPS + "dump_requests?includeRequestDetails=1")
    assert sum(line.startswith("jail,") and "calm," in line for line in text.splitlines()) == 3
    for stream in streams:
        stream.close()
    await_value(admin, INQUEUE, labels, 0)
    assert value(admin, "apiserver_flowcontrol_rejected_requests_total", f'{labels},reason="cancelled"') == 3
    assert value(admin, "apiserver_flowcontrol_dispatched_requests_total", labels) == 0


def test_who_waits_is_served_once_the_level_gets_seats(small: RunningServer, admin: Api, jail: str) -> None:
    with bare().wrap_socket(socket.create_connection(("127.0.0.1", small.port), timeout=30)) as stream:
        stream.sendall(QUEUED_READ)
        await_value(admin, INQUEUE, f'priority_level="{jail}"', 1)
        more = {"spec": {"limited": {"nominalConcurrencyShares": 100}}}
        merge = {"Content-Type": "application/merge-patch+json"}
        assert admin("PATCH", f"{GROUP}/prioritylevelconfigurations/{jail}", more, merge)[0] == 200
        assert stream.recv(12) == b"HTTP/1.1 200"


def test_dumps_are_for_those_who_are_known(small: RunningServer, admin: Api) -> None:
    status, text = admin("GET", DUMPS + "dump_priority_levels")
    assert status == 200
    assert text.startswith("PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing,")
    assert [line.split(",")[0] for line in text.splitlines()[1:]] == [
        "catch-all", "exempt", "global-default", "leader-election", "node-high", "system", "workload-high",
        "workload-low",
    ]  # fmt: skip
    status, text = admin("GET", DUMPS + "dump_requests?includeRequestDetails=1")
    assert status == 200
    assert f"{DUMPS}dump_requests" in text
    connection = http.client.HTTPSConnection("127.0.0.1", small.port, context=bare(), timeout=30)
    for name in ("dump_priority_levels", "dump_queues", "dump_requests"):
        connection.request("GET", DUMPS + name)
        answer = connection.getresponse()
        answer.read()
        assert answer.status in (401, 403)
    connection.close()
    assert not [path for path in admin("GET", "/")[1]["paths"] if "priority_and_fairness" in path]


def test_answers_say_which_objects_decided(admin: Api, calm: Api) -> None:
    schema = admin("GET", f"{GROUP}/flowschemas/global-default")[1]["metadata"]["uid"]
    level = admin("GET", f"{GROUP}/prioritylevelconfigurations/global-default")[1]["metadata"]["uid"]
    for path, status in (("/api/v1/namespaces/default", 200), ("/api/v1/namespaces/none", 404)):
        calm.connection.request("GET", path, headers={"Authorization": "Bearer calmtoken"})
        answer = calm.connection.getresponse()
        answer.read()
        assert answer.status == status
        assert answer.headers["X-Kubernetes-PF-FlowSchema-UID"] == schema
        assert answer.headers["X-Kubernetes-PF-PriorityLevel-UID"] == level


def test_hooks_are_health_checks(admin: Api) -> None:
    status, text = admin("GET", "/readyz?verbose")
    assert status == 200
    for name in ("config-consumer", "config-producer", "filter"):
        assert f"[+]poststarthook/priority-and-fairness-{name} ok" in text


def test_lists_take_seats_by_their_size(admin: Api, calm: Api) -> None:
    body = {"metadata": {"name": "large"}, "data": {"filler": "x" * 500_000}}
    assert admin("POST", MAPS, body)[0] in (201, 409)
    assert calm("GET", MAPS)[0] == 200
    metric = "apiserver_flowcontrol_work_estimated_seats_sum"
    labels = 'priority_level="exempt"'
    before = value(admin, metric, labels)
    assert admin("GET", MAPS)[0] == 200
    # The list itself, and what asks for the metric.
    assert value(admin, metric, labels) - before > 5


def test_without_it_the_two_limits_hold(tmp_path: Path) -> None:
    running = RunningServer(tmp_path / "data", tokens=TOKENS, flags=["--enable-priority-and-fairness=false"])
    try:
        admin = Api(running)
        admin.connection.request("GET", "/api/v1/namespaces", headers={"Authorization": "Bearer admintoken"})
        answer = admin.connection.getresponse()
        assert json.loads(answer.read())["kind"] == "NamespaceList"
        assert answer.headers["X-Kubernetes-PF-FlowSchema-UID"] is None
        assert admin("GET", DUMPS + "dump_queues")[0] == 404
        assert "flowcontrol" not in admin("GET", "/metrics")[1].replace("flowcontrol.apiserver.k8s.io", "")
        # The objects are others' too.
        status, listed = admin("GET", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas")
        assert (status, len(listed["items"])) == (200, 11)
        admin.connection.close()
    finally:
        assert running.stop() == 0

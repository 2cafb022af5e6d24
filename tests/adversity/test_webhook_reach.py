"""What a whole server asks webhooks about: subresources, connections, deletions of many, reviews, other versions."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastapi_core.testing.server import RunningServer
from tests.adversity.killing import Client
from tests.fixtures.rude import RudeServer, answer, review

pytestmark = pytest.mark.adversity

NAMESPACE = "/api/v1/namespaces/default"
PODS, MAPS = f"{NAMESPACE}/pods", f"{NAMESPACE}/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
HOOKS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
CONTAINERS = [{"name": "c", "image": "i"}]

Tree = dict[str, Any]


class Witness(RudeServer):
    """Answers politely with `response` and keeps the requests of the reviews."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.requests: list[Tree] = []
        self.response: Tree = {}
        self._lock = threading.Lock()
        self.behave = self._answer

    def _answer(self, connection: Any, body: bytes) -> None:
        with self._lock:
            self.requests.append(json.loads(body)["request"])
        connection.sendall(answer(review(body, **self.response)))

    def seen(self) -> list[tuple[str, str, str]]:
        """(operation, kind, subresource) of each since the last call."""
        with self._lock:
            found = [(r["operation"], r["kind"]["kind"], r.get("subResource", "")) for r in self.requests]
            self.requests.clear()
        return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    running = RunningServer(tmp_path_factory.mktemp("reach"))
    client = Client(running)
    client("POST", f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})
    client.close()
    yield running
    assert running.stop() == 0


@pytest.fixture
def client(server: RunningServer) -> Iterator[Client]:
    made = Client(server)
    yield made
    made.close()


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[Witness]:
    made = Witness(tmp_path / "witness")
    yield made
    made.close()


@pytest.fixture
def configure(client: Client, witness: Witness) -> Iterator[Any]:
    paths: list[str] = []

    def make(kind: str, group: str, version: str, *resources: str) -> None:
        rule = {"operations": ["*"], "apiGroups": [group], "apiVersions": [version], "resources": list(resources)}
        hook = {
            "name": "w.example.test",
            "clientConfig": {"url": witness.url, "caBundle": witness.bundle},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        path = HOOKS.format(kind)
        status, told = client("POST", path, {"metadata": {"name": "w"}, "webhooks": [hook]})
        assert status == 201, told
        paths.append(f"{path}/w")

    yield make
    for path in paths:
        assert client("DELETE", path)[0] == 200


def test_pods_and_what_belongs_to_them(client: Client, witness: Witness, configure: Any) -> None:
    configure("validating", "", "v1", "pods/*")
    assert client("POST", PODS, {"metadata": {"name": "p"}, "spec": {"containers": CONTAINERS}})[0] == 201
    status, pod = client("GET", f"{PODS}/p")
    pod["status"]["phase"] = "Running"
    assert client("PUT", f"{PODS}/p/status", pod)[0] == 200
    witness.response = {"allowed": False, "status": {"code": 403, "message": "no"}}
    for path in ("exec?command=ls&stdin=true", "attach?stdout=1", "portforward?ports=80", "proxy/a"):
        status, told = client("GET", f"{PODS}/p/{path}")
        assert (status, told["message"]) == (403, 'admission webhook "w.example.test" denied the request: no')
    assert witness.requests[2]["object"] == {
        "kind": "PodExecOptions", "apiVersion": "v1", "stdin": True, "command": ["ls"],
    }  # fmt: skip
    witness.response = {}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    assert client("POST", f"{PODS}/p/eviction", eviction)[0] == 201
    assert witness.seen() == [
        ("CREATE", "Pod", ""),
        ("UPDATE", "Pod", "status"),
        ("CONNECT", "PodExecOptions", "exec"),
        ("CONNECT", "PodAttachOptions", "attach"),
        ("CONNECT", "PodPortForwardOptions", "portforward"),
        ("CONNECT", "PodProxyOptions", "proxy"),
        ("CREATE", "Eviction", "eviction"),
    ]


def test_a_scale_is_sent_and_patched_as_one(client: Client, witness: Witness, configure: Any) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    assert client("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})[0] == 201
    configure("mutating", "apps", "v1", "deployments/scale")
    steps = [{"op": "replace", "path": "/spec/replicas", "value": 7}]
    witness.response = {"patchType": "JSONPatch", "patch": b64encode(json.dumps(steps).encode()).decode()}
    _, scale = client("GET", f"{DEPLOYMENTS}/d/scale")
    status, scale = client("PUT", f"{DEPLOYMENTS}/d/scale", {**scale, "spec": {"replicas": 3}})
    assert (status, scale["spec"]["replicas"]) == (200, 7)
    assert client("GET", f"{DEPLOYMENTS}/d")[1]["spec"]["replicas"] == 7
    assert witness.seen() == [("UPDATE", "Scale", "scale")]


def test_each_object_of_a_collection_is_asked_about(client: Client, witness: Witness, configure: Any) -> None:
    for name in ("x", "y"):
        assert client("POST", MAPS, {"metadata": {"name": name}})[0] == 201
    configure("validating", "", "v1", "configmaps")
    assert client("DELETE", MAPS)[0] == 200
    assert sorted(r["oldObject"]["metadata"]["name"] for r in witness.requests) == ["x", "y"]
    assert all("name" not in r and r["object"] is None for r in witness.requests)
    assert witness.requests[0]["options"] == {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}


def test_reviews_are_asked_about(client: Client, witness: Witness, configure: Any) -> None:
    configure("validating", "authentication.k8s.io", "*", "*")
    review_of = "/apis/authentication.k8s.io/v1/{}"
    assert client("POST", review_of.format("selfsubjectreviews"), {})[0] == 201
    assert client("POST", review_of.format("tokenreviews"), {"spec": {"token": "t"}})[0] == 201
    assert witness.seen() == [("CREATE", "SelfSubjectReview", ""), ("CREATE", "TokenReview", "")]


def test_custom_resources_are_pruned_after_a_patch(client: Client, witness: Witness, configure: Any) -> None:
    size = {"type": "integer", "default": 3}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": size}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "gears", "kind": "Gear"}
    definition = {
        "metadata": {"name": "gears.example.test"},
        "spec": {
            "group": "example.test", "scope": "Namespaced", "names": names,
            "versions": [version, {**version, "name": "v2", "storage": False}],
        },
    }  # fmt: skip
    assert client("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)[0] == 201
    path = "/apis/example.test/v1/namespaces/default/gears"
    gear = {"apiVersion": "example.test/v1", "kind": "Gear", "metadata": {"name": "x"}, "spec": {"lost": 1}}
    configure("mutating", "example.test", "v2", "gears")
    steps = [{"op": "add", "path": "/spec/size", "value": 9}, {"op": "add", "path": "/spec/odd", "value": 1}]
    witness.response = {"patchType": "JSONPatch", "patch": b64encode(json.dumps(steps).encode()).decode()}
    status, made = client("POST", path, gear)
    assert (status, made["spec"], made["apiVersion"]) == (201, {"size": 9}, "example.test/v1")
    (asked,) = witness.requests
    assert asked["object"]["spec"] == {"size": 3}
    assert (asked["kind"]["version"], asked["requestKind"]["version"]) == ("v2", "v1")
    assert asked["object"]["apiVersion"] == "example.test/v2"

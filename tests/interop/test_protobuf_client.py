"""Protobuf over the wire, both ways: what controllers and schedulers written in Go speak."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from fastapi_core.codec import protobuf
from fastapi_core.schema.normalize import normalize
from fastapi_core.schema.tables import type_for, type_of
from fastapi_core.testing.server import RunningServer
from tests.oracles import protobuf as oracle

pytestmark = pytest.mark.interop

PROTOBUF = "application/vnd.kubernetes.protobuf"
#: As client-go sends it.
ACCEPT = f"{PROTOBUF},application/json"
PARTIAL = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIAL_LIST = f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v="


def read(body: bytes) -> dict[str, Any]:
    """An enveloped document as the JSON would be."""
    envelope = protobuf.open_envelope(body)
    group, _, version = envelope.api_version.rpartition("/")
    type_ = type_for(group, version, envelope.kind)
    assert type_ is not None, envelope
    tree = normalize(type_, protobuf.decode(type_, envelope.message)).tree
    return {"kind": envelope.kind, "apiVersion": envelope.api_version, **tree}


def write(tree: dict[str, Any]) -> bytes:
    return protobuf.answer(tree)


class Client:
    """Protobuf in and out over one connection; answers in JSON fail the test."""

    def __init__(self, server: RunningServer) -> None:
        self.connection = http.client.HTTPSConnection(
            "127.0.0.1", server.port, context=server.ssl_context(), timeout=30
        )

    def send(self, method: str, path: str, body: bytes | None, accept: str, sent: str) -> http.client.HTTPResponse:
        headers = {"Authorization": "Bearer admintoken", "Accept": accept, "Content-Type": sent}
        self.connection.request(method, path, body, headers)
        return self.connection.getresponse()

    def __call__(
        self, method: str, path: str, tree: dict[str, Any] | None = None, *, accept: str = ACCEPT
    ) -> tuple[int, dict[str, Any]]:
        answer = self.send(method, path, None if tree is None else write(tree), accept, PROTOBUF)
        data = answer.read()
        assert (answer.headers["Content-Type"] or "").partition(";")[0] == PROTOBUF, data
        return answer.status, read(data)


@pytest.fixture
def client(server: RunningServer) -> Iterator[Client]:
    found = Client(server)
    yield found
    found.connection.close()


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"app": "x"}},
        "data": data,
        "binaryData": {"b": "AAH/"},
    }


def test_one_object(client: Client, namespace: str, api: Any) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    status, created = client("POST", path, config_map("c", key="vé"))
    assert status == 201
    assert created["metadata"]["uid"]
    assert client("GET", f"{path}/c") == (200, created)
    assert api("GET", f"{path}/c") == (200, created)
    created["data"]["more"] = "1"
    status, updated = client("PUT", f"{path}/c", created)
    assert (status, updated["data"]) == (200, {"key": "vé", "more": "1"})
    patched = client.send("PATCH", f"{path}/c", b'{"data":{"key":null}}', ACCEPT, "application/merge-patch+json")
    assert read(patched.read())["data"] == {"more": "1"}
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}}
    status, conflict = client("DELETE", f"{path}/c", options)
    assert (status, conflict["kind"], conflict["reason"]) == (409, "Status", "Conflict")
    status, gone = client("DELETE", f"{path}/c", {"kind": "DeleteOptions", "apiVersion": "v1"})
    assert (status, gone["status"], gone["details"]["kind"]) == (200, "Success", "configmaps")
    status, missing = client("GET", f"{path}/c")
    assert (status, missing["reason"], missing["code"]) == (404, "NotFound", 404)


def test_lists_and_pages(client: Client, namespace: str, api: Any) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for name in "abc":
        assert client("POST", path, config_map(name, n=name))[0] == 201
    status, listed = client("GET", path)
    assert (status, listed["kind"], listed["apiVersion"]) == (200, "ConfigMapList", "v1")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b", "c"]
    _, plain = api("GET", path)
    assert listed["items"] == plain["items"]
    _, first = client("GET", f"{path}?limit=2")
    assert (len(first["items"]), first["metadata"]["remainingItemCount"]) == (2, 1)
    _, rest = client("GET", f"{path}?limit=2&continue={first['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]
    assert "items" in client("GET", f"/api/v1/namespaces/{namespace}/secrets")[1]


def test_metadata_only(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    _, created = client("POST", path, config_map("a", n="1"))
    status, partial = client("GET", f"{path}/a", accept=PARTIAL)
    assert (status, partial["kind"], partial["apiVersion"]) == (200, "PartialObjectMetadata", "meta.k8s.io/v1")
    assert partial["metadata"] == created["metadata"]
    assert "data" not in partial
    status, listed = client("GET", path, accept=PARTIAL_LIST + "v1")
    assert [item["metadata"] for item in listed["items"]] == [created["metadata"]]
    answer = client.send("GET", path, None, PARTIAL_LIST + "v1beta1", PROTOBUF)
    envelope = protobuf.open_envelope(answer.read())
    assert envelope.api_version == "meta.k8s.io/v1beta1"
    (number, _, item), (last, _, metadata) = oracle.fields(envelope.message)
    assert (number, last) == (1, 2)
    found = normalize(
        type_of("meta/v1.PartialObjectMetadata"), oracle.read(type_of("meta/v1.PartialObjectMetadata"), item)
    )
    assert found.tree["metadata"] == created["metadata"]
    assert oracle.read(type_of("meta/v1.ListMeta"), metadata).keys() == {"resourceVersion"}


def test_tables_come_in_json_only(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    table = ";as=Table;v=v1;g=meta.k8s.io"
    answer = client.send("GET", path, None, PROTOBUF + table, PROTOBUF)
    assert (answer.status, answer.headers["Content-Type"]) == (406, "application/json")
    answer.read()
    answer = client.send("GET", path, None, f"{PROTOBUF}{table},application/json{table}", PROTOBUF)
    assert json.loads(answer.read())["kind"] == "Table"


def events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, dict[str, Any]]]:
    type_ = type_of("meta/v1.WatchEvent")
    number = {field.name: field.number for field in type_.declared}
    assert number == {"type": 1, "object": 2}
    while True:
        size = answer.read(4)
        if not size:
            return
        frame = answer.read(int.from_bytes(size, "big"))
        length = frame[1]
        assert frame[0] == 0x0A
        yield frame[2 : 2 + length].decode(), read(frame[frame.index(protobuf.MAGIC) :])


@pytest.mark.parametrize("accept", [f"{PROTOBUF};stream=watch,application/json", PARTIAL])
def test_watch(client: Client, server: RunningServer, namespace: str, accept: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    client("POST", path, config_map("old", n="1"))
    watching = Client(server)
    query = (
        "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=60"
    )
    answer = watching.send("GET", f"{path}?{query}", None, accept, PROTOBUF)
    assert (answer.status, answer.headers["Content-Type"]) == (200, f"{PROTOBUF};stream=watch")
    stream = events(answer)
    kind = "PartialObjectMetadata" if "as=" in accept else "ConfigMap"
    event, tree = next(stream)
    assert (event, tree["kind"], tree["metadata"]["name"]) == ("ADDED", kind, "old")
    event, tree = next(stream)
    assert (event, tree["kind"]) == ("BOOKMARK", kind)
    assert tree["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    _, created = client("POST", path, config_map("new", n="1"))
    event, tree = next(stream)
    assert event == "ADDED"
    assert tree["metadata"] == created["metadata"]
    if kind == "ConfigMap":
        assert tree == created
    client("PUT", f"{path}/new", {**created, "data": {"n": "2"}})
    assert next(stream)[0] == "MODIFIED"
    client("DELETE", f"{path}/new")
    event, tree = next(stream)
    assert (event, tree["metadata"]["name"]) == ("DELETED", "new")
    assert int(tree["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])
    watching.connection.close()


def test_watch_ends_in_time(client: Client, namespace: str) -> None:
    answer = client.send("GET", f"/api/v1/namespaces/{namespace}/pods?watch=1&timeoutSeconds=1", None, ACCEPT, PROTOBUF)
    assert list(events(answer)) == []


def test_other_versions_and_reviews(client: Client, namespace: str) -> None:
    path = f"/apis/autoscaling/v1/namespaces/{namespace}/horizontalpodautoscalers"
    scaler = {
        "kind": "HorizontalPodAutoscaler",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "h"},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
            "maxReplicas": 3,
            "targetCPUUtilizationPercentage": 50,
        },
    }
    status, created = client("POST", path, scaler)
    assert (status, created["spec"]["targetCPUUtilizationPercentage"]) == (201, 50)
    _, newer = client("GET", f"{path}/h".replace("/v1/", "/v2/"))
    assert newer["spec"]["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 50}
    review = {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {"resourceAttributes": {"verb": "create", "resource": "pods", "namespace": namespace}},
    }
    status, answer = client("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    assert (status, answer["status"]["allowed"]) == (201, True)


def test_scale(client: Client, namespace: str, api: Any) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "img:1", "resources": {"limits": {"cpu": "1"}}}]},
    }
    deployment = {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {"name": "d"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}, "template": template},
    }
    status, created = client("POST", path, deployment)
    assert status == 201
    assert created == api("GET", f"{path}/d")[1]
    _, scale = client("GET", f"{path}/d/scale")
    assert (scale["kind"], scale["spec"]["replicas"], scale["status"]["selector"]) == ("Scale", 2, "app=x")
    scale["spec"]["replicas"] = 5
    assert client("PUT", f"{path}/d/scale", scale)[1]["spec"]["replicas"] == 5
    assert client("GET", f"{path}/d")[1]["spec"]["replicas"] == 5


def test_discovery(client: Client, api: Any) -> None:
    for path in ("/apis", "/api", "/api/v1", "/apis/apps", "/apis/apps/v1"):
        _, plain = api("GET", path)
        envelope = protobuf.open_envelope(client.send("GET", path, None, ACCEPT, PROTOBUF).read())
        assert (envelope.kind, envelope.api_version) == (plain["kind"], plain.get("apiVersion", ""))
        type_ = type_of(f"meta/v1.{envelope.kind}")
        tree = normalize(type_, protobuf.decode(type_, envelope.message)).tree
        assert tree == normalize(type_, {k: v for k, v in plain.items() if k not in ("kind", "apiVersion")}).tree
    aggregated = f"{PROTOBUF};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    answer = client.send("GET", "/apis", None, aggregated, PROTOBUF)
    assert answer.headers["Content-Type"] == aggregated
    assert [group["metadata"]["name"] for group in read(answer.read())["items"]][:2] == [
        "apiregistration.k8s.io",
        "apps",
    ]


def test_bodies_that_are_none(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for body, text in (
        (b"hello", "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear"),
        (b"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x0a\x05", 'ConfigMap in version "v1" cannot be handled'),
        (write({"kind": "Secret", "apiVersion": "v1", "metadata": {}}), "Secret in version"),
        (b"", "the object provided is unrecognized (must be of type ConfigMap): empty data (<empty>)"),
    ):
        answer = client.send("POST", path, body, ACCEPT, PROTOBUF)
        status = read(answer.read())
        assert (answer.status, status["reason"]) == (400, "BadRequest")
        assert text in status["message"]

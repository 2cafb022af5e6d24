"""Apply requests and managedFields over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.fixtures.server import Api

Tree = dict[str, Any]
pytestmark = pytest.mark.filterwarnings("ignore")
MERGE = {"Content-Type": "application/merge-patch+json"}


class Client:
    """Requests about one ConfigMap and one Deployment of a namespace."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.base = f"/api/v1/namespaces/{namespace}/configmaps"
        self.deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"

    def apply(self, manager: str | None, path: str, body: Any, **query: str) -> tuple[int, Any]:
        if manager is not None:
            query["fieldManager"] = manager
        headers = {"Content-Type": "application/apply-patch+yaml"}
        if not isinstance(body, str):
            return self.api("PATCH", f"{path}?{urlencode(query)}", body, headers)
        connection = self.api.connection
        headers["Authorization"] = f"Bearer {self.api.token}"
        connection.request("PATCH", f"{path}?{urlencode(query)}", body.encode(), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def config(self, manager: str | None, data: Tree | None = None, **query: str) -> tuple[int, Any]:
        body: Tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
        if data is not None:
            body["data"] = data
        return self.apply(manager, f"{self.base}/c", body, **query)

    def managers(self) -> dict[str, Tree]:
        _, tree = self.api("GET", f"{self.base}/c")
        return {e["manager"]: e["fieldsV1"] for e in tree["metadata"].get("managedFields", ())}


@pytest.fixture
def client(api: Api, namespace: str) -> Client:
    return Client(api, namespace)


def test_apply_creates_then_changes_then_does_nothing(client: Client) -> None:
    status, first = client.config("one", {"a": "1"})
    assert status == 201
    assert client.config("one", {"a": "2"})[0] == 200
    _, second = client.config("one", {"a": "2"})
    _, third = client.config("one", {"a": "2"})
    assert second == third
    assert first["metadata"]["uid"] == third["metadata"]["uid"]
    assert client.managers() == {"one": {"f:data": {"f:a": {}}}}


def test_conflict_and_force(client: Client) -> None:
    client.config("one", {"a": "1"})
    status, conflict = client.config("two", {"a": "2"})
    assert (status, conflict["message"]) == (409, 'Apply failed with 1 conflict: conflict with "one": .data.a')
    assert client.config("two", {"a": "2"}, force="true")[0] == 200
    assert client.managers() == {"two": {"f:data": {"f:a": {}}}}


def test_dry_run_writes_nothing(client: Client) -> None:
    status, tree = client.config("one", {"a": "1"}, dryRun="All")
    assert status == 201
    assert "resourceVersion" not in tree["metadata"]
    assert client.api("GET", f"{client.base}/c")[0] == 404


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({}, 422),
        ({"fieldManager": ""}, 422),
        ({"fieldManager": "m" * 129}, 422),
        ({"fieldManager": "m", "dryRun": "x"}, 422),
    ],
)
def test_options_are_checked(client: Client, query: dict[str, str], status: int) -> None:
    assert client.config(None, {"a": "1"}, **query)[0] == status


@pytest.mark.parametrize(
    "body", ["[]", "", "just text", "{not json", "a: b\n\tc: d\n", "apiVersion: v1\nkind: Secret\n"]
)
def test_bodies_that_are_no_configuration(client: Client, body: str) -> None:
    assert client.apply("one", f"{client.base}/c", body)[0] == 400


def test_yaml_is_read_as_yaml(client: Client) -> None:
    body = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  labels: {x: "1"}\ndata:\n  a: "1"\n  a: "2"\n'
    assert client.apply("one", f"{client.base}/c", body, fieldValidation="Strict")[0] == 400
    status, tree = client.apply("one", f"{client.base}/c", body)
    assert (status, tree["data"]) == (201, {"a": "2"})
    assert client.apply("one", f"{client.base}/c", body.replace('"2"\n', "y\n"))[0] == 500


def test_the_name_must_be_the_one_of_the_url(client: Client) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}
    assert client.apply("one", f"{client.base}/c", body)[0] == 400
    assert client.apply("one", f"{client.base}/c", {**body, "metadata": {}})[0] == 400


def test_uid_and_resource_version_are_preconditions(client: Client) -> None:
    body: Tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "uid": "u"}}
    status, answer = client.apply("one", f"{client.base}/c", body)
    assert status == 409
    assert "no existing object was found" in answer["message"]
    body["metadata"] = {"name": "c", "resourceVersion": "1"}
    assert client.apply("one", f"{client.base}/c", body)[0] == 201
    assert client.apply("one", f"{client.base}/c", body)[0] == 409


@pytest.mark.parametrize("cleared", [[], [{}]])
@pytest.mark.parametrize("put", [True, False])
def test_clients_can_clear_the_entries(client: Client, cleared: list[Any], put: bool) -> None:
    client.config("one", {"a": "1"})
    if put:
        body = {"metadata": {"name": "c", "managedFields": cleared}, "data": {"a": "1"}}
        assert client.api("PUT", f"{client.base}/c", body)[0] == 200
    else:
        assert client.api("PATCH", f"{client.base}/c", {"metadata": {"managedFields": cleared}}, MERGE)[0] == 200
    assert client.managers() == {}


def test_status_and_scale_have_entries_of_their_own(client: Client) -> None:
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "m", "image": "i"}]}},
    }
    body: Tree = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    url = f"{client.deployments}/d"
    assert client.apply("one", url, body)[0] == 201
    status: Tree = {**body, "spec": {"replicas": 9}, "status": {"observedGeneration": 1}}
    assert client.apply("controller", f"{url}/status", status)[0] == 200
    scale: Tree = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 1}}
    code, answer = client.apply("scaler", f"{url}/scale", scale)
    assert (code, answer["kind"], "managedFields" in answer["metadata"]) == (200, "Scale", False)
    scale["spec"]["replicas"] = 2
    assert client.apply("scaler", f"{url}/scale", scale)[0] == 409
    assert client.api("PUT", f"{url}/scale?fieldManager=hpa", scale)[0] == 200
    _, tree = client.api("GET", url)
    assert tree["spec"]["replicas"] == 2
    listed = {(e["manager"], e.get("subresource")): e["fieldsV1"] for e in tree["metadata"]["managedFields"]}
    assert listed["controller", "status"] == {"f:status": {"f:observedGeneration": {}}}
    assert listed["hpa", "scale"] == {"f:spec": {"f:replicas": {}}}
    assert ("scaler", "scale") not in listed
    assert "f:replicas" not in listed["one", None]["f:spec"]


def test_each_verb_records_its_manager(client: Client) -> None:
    call: Callable[..., tuple[int, Any]] = client.api
    call("POST", f"{client.base}?fieldManager=poster", {"metadata": {"name": "c"}, "data": {"a": "1"}})
    call("PUT", f"{client.base}/c?fieldManager=putter", {"metadata": {"name": "c"}, "data": {"a": "1", "b": "1"}})
    call("PATCH", f"{client.base}/c?fieldManager=patcher", {"data": {"c": "1"}}, MERGE)
    ops = [{"op": "add", "path": "/data/d", "value": "1"}]
    call("PATCH", f"{client.base}/c?fieldManager=jsoner", ops, {"Content-Type": "application/json-patch+json"})
    assert client.managers() == {
        "poster": {"f:data": {".": {}, "f:a": {}}},
        "putter": {"f:data": {"f:b": {}}},
        "patcher": {"f:data": {"f:c": {}}},
        "jsoner": {"f:data": {"f:d": {}}},
    }

"""Definitions over HTTP: what they serve, when, and what a change of one means for those who are using it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.fixtures.server import Api

Tree = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = {"Content-Type": "application/merge-patch+json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
OPEN = {"openAPIV3Schema": {"type": "object", "properties": {"spec": FREE}}}


class World:
    """Definitions in a group of the test's own."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.group = f"g{uuid4().hex[:8]}.example.test"
        self.namespace = namespace

    def define(self, plural: str = "foos", kind: str = "Foo", **spec: Any) -> Tree:
        versions = [{"name": "v1", "served": True, "storage": True, "schema": OPEN}]
        body = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{self.group}"},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {"plural": plural, "kind": kind},
                "versions": versions,
                **spec,
            },
        }
        status, made = self.api("POST", CRDS, body)
        assert status == 201, made
        return made

    def crd(self, plural: str = "foos") -> str:
        return f"{CRDS}/{plural}.{self.group}"

    def path(self, name: str = "", plural: str = "foos", version: str = "v1") -> str:
        base = f"/apis/{self.group}/{version}/namespaces/{self.namespace}/{plural}"
        return f"{base}/{name}" if name else base

    def served(self, plural: str = "foos", version: str = "v1") -> None:
        until(lambda: self.api("GET", self.path("", plural, version))[0] == 200)

    def add(self, name: str, version: str = "v1", **more: Any) -> Tree:
        body = {"apiVersion": f"{self.group}/{version}", "kind": "Foo", "metadata": {"name": name}, **more}
        status, made = self.api("POST", self.path(version=version), body)
        assert status == 201, made
        return made

    def conditions(self, plural: str) -> dict[str, tuple[str, str]]:
        _, tree = self.api("GET", self.crd(plural))
        return {c["type"]: (c["status"], c["reason"]) for c in tree["status"]["conditions"] or ()}


def until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


@pytest.fixture
def world(api: Api, namespace: str) -> Iterator[World]:
    made = World(api, namespace)
    yield made
    _, listed = api("GET", CRDS)
    for item in listed["items"]:
        if item["spec"]["group"] == made.group:
            api("DELETE", f"{CRDS}/{item['metadata']['name']}")


def test_names_that_are_taken_are_given_when_they_become_free(world: World) -> None:
    world.define("foos", "Foo")
    world.served()
    world.define("bars", "Foo")
    conflict = {"NamesAccepted": ("False", "ListKindConflict"), "Established": ("False", "NotAccepted")}
    until(lambda: world.conditions("bars") == conflict)
    assert world.api("GET", world.path(plural="bars"))[0] == 404
    assert world.api("DELETE", world.crd("foos"))[0] == 200
    world.served("bars")
    assert world.conditions("bars")["NamesAccepted"] == ("True", "NoConflicts")


def test_documents_follow_at_once(world: World) -> None:
    world.define()
    world.served()
    _, listed = world.api("GET", "/apis")
    assert {"groupVersion": f"{world.group}/v1", "version": "v1"} in [
        version for group in listed["groups"] for version in group["versions"]
    ]
    assert [r["name"] for r in world.api("GET", f"/apis/{world.group}/v1")[1]["resources"]] == ["foos"]
    assert f"apis/{world.group}/v1" in world.api("GET", "/openapi/v3")[1]["paths"]
    _, document = world.api("GET", f"/openapi/v3/apis/{world.group}/v1")
    assert any(name.endswith(".v1.Foo") for name in document["components"]["schemas"])
    world.api("DELETE", world.crd())
    until(lambda: world.api("GET", world.crd())[0] == 404)
    # The group is listed as long as its APIService is there, which goes right after the definition.
    until(lambda: world.api("GET", f"/apis/{world.group}")[0] == 404)
    assert world.group not in [group["name"] for group in world.api("GET", "/apis")[1]["groups"]]
    assert f"apis/{world.group}/v1" not in world.api("GET", "/openapi/v3")[1]["paths"]


def test_who_sees_a_definition_established_finds_its_group(world: World) -> None:
    """Operators look a group up once, when they are told that one of its definitions has changed."""
    watching, looking = Api(world.api.server), Api(world.api.server)
    version = world.api("GET", CRDS)[1]["metadata"]["resourceVersion"]
    target = f"{CRDS}?watch=1&resourceVersion={version}&timeoutSeconds=60"
    watching.connection.request("GET", target, headers={"Authorization": f"Bearer {watching.token}"})
    answer = watching.connection.getresponse()
    for number in range(10):
        world.group = f"g{number}-{uuid4().hex[:8]}.example.test"
        world.define()
        for line in answer:
            conditions = json.loads(line)["object"]["status"]["conditions"] or ()
            if {("Established", "True")} & {(c["type"], c["status"]) for c in conditions}:
                break
        groups = {group["name"] for group in looking("GET", "/apis")[1]["groups"]}
        assert world.group in groups
        assert world.api("DELETE", world.crd())[0] == 200
        next(line for line in answer if json.loads(line)["type"] == "DELETED")
    watching.connection.close()
    looking.connection.close()


def test_a_definition_stays_structural(world: World) -> None:
    """No request makes one otherwise, so its condition is only for what has come into the store by other ways."""
    world.define()
    bad = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"properties": {"a": {}}}}}]
    for change in ({"versions": bad}, {"preserveUnknownFields": True}):
        status, told = world.api("PATCH", world.crd(), {"spec": change}, MERGE)
        assert (status, told["reason"]) == (422, "Invalid")
    world.served()
    assert "NonStructuralSchema" not in world.conditions("foos")


def test_a_changing_definition_is_never_half_served(world: World) -> None:
    world.define()
    world.served()
    world.add("a", spec={"x": 1})
    seen: set[int] = set()
    stop = threading.Event()

    def ask() -> None:
        own = Api(world.api.server)
        while not stop.is_set():
            seen.add(own("GET", world.path("a"))[0])
        own.connection.close()

    asker = threading.Thread(target=ask)
    asker.start()
    for number in range(20):
        patch = {"spec": {"names": {"shortNames": [f"f{number}"]}}}
        assert world.api("PATCH", world.crd(), patch, MERGE)[0] == 200
    stop.set()
    asker.join()
    assert seen == {200}


def _watch(world: World) -> tuple[threading.Thread, list[Tree]]:
    """A watch that runs until the server ends it."""
    own = Api(world.api.server)
    events: list[Tree] = []
    own.connection.request(
        "GET", world.path() + "?watch=1&timeoutSeconds=60", headers={"Authorization": f"Bearer {own.token}"}
    )
    answer = own.connection.getresponse()
    assert answer.status == 200

    def read() -> None:
        events.extend(json.loads(line) for line in answer)
        own.connection.close()

    reader = threading.Thread(target=read)
    reader.start()
    return reader, events


def test_watches_end_with_a_change_of_the_definition_and_not_with_its_labels(world: World) -> None:
    world.define()
    world.served()
    reader, events = _watch(world)
    assert world.api("PATCH", world.crd(), {"metadata": {"labels": {"a": "b"}}}, MERGE)[0] == 200
    world.add("a")
    until(lambda: reader.is_alive())
    assert world.api("PATCH", world.crd(), {"spec": {"names": {"categories": ["all"]}}}, MERGE)[0] == 200
    reader.join(10)
    assert not reader.is_alive()
    assert [event["type"] for event in events] == ["ADDED"]


def test_deletion_takes_the_objects_along_and_tells_watchers(world: World) -> None:
    world.define()
    world.served()
    world.add("a")
    world.add("held", metadata={"name": "held", "finalizers": ["example.test/hold"]})
    reader, events = _watch(world)
    assert world.api("DELETE", world.crd())[0] == 200
    until(lambda: world.api("GET", world.path("a"))[0] == 404)
    body = {"apiVersion": f"{world.group}/v1", "kind": "Foo", "metadata": {"name": "late"}}
    status, refusal = world.api("POST", world.path(), body)
    assert (status, refusal["reason"]) == (403, "Forbidden")
    applied = {"Content-Type": "application/apply-patch+yaml"}
    status, refusal = world.api("PATCH", world.path("late") + "?fieldManager=m", body, applied)
    assert (status, refusal["reason"]) == (403, "Forbidden")
    assert world.conditions("foos")["Terminating"] == ("True", "InstanceDeletionInProgress")
    assert world.api("PATCH", world.path("held"), {"metadata": {"finalizers": None}}, MERGE)[0] == 200
    until(lambda: world.api("GET", world.crd())[0] == 404)
    reader.join(10)
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events if event["type"] == "DELETED"] == [
        ("DELETED", "a"), ("DELETED", "held"),
    ]  # fmt: skip
    world.define()
    world.served()
    assert world.api("GET", world.path())[1]["items"] == []


def test_rewriting_moves_objects_to_another_storage_version(world: World) -> None:
    versions = [
        {"name": "v1", "served": True, "storage": True, "schema": OPEN},
        {"name": "v2", "served": True, "storage": False, "schema": OPEN},
    ]
    world.define(versions=versions)
    world.served()
    before = world.add("a", spec={"x": 1})
    switch = [
        {"op": "replace", "path": "/spec/versions/0/storage", "value": False},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": True},
    ]
    status, changed = world.api("PATCH", world.crd(), switch, JSON_PATCH)
    assert (status, changed["status"]["storedVersions"]) == (200, ["v1", "v2"])
    _, shown = world.api("GET", world.path("a"))
    assert shown == before, "reading changes nothing"
    status, rewritten = world.api("PUT", world.path("a"), shown)
    assert status == 200
    assert rewritten["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
    assert rewritten["metadata"]["generation"] == before["metadata"]["generation"]
    status, again = world.api("PUT", world.path("a"), rewritten)
    assert again["metadata"]["resourceVersion"] == rewritten["metadata"]["resourceVersion"], "it is there by now"
    assert world.api("PATCH", world.crd() + "/status", {"status": {"storedVersions": ["v2"]}}, MERGE)[0] == 200
    assert world.api("PATCH", world.crd(), [{"op": "remove", "path": "/spec/versions/0"}], JSON_PATCH)[0] == 200
    assert world.api("GET", world.path("a", version="v2"))[1]["spec"] == {"x": 1}


def test_a_deprecated_version_warns(world: World) -> None:
    versions = [
        {"name": "v1", "served": True, "storage": True, "schema": OPEN, "deprecated": True},
        {
            "name": "v2",
            "served": True,
            "storage": False,
            "schema": OPEN,
            "deprecated": True,
            "deprecationWarning": "go",
        },
    ]
    world.define(versions=versions)
    world.served()
    for version, text in (("v1", f"{world.group}/v1 Foo is deprecated"), ("v2", "go")):
        connection = world.api.connection
        connection.request("GET", world.path(version=version), headers={"Authorization": f"Bearer {world.api.token}"})
        answer = connection.getresponse()
        answer.read()
        assert answer.headers["Warning"] == f'299 - "{text}"'


def test_an_update_needs_a_version_and_an_object(world: World) -> None:
    world.define()
    world.served()
    made = world.add("a")
    del made["metadata"]["resourceVersion"]
    status, refusal = world.api("PUT", world.path("a"), made)
    assert (status, refusal["details"]["causes"][0]["field"]) == (422, "metadata.resourceVersion")
    assert world.api("PUT", world.path("b"), {**made, "metadata": {"name": "b"}})[0] == 404
    assert world.api("PUT", world.path(), made)[1]["message"] == "name must be provided"
    status, refusal = world.api("POST", world.path("a/status"), made)
    assert (status, refusal["reason"]) == (404, "NotFound")


def test_a_built_in_group_version_stays_as_it_is(api: Api) -> None:
    """A definition may add versions to a built-in group, never anything to a version that is built in."""
    name = "foos.node.k8s.io"
    versions = [
        {"name": "v1", "served": True, "storage": False, "schema": OPEN},
        {"name": "v77", "served": True, "storage": True, "schema": OPEN},
    ]
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
        "spec": {
            "group": "node.k8s.io",
            "scope": "Cluster",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": versions,
        },
    }
    assert api("POST", CRDS, body)[0] == 201
    try:
        until(lambda: api("GET", "/apis/node.k8s.io/v77/foos")[0] == 200)
        assert api("GET", "/apis/node.k8s.io/v1/foos")[0] == 404
        assert [r["name"] for r in api("GET", "/apis/node.k8s.io/v1")[1]["resources"]] == ["runtimeclasses"]
        assert [r["name"] for r in api("GET", "/apis/node.k8s.io/v77")[1]["resources"]] == ["foos"]
        group = api("GET", "/apis/node.k8s.io")[1]
        assert {version["version"] for version in group["versions"]} == {"v1", "v77"}
        assert group in [{"kind": "APIGroup", "apiVersion": "v1", **g} for g in api("GET", "/apis")[1]["groups"]]
        conditions = api("GET", f"{CRDS}/{name}")[1]["status"]["conditions"]
        assert conditions[0]["reason"] == "UnapprovedAnnotation"
    finally:
        assert api("DELETE", f"{CRDS}/{name}")[0] == 200
    until(lambda: api("GET", "/apis/node.k8s.io/v77")[0] == 404)
    assert [v["version"] for v in api("GET", "/apis/node.k8s.io")[1]["versions"]] == ["v1"]


def test_a_status_by_default_is_there_from_the_start(world: World) -> None:
    """The client's status is taken away where it is a subresource; what reads show instead, the create shows, too."""
    status = {"type": "object", "default": {"phase": "New"}, "properties": {"phase": {"type": "string"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": FREE, "status": status}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    world.define(versions=[version])
    world.served()
    made = world.add("a", status={"phase": "Mine"})
    assert made["status"] == {"phase": "New"}
    code, labelled = world.api("PATCH", world.path("a"), {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert (code, labelled["status"]) == (200, {"phase": "New"})
    assert world.api("GET", world.path("a"))[1]["status"] == {"phase": "New"}
    assert world.api("GET", world.path())[1]["items"][0]["status"] == {"phase": "New"}

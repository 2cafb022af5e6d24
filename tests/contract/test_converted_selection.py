"""Field selectors of a version that another server converts to: they judge the object as that version shows it."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.contract.test_custom_resources import CRDS, MERGE, until
from tests.fixtures.https import ScriptedServer
from tests.fixtures.server import Api

Tree = dict[str, Any]
MEMBERS = {"v1": "color", "v2": "paint"}


def converted(review: Tree) -> tuple[int, Tree]:
    """v1 says color, v2 says paint."""
    request = review["request"]
    version = request["desiredAPIVersion"].rpartition("/")[2]
    made = []
    for tree in request["objects"]:
        was = MEMBERS[tree["apiVersion"].rpartition("/")[2]]
        spec = {MEMBERS[version]: tree["spec"][was]} if was in tree.get("spec", {}) else {}
        made.append({**tree, "apiVersion": request["desiredAPIVersion"], "spec": spec})
    response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": made}
    return 200, {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[ScriptedServer]:
    server = ScriptedServer(tmp_path)
    server.answers["/convert?timeout=30s"] = converted
    yield server
    server.close()


class World:
    def __init__(self, api: Api, namespace: str, hook: ScriptedServer) -> None:
        self.api, self.group = api, f"g{uuid4().hex[:8]}.example.test"
        self.base = f"/apis/{self.group}/%s/namespaces/{namespace}/things"
        bundle = b64encode(hook.ca_file.read_bytes()).decode()
        client = {"url": f"{hook.url}/convert", "caBundle": bundle}
        versions = [
            {
                "name": name,
                "served": True,
                "storage": name == "v1",
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {member: {"type": "string"}}}},
                    }
                },
                "selectableFields": [{"jsonPath": f".spec.{member}"}],
            }
            for name, member in MEMBERS.items()
        ]
        spec = {
            "group": self.group,
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": versions,
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
            },
        }
        self.crd = f"{CRDS}/things.{self.group}"
        assert api("POST", CRDS, {"metadata": {"name": f"things.{self.group}"}, "spec": spec})[0] == 201
        until(lambda: api("GET", self.base % "v1")[0] == 200)
        for name, color in (("a", "red"), ("b", "blue"), ("c", "red")):
            body = {
                "apiVersion": f"{self.group}/v1",
                "kind": "Thing",
                "metadata": {"name": name},
                "spec": {"color": color},
            }
            assert api("POST", self.base % "v1", body)[0] == 201

    def names(self, query: str, version: str = "v2") -> list[str]:
        status, tree = self.api("GET", f"{self.base % version}?{query}")
        assert status == 200, tree
        return [item["metadata"]["name"] for item in tree["items"]]


@pytest.fixture
def world(api: Api, namespace: str, hook: ScriptedServer) -> Iterator[World]:
    made = World(api, namespace, hook)
    yield made
    api("DELETE", made.crd)
    until(lambda: api("GET", made.crd)[0] == 404)


def test_lists_and_deletes_of_many(world: World) -> None:
    assert world.names("fieldSelector=spec.paint%3Dred&limit=1") == ["a"]
    assert world.names("fieldSelector=spec.paint%3Dred") == ["a", "c"]
    assert world.names("fieldSelector=spec.color%3Dblue", "v1") == ["b"]
    refused = world.api("GET", f"{world.base % 'v2'}?fieldSelector=spec.color%3Dred")
    assert (refused[0], refused[1]["message"]) == (400, "field label not supported: spec.color")
    assert world.api("DELETE", f"{world.base % 'v2'}?fieldSelector=spec.paint%3Dred")[0] == 200
    assert world.names("") == ["b"]


def test_watches(world: World) -> None:
    own = Api(world.api.server)
    target = f"{world.base % 'v2'}?watch=1&fieldSelector=spec.paint%3Dred&timeoutSeconds=60&resourceVersion=0"
    own.connection.request("GET", target, headers={"Authorization": f"Bearer {own.token}"})
    answer = own.connection.getresponse()
    events: list[tuple[str, str, str]] = []

    def read() -> None:
        for line in answer:
            event = json.loads(line)
            events.append((event["type"], event["object"]["metadata"]["name"], event["object"]["spec"]["paint"]))

    reader = threading.Thread(target=read)
    reader.start()
    until(lambda: len(events) == 2)
    for name, color in (("b", "red"), ("a", "green"), ("b", "red "), ("c", "red")):
        assert world.api("PATCH", f"{world.base % 'v1'}/{name}", {"spec": {"color": color}}, MERGE)[0] == 200
    assert world.api("DELETE", f"{world.base % 'v1'}/c")[0] == 200
    until(lambda: len(events) == 6)
    assert world.api("DELETE", world.crd)[0] == 200
    reader.join(20)
    assert not reader.is_alive()
    own.connection.close()
    assert sorted(events[:2]) == [("ADDED", "a", "red"), ("ADDED", "c", "red")]
    assert events[2:] == [
        ("ADDED", "b", "red"),
        ("DELETED", "a", "red"),
        ("DELETED", "b", "red"),
        ("DELETED", "c", "red"),
    ]


def test_what_has_been_converted_is_still_listed_while_the_server_is_away(world: World, hook: ScriptedServer) -> None:
    """As the watch caches of the reference do; a consistent GET asks, and is an error that says so."""
    assert world.names("") == ["a", "b", "c"]
    hook.answers["/convert?timeout=30s"] = lambda _: (500, {})
    assert world.names("fieldSelector=spec.paint%3Dblue") == ["b"]
    assert world.api("GET", f"{world.base % 'v2'}/a?resourceVersion=0")[1]["spec"] == {"paint": "red"}
    assert world.api("GET", f"{world.base % 'v2'}/a")[0] == 500
    assert world.api("PATCH", f"{world.base % 'v1'}/a", {"spec": {"color": "green"}}, MERGE)[0] == 200
    status, tree = world.api("GET", f"{world.base % 'v2'}/a")
    assert (status, "conversion webhook for" in tree["message"]) == (500, True)
    hook.answers["/convert?timeout=30s"] = converted
    assert world.api("GET", f"{world.base % 'v2'}/a")[1]["spec"] == {"paint": "green"}


def test_objects_without_a_namespace_cannot_be_asked_for_one(api: Api) -> None:
    group = f"g{uuid4().hex[:8]}.example.test"
    schema = {"openAPIV3Schema": {"type": "object"}}
    spec = {
        "group": group,
        "scope": "Cluster",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    crd = f"{CRDS}/things.{group}"
    assert api("POST", CRDS, {"metadata": {"name": f"things.{group}"}, "spec": spec})[0] == 201
    until(lambda: api("GET", f"/apis/{group}/v1/things")[0] == 200)
    assert api("GET", f"/apis/{group}/v1/things?fieldSelector=metadata.name%3Da")[0] == 200
    status, tree = api("GET", f"/apis/{group}/v1/things?fieldSelector=metadata.namespace%3Da")
    assert (status, tree["message"]) == (400, "field label not supported: metadata.namespace")
    api("DELETE", crd)

"""The same definition created and deleted again and again, under watches of its objects and writes to them."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from fastapi_core.testing.server import RunningServer
from tests.adversity.killing import Client
from tests.adversity.scale import scaled
from tests.adversity.test_memory import resident

pytestmark = pytest.mark.adversity

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = "churns.test.example.com"
OBJECTS = "/apis/test.example.com/v1/namespaces/default/churns"
ROUNDS = scaled(25)


def definition(number: int) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {f"p{n}": {"type": "string"} for n in range(1, 3 + number % 5)},
                "x-kubernetes-validations": [{"rule": f"self.p1 != 'bad-{number}'"}],
            }
        },
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "churns", "singular": "churn", "kind": "Churn"}
    spec = {"group": "test.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": NAME}, "spec": spec}


class Asker(Client):
    """Also where there is nothing: that answer is plain text."""

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        payload = None if body is None else json.dumps(body)
        self.connection.request(method, path, payload, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        found = answer.read()
        return answer.status, json.loads(found) if found[:1] == b"{" else found


class Worker(threading.Thread):
    """Does something over and over; answers it cannot explain are kept."""

    def __init__(self, server: RunningServer) -> None:
        super().__init__(daemon=True)
        self.client = Asker(server)
        self.ended = threading.Event()
        self.done = 0
        self.odd: list[Any] = []

    def run(self) -> None:
        number = 0
        while not self.ended.is_set():
            number += 1
            self.step(number)
        self.client.close()

    def step(self, number: int) -> None:
        raise NotImplementedError


class Writer(Worker):
    def step(self, number: int) -> None:
        name = f"{self.name.lower()}-{number}"
        body = {"apiVersion": "test.example.com/v1", "kind": "Churn", "metadata": {"name": name}, "spec": {"p1": "x"}}
        status, answer = self.client("POST", OBJECTS, body)
        if status == 201:
            self.done += 1
        elif status != 404 and not (status == 403 and "terminating" in answer["message"]):
            self.odd.append((status, answer))


class Lister(Worker):
    def step(self, number: int) -> None:
        status, answer = self.client("GET", OBJECTS)
        if status == 200:
            self.done += 1
        elif status != 404:
            self.odd.append((status, answer))


class Follower(Worker):
    """Lists, watches from there until it ends, and again: the events fit the list."""

    def step(self, number: int) -> None:
        status, listing = self.client("GET", OBJECTS)
        if status != 200:
            if status != 404:
                self.odd.append((status, listing))
            return
        names = {item["metadata"]["name"] for item in listing["items"]}
        since = last = int(listing["metadata"]["resourceVersion"])
        self.client.connection.request("GET", f"{OBJECTS}?watch=1&resourceVersion={since}&timeoutSeconds=5")
        answer = self.client.connection.getresponse()
        if answer.status != 200:
            answer.read()
            return
        while line := answer.readline():
            event = json.loads(line)
            if event["type"] == "ERROR":
                self.odd.append(event)
                break
            self.done += 1
            metadata = event["object"]["metadata"]
            revision = int(metadata["resourceVersion"])
            if revision <= last:
                self.odd.append(("order", last, event))
            last = revision
            if event["type"] == "ADDED":
                if metadata["name"] in names:
                    self.odd.append(("twice", event))
                names.add(metadata["name"])
            elif event["type"] == "DELETED":
                if metadata["name"] not in names:
                    self.odd.append(("unknown", event))
                names.discard(metadata["name"])
        answer.read()


def until(client: Asker, path: str, wanted: int) -> None:
    end = time.monotonic() + 30
    while client("GET", path)[0] != wanted:
        assert time.monotonic() < end, f"{path} does not become {wanted}"
        time.sleep(0.002)


def test_a_definition_comes_and_goes(tmp_path: Path) -> None:
    server = RunningServer(tmp_path / "data")
    workers: list[Worker] = []
    try:
        client = Asker(server)
        workers = [Writer(server), Writer(server), Lister(server), Follower(server), Follower(server)]
        for worker in workers:
            worker.start()
        sizes = []
        for number in range(ROUNDS):
            status, answer = client("POST", DEFINITIONS, definition(number))
            assert status == 201, answer
            until(client, OBJECTS, 200)
            before = workers[0].done
            end = time.monotonic() + 30
            while workers[0].done < before + 5:
                assert time.monotonic() < end, "nobody can write"
                time.sleep(0.002)
            status, answer = client("DELETE", f"{DEFINITIONS}/{NAME}")
            assert status == 200, answer
            until(client, f"{DEFINITIONS}/{NAME}", 404)
            until(client, OBJECTS, 404)
            sizes.append(resident(server))
        for worker in workers:
            worker.ended.set()
        for worker in workers:
            worker.join(30)
            assert not worker.is_alive()
            assert worker.odd[:1] == []
            assert worker.done > 0
        print(f"{[w.done for w in workers]}, {sizes[4]:.0f} MiB after five, {sizes[-1]:.0f} after all")
        assert sizes[-1] < sizes[4] + 40
        # Nothing of the last one is left.
        status, answer = client("POST", DEFINITIONS, definition(99))
        assert status == 201
        until(client, OBJECTS, 200)
        assert client("GET", OBJECTS)[1]["items"] == []
        client.close()
        assert server.stop() == 0
    finally:
        server.kill()

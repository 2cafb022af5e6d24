"""Rounds of load and SIGKILL against one data directory, and what must hold after each.

Writers note every acknowledged answer; each write of an object carries a number one above the last, so a hole in its
history shows even where no acknowledgement was received. A watcher goes through all rounds by resuming from the last
revision it saw.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi_core.testing.server import RunningServer

NAMESPACE = "killed"
PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
GONE = (OSError, http.client.HTTPException, ssl.SSLError)

#: name -> (number of the last acknowledged write, its revision; 0 for an acknowledged deletion)
Acknowledged = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Seen:
    """One watch event."""

    type: str
    name: str
    number: int
    revision: int


class Client:
    """JSON over one TLS connection; raises one of GONE once the server is dead."""

    def __init__(self, server: RunningServer, timeout: float = 30) -> None:
        self.connection = http.client.HTTPSConnection(
            "127.0.0.1", server.port, context=server.ssl_context(), timeout=timeout
        )

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        payload = None if body is None else json.dumps(body)
        self.connection.request(method, path, payload, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())

    def watch(self, since: int, seconds: int, path: str = PATH) -> Iterator[Seen]:
        """Events after `since` until the server ends the watch; what came before a cut is given before it raises."""
        self.connection.request("GET", f"{path}?watch=1&resourceVersion={since}&timeoutSeconds={seconds}")
        answer = self.connection.getresponse()
        assert answer.status == 200, answer.read()
        while line := answer.readline():
            if not line.endswith(b"\n"):
                raise ConnectionResetError("cut inside a line")
            event = json.loads(line)
            assert event["type"] != "ERROR", event
            obj = event["object"]
            meta = obj["metadata"]
            yield Seen(event["type"], meta["name"], int(obj["data"]["number"]), int(meta["resourceVersion"]))

    def close(self) -> None:
        self.connection.close()


def _configmap(name: str, number: int, filler: int, revision: int = 0) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if revision:
        metadata["resourceVersion"] = str(revision)
    return {"metadata": metadata, "data": {"number": str(number), "filler": "x" * filler}}


class Writer(threading.Thread):
    """Creates, updates and deletes objects of its own until the server is gone (or `stop` is set)."""

    def __init__(self, server: RunningServer, name: str, seed: int, stop: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self.client = Client(server)
        self.rng = random.Random(seed)
        self.stop_event = stop
        self.acknowledged: Acknowledged = {}
        self.writes = 0
        self.refused: list[tuple[int, Any]] = []

    def run(self) -> None:
        number = 0
        with contextlib.suppress(*GONE):
            while not self.stop_event.is_set() and not self.refused:
                number += 1
                self._one_life(f"{self.name}-{number}")
        self.client.close()

    def _one_life(self, name: str) -> None:
        filler = self.rng.choice((0, 300, 6000))
        revision = self._note(name, 1, self.client("POST", PATH, _configmap(name, 1, filler)), 201)
        for number in range(2, 2 + self.rng.randrange(4)):
            if not revision or self.stop_event.is_set():
                return
            body = _configmap(name, number, filler, revision)
            revision = self._note(name, number, self.client("PUT", f"{PATH}/{name}", body), 200)
        if revision and self.rng.random() < 0.5:
            status, answer = self.client("DELETE", f"{PATH}/{name}")
            if status != 200:
                self.refused.append((status, answer))
                return
            self.acknowledged[name] = (self.acknowledged[name][0], 0)
            self.writes += 1

    def _note(self, name: str, number: int, answer: tuple[int, Any], wanted: int) -> int:
        status, body = answer
        if status != wanted:
            self.refused.append(answer)
            return 0
        revision = int(body["metadata"]["resourceVersion"])
        self.acknowledged[name] = (number, revision)
        self.writes += 1
        return revision


class Watcher(threading.Thread):
    """Follows all changes after `since` until the server is gone."""

    def __init__(self, server: RunningServer, since: int, path: str = PATH) -> None:
        super().__init__(name="watcher", daemon=True)
        self.path = path
        self.client = Client(server)
        self.since = since
        self.events: list[Seen] = []
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            for event in self.client.watch(self.since, 3600, self.path):
                self.events.append(event)
        except GONE:
            pass
        except BaseException as error:
            self.problem = error
        self.client.close()


@dataclass
class Ledger:
    """All that was acknowledged and seen over the rounds."""

    began: int = 0
    acknowledged: Acknowledged = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    writes: int = 0

    @property
    def last_seen(self) -> int:
        return self.seen[-1].revision if self.seen else self.began


def prepare(data_dir: Path) -> Ledger:
    """A store with the namespace and nothing else of ours."""
    server = RunningServer(data_dir)
    client = Client(server)
    assert client("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})[0] == 201
    revision = int(client("GET", PATH)[1]["metadata"]["resourceVersion"])
    client.close()
    server.kill()
    return Ledger(began=revision)


def load(
    server: RunningServer, ledger: Ledger, number: int, rng: random.Random, writers: int, *, gracefully: bool = False
) -> None:
    """Write until SIGKILL (SIGTERM) at a random moment; the ledger takes what was acknowledged and seen."""
    watcher = Watcher(server, ledger.last_seen)
    watcher.start()
    stop = threading.Event()
    crew = [Writer(server, f"r{number}w{i}", rng.randrange(1 << 30), stop) for i in range(writers)]
    for writer in crew:
        writer.start()
    # By work done, so that a slow machine tests as much: any moment of a commit is as likely.
    goal = rng.randrange(40, 500)
    while sum(w.writes for w in crew) < goal and all(w.is_alive() for w in crew):
        stop.wait(rng.random() / 50)
    if gracefully:
        assert server.stop() == 0
    else:
        server.kill()
    for thread in [*crew, watcher]:
        thread.join(30)
        assert not thread.is_alive(), thread
    assert watcher.problem is None, watcher.problem
    for writer in crew:
        # A server that goes down may say so to those who come too late.
        assert all(gracefully and status in (429, 503) for status, _ in writer.refused), writer.refused
        ledger.acknowledged.update(writer.acknowledged)
        ledger.writes += writer.writes
    ledger.seen += watcher.events


def verify(server: RunningServer, ledger: Ledger) -> None:
    """The restarted server against the ledger."""
    client = Client(server)
    status, listing = client("GET", PATH)
    assert status == 200
    present = {
        o["metadata"]["name"]: (int(o["data"]["number"]), int(o["metadata"]["resourceVersion"]))
        for o in listing["items"]
    }
    now = int(listing["metadata"]["resourceVersion"])
    newest = max((revision for _, revision in ledger.acknowledged.values()), default=0)
    assert now >= max(newest, ledger.last_seen), "the revision went back"

    # A new write ends the watches below at a known place, and takes a revision of its own.
    marker = f"marker-{now}"
    _, written = client("POST", PATH, _configmap(marker, 1, 0))
    end = int(written["metadata"]["resourceVersion"])
    assert end > now
    client.close()

    ledger.seen += _follow(server, ledger.last_seen, end)
    whole = _follow(server, ledger.began, end)
    assert ledger.seen == whole, "a watcher that resumed saw another history than one that began anew"
    state = replay(whole)
    assert {name: state[name] for name in present} == present
    assert state.keys() == present.keys() | {marker}
    _check_acknowledged(ledger.acknowledged, state, whole)


def _follow(server: RunningServer, since: int, end: int) -> list[Seen]:
    client = Client(server)
    events = []
    for event in client.watch(since, 60):
        events.append(event)
        if event.revision >= end:
            break
    client.close()
    assert events[-1].revision == end
    return events


def replay(events: list[Seen]) -> dict[str, tuple[int, int]]:
    """The state the events lead to; each history has every number once, each revision is above the one before."""
    state: dict[str, tuple[int, int]] = {}
    last = 0
    for event in events:
        assert event.revision > last, f"{event} after {last}"
        last = event.revision
        if event.type == "ADDED":
            assert event.name not in state
            assert event.number == 1
        elif event.type == "MODIFIED":
            assert event.number == state[event.name][0] + 1, f"a hole before {event}"
        else:
            assert event.type == "DELETED"
            assert event.number == state[event.name][0]
            del state[event.name]
            continue
        state[event.name] = (event.number, event.revision)
    return state


def _check_acknowledged(acknowledged: Acknowledged, state: dict[str, tuple[int, int]], events: list[Seen]) -> None:
    happened = {(e.name, e.number, e.revision) for e in events if e.type != "DELETED"}
    deleted = {e.name for e in events if e.type == "DELETED"}
    for name, (number, revision) in acknowledged.items():
        if revision:
            assert (name, number, revision) in happened, f"lost: {name} {number} at {revision}"
            # Killed between the commit of the next change and its answer, the object may be further on.
            assert name in deleted or state[name][0] in (number, number + 1)
        else:
            assert name in deleted, f"the deletion of {name} is lost"
            assert name not in state, f"{name} came back"


def run(data_dir: Path, rounds: int, seed: int, writers: int = 6) -> Ledger:
    """Rounds of load, kill, restart and check on one data directory."""
    rng = random.Random(seed)
    ledger = prepare(data_dir)
    for number in range(rounds):
        server = RunningServer(data_dir)
        try:
            if number:
                verify(server, ledger)
            load(server, ledger, number, rng, writers)
        finally:
            server.kill()
    server = RunningServer(data_dir)
    try:
        verify(server, ledger)
    finally:
        assert server.stop() == 0
    return ledger

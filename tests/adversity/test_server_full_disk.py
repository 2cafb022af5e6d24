"""A disk that takes no more while everything runs: errors in clear words, reads go on, nothing acknowledged is lost."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fastapi_core.testing.server import RunningServer
from tests.adversity.killing import Client, Watcher

pytestmark = pytest.mark.adversity

PATH = "/api/v1/namespaces/default/configmaps"


class Writer(threading.Thread):
    """Creates objects for as long as it may; remembers what was acknowledged and what was refused."""

    def __init__(self, server: RunningServer, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.client = Client(server)
        self.ended = threading.Event()
        self.acknowledged: list[str] = []
        self.refused: list[tuple[int, str]] = []

    def run(self) -> None:
        number = 0
        while not self.ended.is_set():
            number += 1
            name = f"{self.name}-{number}"
            body = {"metadata": {"name": name}, "data": {"number": "1", "filler": "x" * 4000}}
            status, answer = self.client("POST", PATH, body)
            if status == 201:
                self.acknowledged.append(name)
            else:
                self.refused.append((status, answer["message"]))
                time.sleep(0.005)
        self.client.close()


def limit(server: RunningServer, size: int) -> None:
    """No file of the server's grows beyond `size` from now on."""
    hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, hard))


def until(condition: Callable[[], bool], what: str, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def test_no_space_for_a_while(tmp_path: Path) -> None:
    server = RunningServer(tmp_path / "data", flags=["--audit-log-path", str(tmp_path / "audit.log")])
    try:
        client = Client(server)
        since = int(client("GET", PATH)[1]["metadata"]["resourceVersion"])
        watcher = Watcher(server, since, PATH)
        watcher.start()
        crew = [Writer(server, f"w{n}") for n in range(3)]
        for writer in crew:
            writer.start()
        until(lambda: sum(len(w.acknowledged) for w in crew) > 50, "writes")
        sizes = [file.stat().st_size for file in (tmp_path / "data").glob("store.db*")]
        limit(server, min(size for size in sizes if size))
        until(lambda: all(len(w.refused) > 20 for w in crew), "refusals")
        # Meanwhile: reads, health, metrics.
        status, listing = client("GET", PATH)
        assert status == 200
        client.connection.request("GET", "/livez")
        answer = client.connection.getresponse()
        answer.read()
        client.connection.request("GET", "/readyz")
        ready = client.connection.getresponse()
        ready.read()
        assert (answer.status, ready.status) in ((200, 500), (500, 500))
        client.connection.request("GET", "/metrics")
        metrics = client.connection.getresponse()
        assert metrics.status == 200
        metrics.read()
        before = [len(w.acknowledged) for w in crew]
        limit(server, resource.RLIM_INFINITY)
        until(lambda: all(len(w.acknowledged) > n + 20 for w, n in zip(crew, before, strict=True)), "writes again")
        client.connection.request("GET", "/readyz")
        ready = client.connection.getresponse()
        ready.read()
        assert ready.status == 200
        for writer in crew:
            writer.ended.set()
        for writer in crew:
            writer.join(30)
        refusals = [refusal for w in crew for refusal in w.refused]
        print(f"{sum(len(w.acknowledged) for w in crew)} acknowledged, {len(refusals)} refused: {set(refusals)}")
        assert all(status in (500, 503) for status, _ in refusals)
        assert all("store" in text or "disk" in text or "space" in text for _, text in refusals)
        acknowledged = {name for w in crew for name in w.acknowledged}
        server.kill()
        watcher.join(30)
        client.close()
        server = RunningServer(tmp_path / "data")
        client = Client(server)
        status, listing = client("GET", PATH)
        present = {o["metadata"]["name"] for o in listing["items"]}
        # One more may have been written whose writer never heard of it.
        assert acknowledged <= present
        assert {e.name for e in watcher.events} >= acknowledged
        assert watcher.problem is None
        client.close()
    finally:
        server.kill()

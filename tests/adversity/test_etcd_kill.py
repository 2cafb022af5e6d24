"""kill -9 of the etcd below two servers under load, and its compaction under a server that could not follow."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastapi_core.testing.server import RunningServer
from tests.adversity import killing
from tests.fixtures.etcd import Etcd

pytestmark = pytest.mark.adversity

#: What a write is told while etcd is gone: 500 when it may have been made, 504 when nobody could be asked.
TEXTS = ("rpc error: code = Unavailable", "etcdserver: ", "Timeout: request did not complete within")


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Etcd]:
    etcd = Etcd(tmp_path / "etcd")
    etcd.start()
    yield etcd
    etcd.kill()


class Stubborn(killing.Writer):
    """Goes on after a refusal; what became of the refused write is left open, so its object is left alone."""

    def run(self) -> None:
        number = 0
        self.answers: list[tuple[int, object]] = []
        with contextlib.suppress(*killing.GONE):
            while not self.stop_event.is_set():
                number += 1
                self._one_life(f"{self.name}-{number}")
                self.answers += self.refused
                self.refused.clear()
        self.client.close()


def _readyz(server: RunningServer, wanted: int) -> None:
    """Wait until /readyz answers so."""
    deadline = time.monotonic() + 20
    client = killing.Client(server)
    while True:
        client.connection.request("GET", "/readyz?verbose")
        answer = client.connection.getresponse()
        text = answer.read().decode()
        if answer.status == wanted:
            assert wanted == 200 or "[-]etcd failed" in text, text
            break
        assert time.monotonic() < deadline, text
        time.sleep(0.05)
    client.close()


def test_nothing_acknowledged_is_lost_and_watches_go_on(etcd: Etcd, tmp_path: Path) -> None:
    """Killed twice, it comes again with all that was acknowledged; watches are the same ones as before."""
    rng = random.Random(seed := random.randrange(1 << 30))
    print(f"seed {seed}")
    flags = [f"--etcd-servers={etcd.url}", "--etcd-healthcheck-timeout=500ms", "--etcd-readycheck-timeout=500ms"]
    servers = [RunningServer(tmp_path / name, flags=flags) for name in ("a", "b")]
    watchers: list[killing.Watcher] = []
    try:
        client = killing.Client(servers[0])
        assert client("POST", "/api/v1/namespaces", {"metadata": {"name": killing.NAMESPACE}})[0] == 201
        ledger = killing.Ledger(began=int(client("GET", killing.PATH)[1]["metadata"]["resourceVersion"]))
        client.close()
        watchers += [killing.Watcher(server, ledger.began) for server in servers]
        stop = threading.Event()
        crew = [Stubborn(servers[i % 2], f"w{i}", rng.randrange(1 << 30), stop) for i in range(6)]
        for thread in (*watchers, *crew):
            thread.start()
        for _ in range(2):
            goal = sum(w.writes for w in crew) + rng.randrange(60, 200)
            while sum(w.writes for w in crew) < goal:
                assert all(thread.is_alive() for thread in crew)
                time.sleep(rng.random() / 50)
            etcd.kill()
            for server in servers:
                _readyz(server, 500)
            etcd.start()
            for server in servers:
                _readyz(server, 200)
        written = sum(w.writes for w in crew)
        while sum(w.writes for w in crew) < written + 60:
            time.sleep(0.02)
        stop.set()
        for thread in crew:
            thread.join(60)
            assert not thread.is_alive()
            ledger.acknowledged.update(thread.acknowledged)
            for status, answer in thread.answers:
                assert status in (500, 504), (thread.name, str(answer))
                assert isinstance(answer, dict)
                assert answer["message"].startswith(TEXTS), answer
        # Each ends at a write that both must see; the watches of before are still the same ones.
        for server, watcher in zip(servers, watchers, strict=True):
            own = killing.Ledger(ledger.began, dict(ledger.acknowledged), _until(server, watcher))
            killing.verify(server, own)
    finally:
        for server in servers:
            server.kill()
        for watcher in watchers:
            watcher.join(30)


def _until(server: RunningServer, watcher: killing.Watcher) -> list[killing.Seen]:
    """What a watch that went through it all has seen up to a write of now."""
    client = killing.Client(server)
    body = {"metadata": {"generateName": "end-"}, "data": {"number": "1"}}
    status, written = client("POST", killing.PATH, body)
    client.close()
    assert status == 201, written
    end = int(written["metadata"]["resourceVersion"])
    deadline = time.monotonic() + 20
    while not watcher.events or watcher.events[-1].revision < end:
        assert watcher.problem is None, watcher.problem
        assert watcher.is_alive(), "the watch has ended"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return list(watcher.events)

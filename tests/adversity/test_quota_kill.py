"""SIGKILL while many create against a quota: its usage is never below what is really there, and the limit holds."""

from __future__ import annotations

import contextlib
import random
import threading
from pathlib import Path

import pytest

from fastapi_core.testing.server import RunningServer
from tests.adversity.killing import GONE, Client
from tests.adversity.scale import scaled

pytestmark = pytest.mark.adversity

BASE = "/api/v1/namespaces/default"
LIMIT = scaled(150)
ROUNDS = scaled(4)


class Creator(threading.Thread):
    """Creates and deletes until the server is gone."""

    def __init__(self, server: RunningServer, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.client = Client(server)
        self.acknowledged: set[str] = set()
        self.codes: set[int] = set()

    def run(self) -> None:
        number = 0
        with contextlib.suppress(*GONE):
            while True:
                number += 1
                name = f"{self.name}-{number}"
                status, _ = self.client("POST", f"{BASE}/configmaps", {"metadata": {"name": name}})
                self.codes.add(status)
                if status == 201:
                    self.acknowledged.add(name)
                    if number % 3 == 0:
                        self.acknowledged.discard(name)
                        self.client("DELETE", f"{BASE}/configmaps/{name}")
        self.client.close()


def counted(server: RunningServer) -> tuple[set[str], int]:
    """What is there, and what the quota says is."""
    client = Client(server)
    listed = client("GET", f"{BASE}/configmaps")[1]["items"]
    quota = client("GET", f"{BASE}/resourcequotas/q")[1]
    client.close()
    return {item["metadata"]["name"] for item in listed}, int(quota["status"]["used"]["configmaps"])


def test_usage_is_never_below_what_is_there(tmp_path: Path) -> None:
    rng = random.Random(7)
    server = RunningServer(tmp_path / "data")
    client = Client(server)
    hard = {"configmaps": str(LIMIT)}
    quota = {"metadata": {"name": "q"}, "spec": {"hard": hard}}
    assert client("POST", f"{BASE}/resourcequotas", quota)[0] == 201
    status = {"hard": hard, "used": {"configmaps": "0"}}
    assert client("PUT", f"{BASE}/resourcequotas/q/status", {**quota, "status": status})[0] == 200
    client.close()
    kept: set[str] = set()
    try:
        for number in range(ROUNDS):
            crew = [Creator(server, f"r{number}w{n}") for n in range(6)]
            for creator in crew:
                creator.start()
            goal = rng.randrange(5, 40)
            while sum(len(c.acknowledged) for c in crew) < goal and all(c.is_alive() for c in crew):
                crew[0].join(rng.random() / 50)
                if any(403 in c.codes for c in crew):
                    break
            server.kill()
            for creator in crew:
                creator.join(30)
                assert creator.codes <= {201, 403, 409}
                kept |= creator.acknowledged
            server = RunningServer(tmp_path / "data")
            present, used = counted(server)
            print(f"{len(present)} there, {used} counted")
            assert kept <= present
            assert len(present) <= used <= LIMIT
    finally:
        server.kill()

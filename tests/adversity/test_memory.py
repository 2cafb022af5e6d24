"""What a server keeps in memory: with an empty store and with 10,000 pods of about 5 KB.

How long a start takes is a row of `make bench`: on a busy machine a time says nothing.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bench import objects
from fastapi_core.storage.sqlite.settings import Settings
from fastapi_core.storage.sqlite.store import SqliteStorage
from fastapi_core.testing.server import RunningServer
from tests.adversity.killing import Client

pytestmark = pytest.mark.adversity

PODS = "/api/v1/namespaces/default/pods"
COUNT = 10_000
IDLE_MIB = 80
FULL_MIB = 160


def resident(server: RunningServer) -> float:
    """MiB."""
    for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


async def multiply(data_dir: Path, count: int) -> None:
    """Clones of the one pod in the store, as the store keeps them."""
    storage = SqliteStorage(Settings(data_dir))
    await storage.open()
    (pod,) = (await storage.list("/registry/pods/")).items
    number = 1
    while number < count:
        batch = range(number, min(number + 500, count))
        names = [f"pod-{n:05}" for n in batch]
        prefix = pod.key.rpartition("/")[0]
        values = [pod.value.replace(b"pod-00000", name.encode()) for name in names]
        await asyncio.gather(
            *(storage.create(f"{prefix}/{name}", value) for name, value in zip(names, values, strict=True))
        )
        number = batch.stop
    await storage.close()


def test_memory(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    first = RunningServer(data_dir)
    client = Client(first)
    assert client("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})[0] == 201
    client.close()
    assert first.stop() == 0
    server = RunningServer(data_dir)
    idle = resident(server)
    print(f"empty: {idle:.0f} MiB")
    client = Client(server)
    status, pod = client("POST", PODS, objects.pod("pod-00000"))
    assert status == 201
    status, pod = client("PUT", f"{PODS}/pod-00000/status", pod | objects.pod_status(0))
    assert status == 200
    client.close()
    assert server.stop() == 0
    assert idle < IDLE_MIB

    asyncio.run(multiply(data_dir, COUNT))
    server = RunningServer(data_dir)
    try:
        full = resident(server)
        client = Client(server)
        client.connection.request("GET", PODS)
        listed = len(client.connection.getresponse().read())
        after = resident(server)
        print(f"{listed // COUNT} bytes each: {full:.0f} MiB, listed {after:.0f}")
        assert listed > COUNT * 4500
        assert client("GET", f"{PODS}/pod-09999")[0] == 200
        client.close()
        assert max(full, after) < FULL_MIB
    finally:
        assert server.stop() == 0

"""Members of an etcd cluster that die one after the other below a store that knows all of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastapi_core.storage.etcd.settings import Settings
from fastapi_core.storage.etcd.store import EtcdStorage
from fastapi_core.storage.interface import Code, StorageError
from fastapi_core.testing.storage_harness import Recorder
from tests.fixtures.etcd import Etcd, cluster

pytestmark = pytest.mark.adversity


@pytest.fixture
def members(tmp_path: Path) -> Iterator[list[Etcd]]:
    members = cluster(tmp_path)
    yield members
    for member in members:
        member.kill()


class Writer:
    """Counts up one key; what it was told is what must be there."""

    def __init__(self, storage: EtcdStorage, name: str) -> None:
        self.storage, self.key = storage, f"/registry/counters/{name}"
        self.acknowledged: list[tuple[int, int]] = []
        self.refused = 0
        self.stopped = False

    async def run(self) -> None:
        revision = number = 0
        while not self.stopped:
            number += 1
            try:
                if revision:
                    revision = await self.storage.update(self.key, b"%d" % number, expected=revision)
                else:
                    revision = await self.storage.create(self.key, b"%d" % number)
                self.acknowledged.append((number, revision))
            except StorageError as error:
                if error.code not in (Code.UNAVAILABLE, Code.TIMEOUT, Code.CONFLICT, Code.KEY_EXISTS):
                    raise
                self.refused += 1
                found = await self.storage.get(self.key)
                if found is not None:
                    number, revision = int(found.value), found.revision


async def test_any_one_of_three_may_die(members: list[Etcd]) -> None:
    rng = random.Random(seed := random.randrange(1 << 30))
    print(f"seed {seed}")
    storage = EtcdStorage(Settings(tuple(member.url for member in members), patience=20.0, attempt=2.0))
    await storage.open()
    base = storage.revision
    recorder = Recorder(storage)
    writers = [Writer(storage, str(number)) for number in range(4)]
    tasks = [asyncio.ensure_future(writer.run()) for writer in writers]

    async def progress(count: int) -> None:
        goal = sum(len(writer.acknowledged) for writer in writers) + count
        async with asyncio.timeout(30):
            while sum(len(writer.acknowledged) for writer in writers) < goal:
                await asyncio.sleep(0.005)

    for member in rng.sample(members, 3):
        await progress(rng.randrange(20, 60))
        member.kill()
        await progress(20)
        await asyncio.to_thread(member.start)
    await progress(20)
    for writer in writers:
        writer.stopped = True
    async with asyncio.timeout(30):
        await asyncio.gather(*tasks)
    newest = await storage.sync()
    history = await storage.history("", after=base, until=newest)
    assert recorder.events == history
    happened = {(event.key, int(event.value.value), event.revision) for event in history if event.value is not None}
    for writer in writers:
        assert {(writer.key, number, revision) for number, revision in writer.acknowledged} <= happened
    for key in {event.key for event in history}:
        numbers = [int(event.value.value) for event in history if event.key == key and event.value is not None]
        assert numbers == list(range(1, len(numbers) + 1))
    await storage.close()

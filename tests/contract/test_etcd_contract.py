"""The storage contract, run against a real etcd: one for all tests, in which each has a folder of its own."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from fastapi_core.storage.etcd.settings import Settings
from fastapi_core.storage.etcd.store import EtcdStorage
from fastapi_core.storage.interface import Storage
from fastapi_core.testing import storage_suite
from tests.fixtures.etcd import SHORTEST_TTL, Etcd

_numbers = itertools.count()


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    etcd = Etcd(tmp_path_factory.mktemp("etcd"))
    etcd.start()
    yield etcd
    etcd.kill()


class EtcdHarness:
    durable = True
    ordered = False
    ttl = SHORTEST_TTL

    def __init__(self, url: str) -> None:
        self.settings = Settings((url,), root="")
        self.stores: list[EtcdStorage] = []

    async def make(self) -> Storage:
        return await self._open(replace(self.settings, prefix=f"/{next(_numbers)}/"))

    async def restart(self, storage: Storage) -> Storage:
        assert isinstance(storage, EtcdStorage)
        await storage.close()
        return await self._open(storage.settings)

    async def _open(self, settings: Settings) -> EtcdStorage:
        storage = EtcdStorage(settings)
        await storage.open()
        self.stores.append(storage)
        return storage


class TestEtcd(storage_suite.StorageSuite):
    @pytest.fixture
    async def harness(self, etcd: Etcd) -> AsyncIterator[storage_suite.Harness]:
        harness = EtcdHarness(etcd.url)
        yield harness
        for storage in harness.stores:
            await storage.close()

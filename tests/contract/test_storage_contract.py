"""The storage contract, run against both embedded back ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fastapi_core.storage.interface import Storage
from fastapi_core.storage.memory import MemoryStorage
from fastapi_core.storage.sqlite.settings import Settings
from fastapi_core.storage.sqlite.store import SqliteStorage
from fastapi_core.testing import storage_suite


class MemoryHarness:
    durable = False
    ordered = True
    ttl = 0.05

    def __init__(self) -> None:
        self.stores: list[MemoryStorage] = []

    async def make(self) -> Storage:
        storage = MemoryStorage()
        await storage.open()
        self.stores.append(storage)
        return storage

    async def restart(self, storage: Storage) -> Storage:
        raise AssertionError("not durable")


class SqliteHarness:
    durable = True
    ordered = True
    ttl = 0.05

    def __init__(self, root: Path) -> None:
        self.root = root
        self.stores: list[SqliteStorage] = []

    async def make(self) -> Storage:
        return await self._open(self.root / f"store-{len(self.stores)}")

    async def restart(self, storage: Storage) -> Storage:
        assert isinstance(storage, SqliteStorage)
        await storage.close()
        return await self._open(storage.settings.directory)

    async def _open(self, directory: Path) -> SqliteStorage:
        storage = SqliteStorage(Settings(directory, expire_seconds=0.02, quiet_seconds=0.05))
        await storage.open()
        self.stores.append(storage)
        return storage


class TestMemory(storage_suite.StorageSuite):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[storage_suite.Harness]:
        harness = MemoryHarness()
        yield harness
        for storage in harness.stores:
            await storage.close()


class TestSqlite(storage_suite.StorageSuite):
    @pytest.fixture
    async def harness(self, tmp_path: Path) -> AsyncIterator[storage_suite.Harness]:
        harness = SqliteHarness(tmp_path)
        yield harness
        for storage in harness.stores:
            await storage.close()

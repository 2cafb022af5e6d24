"""The keys by which the servers of one store know each other."""

from __future__ import annotations

import json

import pytest

from fastapi_core.controlplane import masters
from fastapi_core.controlplane.masters import PREFIX, Masters
from fastapi_core.storage.interface import Code, StorageError
from fastapi_core.storage.memory import MemoryStorage


async def test_they_come_and_go() -> None:
    storage = MemoryStorage()
    await storage.open()
    one, other = Masters(storage), Masters(storage)
    assert await one.addresses("10.0.0.2") == ["10.0.0.2"]
    assert await other.addresses("10.0.0.1") == ["10.0.0.1", "10.0.0.2"]
    before = await storage.get(PREFIX + "10.0.0.2")
    assert await one.addresses("10.0.0.2") == ["10.0.0.1", "10.0.0.2"]
    after = await storage.get(PREFIX + "10.0.0.2")
    assert before is not None
    assert after is not None
    assert after.value != before.value
    assert json.loads(after.value)["subsets"] == [{"addresses": [{"ip": "10.0.0.2"}]}]
    await storage.create(PREFIX + "127.0.0.1", b"{}")
    await storage.create(PREFIX + "nobody", b"{}")
    await other.leave()
    assert await one.addresses("10.0.0.2") == ["10.0.0.2"]
    await Masters(storage).leave()
    await storage.close()
    # A store that is gone holds nobody up.
    await one.leave()


async def test_one_that_is_gone_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masters, "TTL", 0.02)
    storage = MemoryStorage()
    await storage.open()
    await Masters(storage).addresses("10.0.0.1")
    gone = storage._expiries[0][0]
    monkeypatch.setattr(masters, "TTL", 3600.0)
    while await Masters(storage).addresses("10.0.0.2") != ["10.0.0.2"]:
        import asyncio

        await asyncio.sleep(0.005)
    assert asyncio.get_running_loop().time() >= gone


async def test_a_race_for_the_key_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemoryStorage()
    await storage.open()
    create, failures = storage.create, [Code.KEY_EXISTS]

    async def racing(key: str, value: bytes, *, ttl: float = 0) -> int:
        if failures:
            raise StorageError(failures.pop(), key)
        return await create(key, value, ttl=ttl)

    monkeypatch.setattr(storage, "create", racing)
    assert await Masters(storage).addresses("10.0.0.1") == ["10.0.0.1"]

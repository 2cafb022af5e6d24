"""Two servers that give addresses and ports to services out of one store, neither of which sees at once what the other does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fastapi_core.apis import shared_services
from fastapi_core.apis.allocation import ServiceAllocator
from fastapi_core.apis.port_range import KEY, PortRange
from fastapi_core.apis.resources import builtin
from fastapi_core.apis.shared_services import SharedServiceStore
from fastapi_core.codec.protobuf import document
from fastapi_core.errors import APIError
from fastapi_core.registry.fields import extractor
from fastapi_core.registry.lifecycle import before_create
from fastapi_core.registry.store import ResourceStore
from fastapi_core.rest.defaulting import apply_defaults
from fastapi_core.schema.tables import type_of
from fastapi_core.storage.cacher.cacher import Cacher
from fastapi_core.storage.interface import Code, StorageError
from fastapi_core.storage.memory import MemoryStorage

PORTS = range(30000, 30008)


class Blind(SharedServiceStore):
    """A server that has not heard of what others hold: as late as its cache may ever be."""

    def blind(self) -> None:
        self.allocator.reserved = lambda address: False
        self.allocator.claims._holders.clear()


class Server:
    def __init__(self, storage: MemoryStorage, cacher: Cacher) -> None:
        def store(plural: str) -> ResourceStore:
            found = next(d for d in builtin() if d.plural == plural and d.version == "v1")
            return ResourceStore(found, storage, cacher.resource(found.key_prefix, extractor(found, None)))

        self.allocator = ServiceAllocator(["10.0.0.0/29"], PORTS[0], PORTS[-1])
        plain, self.addresses, ranges = store("services"), store("ipaddresses"), store("servicecidrs")
        self.services = Blind(
            self.allocator.bind(plain.definition), storage, plain.cache, self.allocator, self.addresses, ranges
        )

    def prepared(self, name: str, **spec: Any) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "n"}
        tree = {"kind": "Service", "apiVersion": "v1", "metadata": metadata, "spec": {"ports": [{"port": 80}], **spec}}
        apply_defaults(self.services.definition, tree)
        before_create(self.services.definition, tree)
        return tree

    async def create(self, name: str, **spec: Any) -> dict[str, Any]:
        made: dict[str, Any] = (await self.services.create(self.prepared(name, **spec))).tree()["spec"]
        return made


@contextlib.asynccontextmanager
async def servers() -> AsyncIterator[tuple[MemoryStorage, Server, Server]]:
    storage = MemoryStorage()
    await storage.open()
    cachers = Cacher(storage), Cacher(storage)
    made = [Server(storage, cacher) for cacher in cachers]
    for cacher, server in zip(cachers, made, strict=True):
        await cacher.open()
        await server.services.learn()
    yield storage, made[0], made[1]
    for cacher in cachers:
        await cacher.close()


async def bits(storage: MemoryStorage) -> set[int]:
    return await PortRange(storage, PORTS).claim([])


async def test_what_was_only_offered_is_exchanged() -> None:
    async with servers() as (storage, one, other):
        first = [await one.create(f"a{n}", type="NodePort") for n in range(3)]
        other.services.blind()
        second = [await other.create(f"b{n}", type="NodePort") for n in range(3)]
        specs = first + second
        assert len({spec["clusterIP"] for spec in specs}) == 6
        assert len({spec["ports"][0]["nodePort"] for spec in specs}) == 6
        assert all(spec["clusterIPs"] == [spec["clusterIP"]] for spec in specs)
        assert await bits(storage) == {spec["ports"][0]["nodePort"] for spec in specs}


async def test_what_was_asked_for_is_refused() -> None:
    async with servers() as (storage, one, other):
        first = await one.create("a", type="NodePort")
        address, port = first["clusterIP"], first["ports"][0]["nodePort"]
        for wanted, text in (
            (
                {"clusterIP": address, "clusterIPs": [address]},
                "failed to allocate IP .*: provided IP is already allocated",
            ),
            ({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}, "provided port is already allocated"),
        ):
            other.services.blind()
            with pytest.raises(APIError, match=text):
                await other.create("b", **wanted)
        assert await bits(storage) == {port}
        assert {obj.name for obj in one.addresses.cache.list().objects} == {address}


async def test_a_write_that_fails_gives_back_unless_it_may_have_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    async with servers() as (storage, one, _):
        made = await one.create("a", type="NodePort")
        with pytest.raises(APIError, match="already exists"):
            await one.create("a", type="NodePort")
        assert await bits(storage) == {made["ports"][0]["nodePort"]}
        assert len(one.addresses.cache.list().objects) == 1
        create = storage.create

        async def lost(key: str, value: bytes, *, ttl: float = 0) -> int:
            if "/services/" in key:
                raise StorageError(Code.UNAVAILABLE, message="rpc error: code = Unavailable desc = gone")
            return await create(key, value, ttl=ttl)

        monkeypatch.setattr(storage, "create", lost)
        with pytest.raises(APIError, match="rpc error"):
            await one.create("b", type="NodePort")
        assert len(await bits(storage)) == 2
        assert len(one.addresses.cache.list().objects) == 2


async def test_repair_claims_what_is_held_and_gives_back_what_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async with servers() as (storage, one, other):
        made = await one.create("a", type="NodePort")
        port, address = made["ports"][0]["nodePort"], made["clusterIP"]
        await PortRange(storage, PORTS).give([port])
        stray = next(p for p in PORTS if p != port)
        await PortRange(storage, PORTS).take([stray])
        await one.addresses.delete(one.addresses.get("", address))
        await other.services._publish("10.0.0.6" if address != "10.0.0.6" else "10.0.0.5", one.prepared("gone"))
        for _ in range(shared_services.ROUNDS - 1):
            await other.services.repair()
            assert await bits(storage) == {port, stray}
        # The address is a claim of a moment ago: it may be about to be used.
        assert len(one.addresses.cache.list().objects) == 2
        monkeypatch.setattr(shared_services, "GRACE_SECONDS", -1.0)
        await other.services.repair()
        assert await bits(storage) == {port}
        assert [obj.name for obj in one.addresses.cache.list().objects] == [address]


async def test_updates_and_deletions_give_back() -> None:
    async with servers() as (storage, one, other):
        await one.create("a", type="NodePort")
        current = other.services.get("n", "a")
        tree = current.tree()
        tree["spec"]["type"] = "ClusterIP"
        del tree["spec"]["ports"][0]["nodePort"]
        await other.services.update(current, tree)
        assert await bits(storage) == set()
        await one.services.delete(one.services.get("n", "a"))
        assert one.addresses.cache.list().objects == []


async def test_ports_are_one_number_that_the_reference_keeps_too() -> None:
    storage = MemoryStorage()
    await storage.open()
    tree = {"kind": "RangeAllocation", "apiVersion": "v1", "metadata": {}, "range": "30000-30007", "data": "Iw=="}
    await storage.create(KEY, document(type_of("core/v1.RangeAllocation"), tree))
    ports = PortRange(storage, PORTS)
    assert await ports.claim([]) == {30000, 30001, 30005}
    assert await ports.take([30002, 30005]) == 30005
    assert await ports.take([30002, 31000]) is None
    await asyncio.gather(ports.give([30000]), PortRange(storage, PORTS).give([30001]), ports.take([30007]))
    found = await storage.get(KEY)
    assert found is not None
    assert b'"data":"pA=="' in found.value
    assert await ports.claim([]) == {30002, 30005, 30007}
    for wrong in (b"", b"[]", b'{"data":"?"}', b'{"range":"1-2"}', b"k8s\0\xff"):
        newest = await storage.get(KEY)
        assert newest is not None
        await storage.update(KEY, wrong, expected=newest.revision)
        with pytest.raises(APIError, match=r"cannot be read|those of the flags"):
            await ports.take([30003])

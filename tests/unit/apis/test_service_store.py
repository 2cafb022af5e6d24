"""Services with their address objects over a store in memory: writes, races, and what a start puts right."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fastapi_core.apis.allocation import ServiceAllocator
from fastapi_core.apis.resources import builtin
from fastapi_core.apis.service_store import ServiceStore, address_object
from fastapi_core.errors import APIError
from fastapi_core.registry.fields import extractor
from fastapi_core.registry.lifecycle import before_create
from fastapi_core.registry.store import ResourceStore
from fastapi_core.rest.defaulting import apply_defaults
from fastapi_core.storage.cacher.cacher import Cacher
from fastapi_core.storage.memory import MemoryStorage

Tree = dict[str, Any]


def definition(plural: str) -> Any:
    return next(d for d in builtin() if d.plural == plural and d.version == "v1")


class World:
    def __init__(self, storage: MemoryStorage, cacher: Cacher, networks: tuple[str, ...]) -> None:
        def store(plural: str) -> ResourceStore:
            found = definition(plural)
            return ResourceStore(found, storage, cacher.resource(found.key_prefix, extractor(found, None)))

        self.allocator = ServiceAllocator(networks)
        plain, self.addresses, self.ranges = store("services"), store("ipaddresses"), store("servicecidrs")
        bound = self.allocator.bind(plain.definition)
        self.services = ServiceStore(bound, storage, plain.cache, self.allocator, self.addresses, self.ranges)

    def prepared(self, name: str, **spec: Any) -> Tree:
        """A service as the verb handler gives it to the store."""
        metadata = {"name": name, "namespace": "n"}
        tree: Tree = {
            "kind": "Service",
            "apiVersion": "v1",
            "metadata": metadata,
            "spec": {"ports": [{"port": 80}], **spec},
        }
        apply_defaults(self.services.definition, tree)
        before_create(self.services.definition, tree)
        return tree

    async def create(self, name: str, **spec: Any) -> Any:
        return await self.services.create(self.prepared(name, **spec))

    def objects(self) -> set[str]:
        return {obj.name for obj in self.addresses.cache.list().objects}


@contextlib.asynccontextmanager
async def world(*networks: str, storage: MemoryStorage | None = None) -> AsyncIterator[World]:
    storage = storage or MemoryStorage()
    with contextlib.suppress(RuntimeError):
        await storage.open()
    cacher = Cacher(storage)
    made = World(storage, cacher, networks or ("10.0.0.0/24",))
    await cacher.open()
    await made.services.learn()
    await made.services.repair()
    yield made
    await cacher.close()


def addresses(obj: Any) -> list[str]:
    found: list[str] = obj.tree()["spec"]["clusterIPs"]
    return found


async def test_an_address_object_for_each_address() -> None:
    async with world("10.0.0.0/24", "fd00::/108") as w:
        obj = await w.create("s", ipFamilyPolicy="RequireDualStack")
        assert w.objects() == set(addresses(obj))
        found = w.addresses.get("", addresses(obj)[1]).tree()
        assert found["spec"]["parentRef"] == {"resource": "services", "namespace": "n", "name": "s"}
        assert found["metadata"]["labels"] == {
            "ipaddress.kubernetes.io/ip-family": "IPv6",
            "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
        }
        await w.services.delete(obj)
        assert w.objects() == set()
        assert (await w.create("t", clusterIP=addresses(obj)[0])).name == "t"


async def test_the_later_of_two_writes_is_refused() -> None:
    async with world() as w:
        first, second = w.prepared("a", clusterIP="10.0.0.9"), w.prepared("b")
        second["spec"].update(clusterIP="10.0.0.9", clusterIPs=["10.0.0.9"])
        done = await asyncio.gather(w.services.create(first), w.services.create(second), return_exceptions=True)
        assert isinstance(done[1], APIError)
        assert done[1].message.endswith("failed to allocate IP 10.0.0.9: provided IP is already allocated")
        assert w.allocator.claims.holders("10.0.0.9") == ("n/a",)


async def test_many_at_once() -> None:
    async with world("10.0.0.0/26") as w:
        trees = [w.prepared(f"s{i}", type="NodePort") for i in range(60)]
        made = await asyncio.gather(*(w.services.create(tree) for tree in trees))
        assert len({address for obj in made for address in addresses(obj)}) == 60
        assert len({obj.tree()["spec"]["ports"][0]["nodePort"] for obj in made}) == 60


async def test_a_write_that_fails_leaves_nothing() -> None:
    async with world() as w:
        obj = await w.create("a")
        again = w.prepared("a", clusterIP="10.0.0.77")
        with pytest.raises(APIError, match="already exists"):
            await w.services.create(again)
        assert w.objects() == set(addresses(obj))
        assert not w.allocator.claims.taken("10.0.0.77", "n/b")


async def test_an_update_gives_back() -> None:
    async with world() as w:
        obj = await w.create("a")
        external = {**obj.tree(), "spec": {"type": "ExternalName", "externalName": "x.y"}}
        await w.services.update(obj, external)
        assert w.objects() == set()
        assert not w.allocator.claims.taken(addresses(obj)[0], "n/b")


async def test_addresses_that_users_have_written_are_kept() -> None:
    async with world("10.0.0.0/29") as w:
        other = address_object("10.0.0.2", {"metadata": {"name": "x", "namespace": "n"}})
        other["metadata"]["labels"] = {}
        await w.addresses.create(other)
        made = [addresses(await w.create(f"s{i}"))[0] for i in range(5)]
        assert "10.0.0.2" not in made
        with pytest.raises(APIError, match="range is full"):
            await w.create("more")


async def test_what_a_start_puts_right() -> None:
    storage = MemoryStorage()
    async with world(storage=storage) as w:
        kept, lost = await w.create("kept"), await w.create("lost")
        # As a crash between two writes would leave it: one object missing, one too many.
        await ResourceStore.delete(w.services, lost)
        await w.addresses.delete(w.addresses.get("", addresses(kept)[0]))
        assert w.objects() == set(addresses(lost))
    async with world(storage=storage) as w:
        assert w.objects() == set(addresses(kept))
        with pytest.raises(APIError, match="already allocated"):
            await w.create("new", clusterIP=addresses(kept)[0])


async def test_ranges_count_when_they_are_ready() -> None:
    async with world("10.0.0.0/30") as w:
        status = {"conditions": [{"type": "Ready", "status": "True"}]}
        base = {"kind": "ServiceCIDR", "apiVersion": "networking.k8s.io/v1", "spec": {"cidrs": ["10.7.0.0/24"]}}
        await w.ranges.create({**base, "metadata": {"name": "more", "uid": "1"}})
        with pytest.raises(APIError, match="does not match the current range"):
            await w.create("a", clusterIP="10.7.0.9")
        await w.ranges.update(
            w.ranges.get("", "more"), {**base, "metadata": {"name": "more", "uid": "1"}, "status": status}
        )
        assert addresses(await w.create("a", clusterIP="10.7.0.9")) == ["10.7.0.9"]

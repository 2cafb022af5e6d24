"""The store of services: a write holds its addresses and node ports against every other, and each address is also an
IPAddress object while its service has it.

Services are the truth. What is missing or left over of the other objects, after a crash between two writes, is put
right at the next start (`repair`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from ipaddress import ip_network
from typing import TYPE_CHECKING

from fastapi_core.apis import families
from fastapi_core.apis.allocation import Network, ServiceAllocator
from fastapi_core.apis.claims import addresses_of, claims_of, owner_of
from fastapi_core.apis.conditions import is_true
from fastapi_core.errors import APIError
from fastapi_core.later import later
from fastapi_core.obs import logs
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.registry.store import ResourceStore
from fastapi_core.storage.interface import StorageError

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.registry import lifecycle
    from fastapi_core.storage.cacher.resource import ResourceCache
    from fastapi_core.storage.interface import Storage
else:
    lifecycle = later("fastapi_core.registry.lifecycle")

log = logs.get("services")

MANAGED_BY, ALLOCATOR = "ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io"
FAMILY = "ipaddress.kubernetes.io/ip-family"


def address_object(address: str, service: Tree) -> Tree:
    """The IPAddress of a service."""
    metadata = service["metadata"]
    return {
        "kind": "IPAddress",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {
            "name": address,
            "uid": lifecycle.new_uid(),
            "creationTimestamp": lifecycle.timestamp(),
            "labels": {FAMILY: families.family_of(address), MANAGED_BY: ALLOCATOR},
        },
        "spec": {"parentRef": {"resource": "services", "namespace": metadata["namespace"], "name": metadata["name"]}},
    }


class ServiceStore(ResourceStore):
    """`addresses` and `ranges` are the stores of IPAddress and ServiceCIDR objects."""

    def __init__(
        self,
        definition: ResourceDefinition,
        storage: Storage,
        cache: ResourceCache,
        allocator: ServiceAllocator,
        addresses: ResourceStore,
        ranges: ResourceStore,
    ) -> None:
        super().__init__(definition, storage, cache)
        self.allocator = allocator
        self.addresses = addresses
        self.ranges = ranges
        allocator.more_networks = self._ready_networks
        allocator.reserved = lambda address: addresses.cache.get(addresses.key("", address)) is not None

    def _ready_networks(self) -> Iterable[Network]:
        for obj in self.ranges.cache.list().objects:
            tree = obj.tree()
            if is_true(tree, "Ready") and not tree["metadata"].get("deletionTimestamp"):
                for text in tree["spec"].get("cidrs") or ():
                    yield ip_network(text)

    # Writes

    async def create(self, tree: Tree) -> CachedObject:
        return await self._claimed(tree, ResourceStore.create(self, tree), frozenset())

    async def update(self, current: CachedObject, tree: Tree, known: Tree | None = None) -> CachedObject:
        earlier = frozenset(addresses_of(current.tree().get("spec") or {}))
        return await self._claimed(tree, ResourceStore.update(self, current, tree, known), earlier)

    async def delete(self, current: CachedObject) -> int:
        revision = await super().delete(current)
        owner = f"{current.namespace}/{current.name}"
        self.allocator.claims.remove(owner, revision)
        for address in addresses_of(current.tree().get("spec") or {}):
            await self._withdraw(address)
        return revision

    def unsaved(self, tree: Tree, revision: int = 0) -> CachedObject:
        """A dry run gives back what it was offered."""
        self.allocator.claims.unpick(owner_of(tree))
        return super().unsaved(tree, revision)

    async def _claimed(self, tree: Tree, write: Awaitable[CachedObject], earlier: frozenset[str]) -> CachedObject:
        """Do `write` while nobody else can get what the service wants; the address objects go in the same commit."""
        claims, owner, values = self.allocator.claims, owner_of(tree), claims_of(tree)
        lost = claims.begin(owner, values)
        if lost is not None:
            _drop(write)
            raise self.allocator.lost(tree, lost)
        try:
            now = addresses_of(tree.get("spec") or {})
            new = [address for address in now if address not in earlier]
            if not new:
                obj = await write
            else:
                obj = await self._with_addresses(tree, write, new)
            claims.commit(owner, obj.revision, values)
        finally:
            claims.end(owner, values)
            claims.unpick(owner)
        for address in earlier.difference(now):
            await self._withdraw(address)
        return obj

    async def _with_addresses(self, tree: Tree, write: Awaitable[CachedObject], new: list[str]) -> CachedObject:
        publishing = asyncio.gather(*(self._publish(address, tree) for address in new))
        try:
            obj = await write
        except BaseException:
            await publishing
            for address in new:
                await self._withdraw(address)
            raise
        await publishing
        return obj

    # Address objects

    async def _publish(self, address: str, service: Tree) -> None:
        try:
            await self.addresses.create(address_object(address, service))
        except APIError as error:
            if error.reason != "AlreadyExists":
                log.warning("IPAddress cannot be written", address=address, error=str(error))

    async def _withdraw(self, address: str) -> None:
        """Remove an address object that is ours and that no service has any more."""
        obj = self.addresses.cache.get(self.addresses.key("", address))
        if obj is None or self.allocator.claims.holders(address) or not _ours(obj):
            return
        with suppress(StorageError, APIError):
            await self.addresses.delete(obj)

    # Start

    async def learn(self) -> None:
        """What is taken, from the services, and from now on from their changes. Before the first write."""
        claims = self.allocator.claims
        claims.load(self.cache.list().objects)
        watcher = self.cache.watch(since=self.cache.revision, deliver=claims.follow)
        if isinstance(watcher, Awaitable):
            await watcher

    async def repair(self) -> None:
        """Write the address objects that are missing, remove those that no service has any more."""
        claims = self.allocator.claims
        for service in self.cache.list().objects:
            tree = service.tree()
            for address in addresses_of(tree.get("spec") or {}):
                holders = claims.holders(address)
                if len(holders) > 1:
                    log.warning("Several services have one address", address=address, services=" ".join(holders))
                if self.addresses.cache.get(self.addresses.key("", address)) is None:
                    await self._publish(address, tree)
        for obj in self.addresses.cache.list().objects:
            await self._withdraw(obj.name)


def _ours(obj: CachedObject) -> bool:
    labels = obj.tree()["metadata"].get("labels") or {}
    return bool(labels.get(MANAGED_BY) == ALLOCATOR)


def _drop(write: Awaitable[CachedObject]) -> None:
    """A coroutine that will not run is closed, so that nobody waits for it."""
    close = getattr(write, "close", None)
    if close is not None:
        close()

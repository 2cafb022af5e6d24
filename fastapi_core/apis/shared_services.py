"""The store of services where other servers write, too: what a service wants is claimed in the store before it is written.

An address is claimed by its IPAddress object, which only one can create, a node port by its bit in the range
(`port_range.py`). A value that was only offered to the service, and that somebody else has meanwhile, is exchanged for
another. When nobody knows whether a write has happened its claims stay, until `repair` finds that no service has them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fastapi_core.apis.claims import Value, addresses_of, canonical, claims_of, owner_of, ports_of
from fastapi_core.apis.port_range import PortRange
from fastapi_core.apis.service_store import ServiceStore, _drop, _ours, address_object
from fastapi_core.errors import APIError
from fastapi_core.meta import time as times
from fastapi_core.obs import logs
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.registry.store import ResourceStore
from fastapi_core.storage.interface import Code, StorageError

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.apis.allocation import ServiceAllocator
    from fastapi_core.storage.cacher.resource import ResourceCache
    from fastapi_core.storage.interface import Storage

log = logs.get("services")

#: Values that are exchanged until a write gives up.
EXCHANGES = 32
#: A claim without a service is left alone so long: the service may be about to be written.
GRACE_SECONDS = 60.0
#: Rounds of `repair` in which a port has to be without a service until it is given back.
ROUNDS = 3


class SharedServiceStore(ServiceStore):
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
        super().__init__(definition, storage, cache, allocator, addresses, ranges)
        self.ports = PortRange(storage, allocator.ports)
        self._unused: dict[int, int] = {}

    async def create(self, tree: Tree) -> CachedObject:
        return await self._claimed_by(tree, ResourceStore.create(self, tree), frozenset())

    async def update(self, current: CachedObject, tree: Tree, known: Tree | None = None) -> CachedObject:
        earlier = frozenset(claims_of(current.tree()))
        return await self._claimed_by(tree, ResourceStore.update(self, current, tree, known), earlier)

    async def delete(self, current: CachedObject) -> int:
        revision = await super().delete(current)
        await self._give(ports_of(current.tree().get("spec") or {}))
        return revision

    async def _claimed_by(self, tree: Tree, write: Awaitable[CachedObject], earlier: frozenset[Value]) -> CachedObject:
        owner, claims = owner_of(tree), self.allocator.claims
        held: list[Value] = []
        try:
            await self._claim(tree, owner, earlier, held)
        except BaseException:
            _drop(write)
            await self._release(held)
            raise
        values = claims_of(tree)
        try:
            obj = await write
            claims.commit(owner, obj.revision, values)
        except (APIError, StorageError) as error:
            if _certain(error):
                claims.end(owner, held)
                await self._release(held)
            raise
        finally:
            claims.end(owner, values)
            claims.unpick(owner)
        gone = earlier.difference(values)
        for value in gone:
            if isinstance(value, str):
                await self._withdraw(value)
        await self._give(value for value in gone if isinstance(value, int))
        return obj

    async def _claim(self, tree: Tree, owner: str, earlier: frozenset[Value], held: list[Value]) -> None:
        """Claim everything that is new, here and in the store; `held` has what was claimed in the store."""
        claims = self.allocator.claims
        exchanged = 0
        while True:
            values = claims_of(tree)
            lost = claims.begin(owner, values)
            if lost is None:
                try:
                    lost = await self._claim_stored(
                        tree, [v for v in values if v not in earlier and v not in held], held
                    )
                except BaseException:
                    claims.end(owner, values)
                    raise
                if lost is None:
                    return
                claims.end(owner, values)
            if exchanged == EXCHANGES or not claims.offered(lost, owner):
                raise self.allocator.lost(tree, lost)
            self.allocator.exchange(tree, lost, owner)
            exchanged += 1

    async def _claim_stored(self, tree: Tree, new: list[Value], held: list[Value]) -> Value | None:
        """The first value that somebody else has."""
        for address in new:
            if isinstance(address, str):
                try:
                    await self.addresses.create(address_object(address, tree))
                except APIError as error:
                    if error.reason != "AlreadyExists":
                        raise
                    return address
                held.append(address)
        ports = [port for port in new if isinstance(port, int)]
        lost = await self.ports.take(ports)
        if lost is None:
            held += ports
        return lost

    async def _release(self, held: list[Value]) -> None:
        for value in held:
            if isinstance(value, str):
                await self._withdraw(value)
        await self._give(value for value in held if isinstance(value, int))

    async def _give(self, ports: Iterable[int]) -> None:
        """A claim that cannot be given back now is found by `repair`."""
        given = [port for port in ports if not self.allocator.claims.holders(port)]
        try:
            if given:
                await self.ports.give(given)
        except (APIError, StorageError) as error:
            log.warning("Node ports cannot be given back", ports=" ".join(map(str, given)), error=str(error))

    # Repair

    async def repair(self) -> None:
        """Claim what services have, give back what none has had for a while."""
        claims = self.allocator.claims
        ports: set[int] = set()
        for service in self.cache.list().objects:
            spec = service.tree().get("spec") or {}
            ports.update(ports_of(spec))
            for address in addresses_of(spec):
                if self.addresses.cache.get(self.addresses.key("", address)) is None:
                    await self._publish(address, service.tree())
        for obj in self.addresses.cache.list().objects:
            if _ours(obj) and not claims.holders(canonical(obj.name)) and _age(obj) > GRACE_SECONDS:
                await self._withdraw(obj.name)
        unused = {port for port in await self.ports.claim(ports) if not claims.holders(port)}
        self._unused = {port: self._unused.get(port, 0) + 1 for port in unused}
        await self._give([port for port, rounds in self._unused.items() if rounds >= ROUNDS])


def _certain(error: APIError | StorageError) -> bool:
    """Whether a failed write has not happened for sure."""
    cause = error if isinstance(error, StorageError) else error.__cause__
    return not (isinstance(cause, StorageError) and cause.code is Code.UNAVAILABLE)


def _age(obj: CachedObject) -> float:
    text = obj.tree()["metadata"].get("creationTimestamp")
    return (datetime.now(UTC) - times.parse(text)).total_seconds() if text else GRACE_SECONDS + 1

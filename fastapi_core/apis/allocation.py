"""Cluster addresses and node ports of services.

What is taken is read from the services themselves, so nothing has to be given back when one goes or a write fails. A
value just given out is held for its service for some seconds, until the write that asked for it shows up.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING

from fastapi_core.apis.strategies.services import HEADLESS, has_address, wants_health_port, wants_node_ports
from fastapi_core.errors import FieldError, invalid
from fastapi_core.registry.definition import ResourceDefinition, Tree

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject

Claims = tuple[tuple[str, ...], tuple[int, ...]]
HELD_SECONDS = 10.0
_ADDRESS_FAILURE = "the provided network does not match the current range"


def claims(spec: Tree) -> Claims:
    """(addresses, node ports) that a service holds."""
    ports = [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]
    if spec.get("healthCheckNodePort"):
        ports.append(spec["healthCheckNodePort"])
    return tuple(ip for ip in spec.get("clusterIPs") or () if ip != HEADLESS), tuple(ports)


def _cached_claims(obj: CachedObject) -> Claims:
    found: Claims | None = obj.memo.get(claims)
    if found is None:
        found = obj.memo[claims] = claims(obj.tree().get("spec") or {})
    return found


def nothing() -> Iterable[CachedObject]:
    return ()


class ServiceAllocator:
    """Gives services their addresses (out of `network`) and node ports (`first_port` to `last_port`).

    `services` lists all committed services; set it once the store is there.
    """

    def __init__(
        self,
        network: str = "10.0.0.0/24",
        first_port: int = 30000,
        last_port: int = 32767,
        services: Callable[[], Iterable[CachedObject]] = nothing,
    ) -> None:
        parsed = ip_network(network)
        if not isinstance(parsed, IPv4Network):
            raise ValueError(f"the service network must be an IPv4 one, not {network}")
        self.network = parsed
        self.ports = range(first_port, last_port + 1)
        self.services = services
        self._held: dict[str | int, tuple[str, float]] = {}

    def bind(self, definition: ResourceDefinition) -> ResourceDefinition:
        """The definition of services with this allocator as its last step before a write."""
        return replace(definition, strategy=replace(definition.strategy, canonicalize=self.allocate))

    def allocate(self, new: Tree, old: Tree | None) -> None:
        """Fill in what the service lacks. Raises Invalid when what it asks for cannot be had."""
        spec, metadata = new.get("spec") or {}, new["metadata"]
        owner = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        own_addresses, own_ports = claims((old or {}).get("spec") or {})
        errors: list[FieldError] = []
        if has_address(spec):
            errors += self._check_families(spec)
            if not errors and spec.get("clusterIP") != HEADLESS:
                errors += self._address(spec, own_addresses, owner)
        if not errors:
            errors += self._node_ports(spec, own_ports, owner)
        if errors:
            raise invalid("Service", "", metadata.get("name", ""), errors)

    def _check_families(self, spec: Tree) -> list[FieldError]:
        if spec.get("clusterIP") == HEADLESS and not spec.get("selector"):
            return []
        errors = []
        policy = spec.get("ipFamilyPolicy")
        if policy == "RequireDualStack":
            text = "this cluster is not configured for dual-stack services"
            errors.append(FieldError("Invalid value", "spec.ipFamilyPolicy", text, policy))
        for index, family in enumerate(spec.get("ipFamilies") or ()):
            if family == "IPv6":
                text = "not configured on this cluster"
                errors.append(FieldError("Invalid value", f"spec.ipFamilies[{index}]", text, family))
        return errors

    def _taken(self, which: int, owner: str) -> set[str | int]:
        """What committed services have (0: addresses, 1: ports), and what others were given a moment ago."""
        now = time.monotonic()
        self._held = {value: hold for value, hold in self._held.items() if hold[1] > now}
        taken: set[str | int] = {value for value, hold in self._held.items() if hold[0] != owner}
        for obj in self.services():
            taken.update(_cached_claims(obj)[which])
        return taken

    def _hold(self, value: str | int, owner: str) -> None:
        self._held[value] = (owner, time.monotonic() + HELD_SECONDS)

    def _address(self, spec: Tree, own: tuple[str, ...], owner: str) -> list[FieldError]:
        wanted: list[str] = spec.get("clusterIPs") or []
        if not wanted:
            address = self._free_address(self._taken(0, owner))
            if address is None:
                text = "failed to allocate a serviceIP: range is full"
                return [FieldError("Internal error", "spec.clusterIPs", text)]
            spec["clusterIP"], spec["clusterIPs"] = address, [address]
            self._hold(address, owner)
            return []
        for address in wanted:
            if address in own:
                continue
            failure = ""
            if not self._contains(ip_address(address)):
                failure = _ADDRESS_FAILURE
            elif address in self._taken(0, owner):
                failure = "provided IP is already allocated"
            if failure:
                text = f"failed to allocate IP {address}: {failure}"
                return [FieldError("Invalid value", "spec.clusterIPs", text, wanted)]
            self._hold(address, owner)
        return []

    def _contains(self, address: IPv4Address | IPv6Address) -> bool:
        edges = (self.network.network_address, self.network.broadcast_address)
        return address in self.network and address not in edges

    def _free_address(self, taken: set[str | int]) -> str | None:
        """A free address, first from the part of the network that is not for chosen ones."""
        size = self.network.num_addresses
        chosen = min(max(16, size // 16), 256) if size > 16 else 1
        base = int(self.network.network_address)
        for offset in (*_from_anywhere(chosen, size - 1), *range(1, chosen)):
            address = str(IPv4Address(base + offset))
            if address not in taken:
                return address
        return None

    def _node_ports(self, spec: Tree, own: tuple[int, ...], owner: str) -> list[FieldError]:
        asked = [(f"spec.ports[{i}].nodePort", port) for i, port in enumerate(spec.get("ports") or ())]
        needs_health = wants_health_port(spec) and not spec.get("healthCheckNodePort")
        if not needs_health and not any(port.get("nodePort") for _, port in asked) and not wants_node_ports(spec):
            return []
        taken = self._taken(1, owner)
        errors = []
        given: set[int] = set()
        for field, port in asked:
            number = port.get("nodePort")
            if number:
                if number not in own and number not in given and (failure := self._port_failure(number, taken)):
                    errors.append(FieldError("Invalid value", field, failure, number))
                given.add(number)
        taken |= given
        for number in () if errors else given:
            self._hold(number, owner)
        if wants_node_ports(spec):
            for field, port in asked:
                if not port.get("nodePort"):
                    errors += self._give_port(port, "nodePort", field, taken, owner)
        if needs_health:
            errors += self._give_port(spec, "healthCheckNodePort", "spec.healthCheckNodePort", taken, owner)
        return errors

    def _port_failure(self, number: int, taken: set[str | int]) -> str:
        if number not in self.ports:
            span = f"{self.ports[0]}-{self.ports[-1]}"
            return f"provided port is not in the valid range. The range of valid ports is {span}"
        return "provided port is already allocated" if number in taken else ""

    def _give_port(self, target: Tree, member: str, field: str, taken: set[str | int], owner: str) -> list[FieldError]:
        for number in _from_anywhere(self.ports[0], self.ports[-1] + 1):
            if number not in taken:
                target[member] = number
                taken.add(number)
                self._hold(number, owner)
                return []
        return [FieldError("Internal error", field, "failed to allocate a nodePort: range is full")]


def _from_anywhere(start: int, stop: int) -> Iterable[int]:
    """All of range(start, stop), beginning at a random place."""
    if start >= stop:
        return ()
    middle = random.randrange(start, stop)
    return (*range(middle, stop), *range(start, middle))

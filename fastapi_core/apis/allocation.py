"""Gives services their cluster addresses and node ports.

The strategy's last step before a write picks values (`ServiceAllocator.allocate`); the store of services claims them
for good (`apis/service_store.py`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from fastapi_core import errors
from fastapi_core.apis import families
from fastapi_core.apis.claims import Claims, Value, canonical, owner_of, ports_of
from fastapi_core.apis.strategies.services import HEADLESS, has_address, wants_health_port, wants_node_ports
from fastapi_core.errors import APIError, FieldError, invalid
from fastapi_core.registry.definition import ResourceDefinition, Tree

Network = IPv4Network | IPv6Network
NO_RANGE = "the provided network does not match the current range"
TAKEN = "provided IP is already allocated"
FULL = "range is full"
#: Who has a value that a service of another server has got; its object comes in a moment.
_ELSEWHERE = "another server"
#: Beyond this many addresses a range that looks full is not searched to the end.
SEARCH_LIMIT = 1 << 20


def no_networks() -> Iterable[Network]:
    return ()


def nobody(address: str) -> bool:
    return False


class ServiceAllocator:
    """`networks` are those of the flags, the first one's family is the default. `first_port` to `last_port` are the
    node ports.

    Set once the stores are there: `more_networks` yields the ranges of ready ServiceCIDRs, `reserved` tells whether an
    IPAddress object that belongs to no service stands in the way.
    """

    def __init__(
        self, networks: Sequence[str] = ("10.0.0.0/24",), first_port: int = 30000, last_port: int = 32767
    ) -> None:
        self.networks: list[Network] = [ip_network(text) for text in networks]
        self.ports = range(first_port, last_port + 1)
        self.claims = Claims()
        self.more_networks: Callable[[], Iterable[Network]] = no_networks
        self.reserved: Callable[[str], bool] = nobody

    @property
    def default_family(self) -> str:
        return families.IPV4 if self.networks[0].version == 4 else families.IPV6

    @property
    def first_address(self) -> str:
        """The address of the `kubernetes` service."""
        return str(self.networks[0][1])

    def bind(self, definition: ResourceDefinition) -> ResourceDefinition:
        """The definition of services with this allocator as its last step before a write."""
        return definition.revised(lambda strategy: replace(strategy, canonicalize=self.allocate))

    def allocate(self, new: Tree, old: Tree | None) -> None:
        """Fill in what the service lacks. Raises Invalid when what it asks for cannot be had, InternalError when
        there is nothing left."""
        spec, name = new.get("spec") or {}, new["metadata"].get("name", "")
        before: Tree = (old or {}).get("spec") or {}
        owner = owner_of(new)
        self.claims.unpick(owner)
        if has_address(spec):
            ranges = self._ranges()
            problems = families.settle(spec, before if has_address(before) else {}, tuple(ranges), self.default_family)
            if not problems and spec.get("clusterIP") != HEADLESS:
                problems = self._addresses(spec, owner, ranges)
            if problems:
                raise invalid("Service", "", name, problems)
        problems = self._node_ports(spec, before, owner)
        if problems:
            raise invalid("Service", "", name, problems)

    # Addresses

    def _ranges(self) -> dict[str, list[Network]]:
        """The networks of each family, those of the flags first."""
        found: dict[str, list[Network]] = {}
        for network in (*self.networks, *self.more_networks()):
            family = families.IPV4 if network.version == 4 else families.IPV6
            if network not in found.setdefault(family, []):
                found[family].append(network)
        return found

    def _addresses(self, spec: Tree, owner: str, ranges: dict[str, list[Network]]) -> list[FieldError]:
        asked: list[str] = list(spec.get("clusterIPs") or ())
        given: list[str] = []
        for index, family in enumerate(spec["ipFamilies"]):
            if index < len(asked):
                failure = self._failure(asked[index], owner, ranges)
                if failure:
                    text = f"failed to allocate IP {asked[index]}: {failure}"
                    return [FieldError("Invalid value", "spec.clusterIPs", text, asked)]
                given.append(asked[index])
            else:
                given.append(self._free_address(ranges[family], owner))
        for index, address in enumerate(given):
            self.claims.pick(canonical(address), owner, offered=index >= len(asked))
        if given:
            spec["clusterIP"], spec["clusterIPs"] = given[0], given
        return []

    def _failure(self, address: str, owner: str, ranges: dict[str, list[Network]]) -> str:
        """Why a service cannot have the address it asks for; empty when it can."""
        parsed = ip_address(address)
        address = str(parsed)
        if owner in self.claims.holders(address):
            return ""
        networks = ranges.get(families.family_of(address), [])
        if not any(parsed in network and _usable(network, int(parsed)) for network in networks):
            return NO_RANGE
        return TAKEN if self._taken(address, owner) else ""

    def _taken(self, address: str, owner: str) -> bool:
        return self.claims.taken(address, owner) or self.reserved(address)

    def _free_address(self, networks: list[Network], owner: str) -> str:
        """A free address, first from the part of a network that is not for chosen ones."""
        for network in networks:
            for offset in _offsets(network):
                address = str(network[offset])
                if not self._taken(address, owner):
                    return address
        raise errors.internal(f"failed to allocate a serviceIP: {FULL}")

    # Node ports

    def _node_ports(self, spec: Tree, before: Tree, owner: str) -> list[FieldError]:
        """Check the ports that are stated, then give the rest. One port number serves several protocols."""
        own, mine, asked = set(ports_of(before)), set[int](), set(ports_of(spec))
        entries: list[Tree] = spec.get("ports") or []
        for index, entry in enumerate(entries):
            number = entry.get("nodePort")
            if number and number not in own and number not in mine:
                failure = self._port_failure(number, owner)
                if failure:
                    return [FieldError("Invalid value", f"spec.ports[{index}].nodePort", failure, number)]
            if number:
                mine.add(number)
        health = spec.get("healthCheckNodePort")
        if health and health not in own:
            failure = self._port_failure(health, owner)
            if failure:
                raise errors.internal(f"failed to allocate requested HealthCheck NodePort {health}: {failure}")
            mine.add(health)
        if wants_node_ports(spec):
            shared = {entry["port"]: entry["nodePort"] for entry in entries if entry.get("nodePort")}
            for entry in entries:
                if not entry.get("nodePort"):
                    number = shared.get(entry["port"])
                    twin = number is not None and not _same_protocol(entries, entry, number)
                    entry["nodePort"] = number if twin else self._free_port(mine, owner, "a nodePort")
                    shared.setdefault(entry["port"], entry["nodePort"])
                    mine.add(entry["nodePort"])
        if wants_health_port(spec) and not health:
            spec["healthCheckNodePort"] = number = self._free_port(mine, owner, "a HealthCheck NodePort 0")
            mine.add(number)
        for number in mine - own:
            self.claims.pick(number, owner, offered=number not in asked)
        return []

    def _port_failure(self, number: int, owner: str) -> str:
        if number not in self.ports:
            span = f"{self.ports[0]}-{self.ports[-1]}"
            return f"provided port is not in the valid range. The range of valid ports is {span}"
        return "provided port is already allocated" if self.claims.taken(number, owner) else ""

    def _free_port(self, mine: set[int], owner: str, what: str) -> int:
        size = len(self.ports)
        chosen = min(max(16, size // 32), 128) if size > 16 else 0
        for offset in (*_from_anywhere(chosen, size), *_from_anywhere(0, chosen)):
            number = self.ports[offset]
            if number not in mine and not self.claims.taken(number, owner):
                return number
        raise errors.internal(f"failed to allocate {what}: {FULL}")

    def exchange(self, tree: Tree, value: Value, owner: str) -> None:
        """Give the service another value in the place of one that a service of another server has got."""
        spec = tree["spec"]
        self.claims.pick(value, _ELSEWHERE)
        if isinstance(value, str):
            address = self._free_address(self._ranges()[families.family_of(value)], owner)
            self.claims.pick(address, owner, offered=True)
            spec["clusterIPs"] = [address if canonical(old) == value else old for old in spec["clusterIPs"]]
            spec["clusterIP"] = spec["clusterIPs"][0]
            return
        number = self._free_port(set(ports_of(spec)), owner, "a nodePort")
        self.claims.pick(number, owner, offered=True)
        for entry in spec.get("ports") or ():
            if entry.get("nodePort") == value:
                entry["nodePort"] = number
        if spec.get("healthCheckNodePort") == value:
            spec["healthCheckNodePort"] = number

    def lost(self, tree: Tree, value: Value) -> APIError:
        """What a write is told that comes too late for a value it was given."""
        spec, name = tree["spec"], tree["metadata"].get("name", "")
        if isinstance(value, str):
            text = f"failed to allocate IP {value}: {TAKEN}"
            problem = FieldError("Invalid value", "spec.clusterIPs", text, spec.get("clusterIPs"))
        else:
            places = (i for i, entry in enumerate(spec.get("ports") or ()) if entry.get("nodePort") == value)
            field = next((f"spec.ports[{index}].nodePort" for index in places), "spec.healthCheckNodePort")
            problem = FieldError("Invalid value", field, "provided port is already allocated", value)
        return invalid("Service", "", name, [problem])


def _same_protocol(entries: list[Tree], entry: Tree, number: int) -> bool:
    """Whether another entry has that node port for the same protocol: then it cannot be shared."""
    protocol = entry.get("protocol") or "TCP"
    return any(
        other is not entry and other.get("nodePort") == number and (other.get("protocol") or "TCP") == protocol
        for other in entries
    )


def _usable(network: Network, number: int) -> bool:
    """Not the network's own address; in IPv4 not the broadcast address either."""
    offset = number - int(network.network_address)
    return 0 < offset < network.num_addresses - (network.version == 4)


def _offsets(network: Network) -> Iterator[int]:
    """Offsets to try in a network: from anywhere behind the part for chosen addresses, then that part."""
    size = network.num_addresses
    last = size - (network.version == 4)
    chosen = min(max(16, size // 16), 256) if size > 16 else 1
    if size > SEARCH_LIMIT:
        # So large that a random address is as good as free; a run of the search limit makes an end.
        start = random.randrange(chosen, last)
        yield from range(start, min(start + SEARCH_LIMIT, last))
    else:
        yield from _from_anywhere(chosen, last)
    yield from _from_anywhere(1, chosen)


def _from_anywhere(start: int, stop: int) -> Iterator[int]:
    """All of range(start, stop), beginning at a random place."""
    if start < stop:
        middle = random.randrange(start, stop)
        yield from range(middle, stop)
        yield from range(start, middle)

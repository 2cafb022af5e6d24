"""Gives services their cluster addresses and node ports.

A step of the strategy before validation picks values (`ServiceAllocator.allocate`); the store of services claims them
for good (`apis/service_store.py`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from fastapi_core import errors
from fastapi_core.apis import families
from fastapi_core.apis.claims import Claims, Value, canonical, owner_of, ports_of
from fastapi_core.apis.strategies.services import (
    HEADLESS,
    begin,
    has_address,
    wants_health_port,
    wants_node_ports,
    wants_ports,
)
from fastapi_core.errors import APIError, FieldError, invalid
from fastapi_core.registry.definition import ResourceDefinition, Strategy, Tree

Network = IPv4Network | IPv6Network
NO_RANGE = "the provided network does not match the current range"
TAKEN = "provided IP is already allocated"
PORT_TAKEN = "provided port is already allocated"
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
        """The definition of services with this allocator between what the user wants and what is checked."""

        def revise(strategy: Strategy) -> Strategy:
            def prepare(new: Tree, old: Tree | None) -> None:
                begin(new, old)
                self.allocate(new, old)
                strategy.prepare(new, old)

            def rehearse(new: Tree, old: Tree | None) -> None:
                begin(new, old)
                Rehearsal(self).allocate(new, old)
                strategy.prepare(new, old)

            def validate(new: Tree, old: Tree | None) -> list[FieldError]:
                errors = strategy.validate(new, old)
                if errors:
                    self.claims.unpick(owner_of(new))
                return errors

            return replace(strategy, prepare=prepare, rehearse=rehearse, validate=validate)

        return definition.revised(revise)

    def allocate(self, new: Tree, old: Tree | None) -> None:
        """Fill in what the service lacks. Raises Invalid when what it asks for cannot be had, InternalError when
        there is nothing left."""
        spec, name = new.get("spec") or {}, new["metadata"].get("name", "")
        before: Tree = (old or {}).get("spec") or {}
        owner = owner_of(new)
        self._drop(owner)
        try:
            if has_address(spec):
                ranges = self._ranges()
                addressed = before if has_address(before) else {}
                problems = families.settle(spec, addressed, tuple(ranges), self.default_family, known=old is not None)
                if not problems:
                    problems = self._addresses(spec, addressed, owner, ranges)
                if problems:
                    raise invalid("Service", "", name, problems)
            problems = self._node_ports(spec, before, owner)
            if problems:
                raise invalid("Service", "", name, problems)
        except errors.APIError:
            self._drop(owner)
            raise

    def _pick(self, value: Value, owner: str, *, offered: bool) -> None:
        self.claims.pick(value, owner, offered=offered)

    def _drop(self, owner: str) -> None:
        self.claims.unpick(owner)

    # Addresses

    def _ranges(self) -> dict[str, list[Network]]:
        """The networks of each family, those of the flags first."""
        found: dict[str, list[Network]] = {}
        for network in (*self.networks, *self.more_networks()):
            family = families.IPV4 if network.version == 4 else families.IPV6
            if network not in found.setdefault(family, []):
                found[family].append(network)
        return found

    def _addresses(self, spec: Tree, before: Tree, owner: str, ranges: dict[str, list[Network]]) -> list[FieldError]:
        """Addresses of a service that has none yet, or the second one of a service that wants two now."""
        asked: list[str] = list(spec.get("clusterIPs") or ())
        wanted: list[str] = spec["ipFamilies"] if spec.get("ipFamilies") else []
        first = 0
        if before:
            if before.get("clusterIP") == HEADLESS or (len(before.get("ipFamilies") or ()), len(wanted)) != (1, 2):
                return []
            first = 1
        elif asked[:1] == [HEADLESS]:
            return []
        given: list[str] = asked[:first]
        for index, family in enumerate(wanted[first:], first):
            if index < len(asked) and asked[index]:
                failure = self._failure(asked[index], owner, ranges)
                if failure:
                    text = f"failed to allocate IP {asked[index]}: {failure}"
                    return [FieldError("Invalid value", "spec.clusterIPs", text, asked)]
                given.append(asked[index])
            else:
                given.append(self._free_address(ranges[family], owner))
        for index, address in enumerate(given[first:], first):
            self._pick(canonical(address), owner, offered=index >= len(asked) or not asked[index])
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
        """Check the ports that are stated, and give the rest, in the order of the list."""
        asked = set(ports_of(spec))
        operation = self.port_operation(owner, asked)
        if wants_ports(spec):
            problems = self._changed_ports(spec, before, operation) if before else self._new_ports(spec, operation)
            if problems:
                return problems
        if wants_health_port(spec) and not wants_health_port(before):
            health = spec.get("healthCheckNodePort")
            if health:
                failure = operation.take(health)
                if failure:
                    raise errors.internal(f"failed to allocate requested HealthCheck NodePort {health}: {failure}")
            else:
                spec["healthCheckNodePort"] = operation.next("a HealthCheck NodePort 0")
        for number in operation.taken:
            self._pick(number, owner, offered=number not in asked)
        return []

    def _new_ports(self, spec: Tree, operation: _Ports) -> list[FieldError]:
        """One number serves all entries of the same port, whatever their protocols."""
        entries: list[Tree] = spec.get("ports") or []
        shared: dict[int, int] = {}
        for index, entry in enumerate(entries):
            port, number = entry.get("port") or 0, entry.get("nodePort") or 0
            if not number and not wants_node_ports(spec):
                continue
            known = shared.get(port)
            if known is None:
                asked = next((e["nodePort"] for e in entries if (e.get("port") or 0) == port and e.get("nodePort")), 0)
                if asked:
                    failure = operation.take(asked)
                    if failure:
                        return [FieldError("Invalid value", f"spec.ports[{index}].nodePort", failure, asked)]
                shared[port] = entry["nodePort"] = asked or operation.next("a nodePort")
            elif not number:
                entry["nodePort"] = known
            elif number != known:
                failure = operation.take(number)
                if failure:
                    return [FieldError("Invalid value", f"spec.ports[{index}].nodePort", failure, number)]
        return []

    def _changed_ports(self, spec: Tree, before: Tree, operation: _Ports) -> list[FieldError]:
        """What the service had stays its own; a number is used once a protocol."""
        own = {entry["nodePort"] for entry in before.get("ports") or () if entry.get("nodePort")}
        seen: set[tuple[str, int]] = set()
        for index, entry in enumerate(spec.get("ports") or ()):
            number = entry.get("nodePort") or 0
            if not number and not wants_node_ports(spec):
                continue
            if not number:
                number = entry["nodePort"] = operation.next("a nodePort")
            elif number not in own and number not in operation.taken:
                failure = operation.take(number)
                if failure:
                    return [FieldError("Invalid value", f"spec.ports[{index}].nodePort", failure, number)]
            key = (entry.get("protocol") or "", number)
            if key in seen:
                raise errors.APIError("", f"duplicate nodePort: {{{key[0]} {key[1]}}}", code=500)
            seen.add(key)
        return []

    def port_operation(self, owner: str, asked: Collection[int]) -> _Ports:
        return _Ports(self, owner, asked)

    def port_failure(self, number: int, owner: str) -> str:
        if number not in self.ports:
            span = f"{self.ports[0]}-{self.ports[-1]}"
            return f"provided port is not in the valid range. The range of valid ports is {span}"
        return PORT_TAKEN if self.claims.taken(number, owner) else ""

    def free_port(self, mine: Collection[int], owner: str, what: str) -> int:
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
        number = self.free_port(set(ports_of(spec)), owner, "a nodePort")
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
            problem = FieldError("Invalid value", field, PORT_TAKEN, value)
        return invalid("Service", "", name, [problem])


class Rehearsal(ServiceAllocator):
    """What a dry run is given: nothing is claimed, so addresses are not looked for and stated ones may be taken."""

    def __init__(self, allocator: ServiceAllocator) -> None:
        self.networks, self.ports = allocator.networks, allocator.ports
        self.more_networks, self.reserved = allocator.more_networks, allocator.reserved
        self.claims = allocator.claims

    def _pick(self, value: Value, owner: str, *, offered: bool) -> None:
        """Nothing is kept for it."""

    def _drop(self, owner: str) -> None:
        """Nor let go."""

    def _failure(self, address: str, owner: str, ranges: dict[str, list[Network]]) -> str:
        parsed = ip_address(address)
        networks = ranges.get(families.family_of(str(parsed)), [])
        if not networks or any(parsed in network and _usable(network, int(parsed)) for network in networks):
            return ""
        return f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {networks[0]}"

    def _free_address(self, networks: list[Network], owner: str) -> str:
        return str(networks[0].network_address)

    def port_operation(self, owner: str, asked: Collection[int]) -> _Ports:
        return _RehearsedPorts(self, owner, asked)

    def port_failure(self, number: int, owner: str) -> str:
        return PORT_TAKEN if self.claims.taken(number, owner) else ""


class _Ports:
    """The node ports that one write takes. Those it has `asked` for itself are given to no other entry."""

    def __init__(self, allocator: ServiceAllocator, owner: str, asked: Collection[int]) -> None:
        self._asked = asked
        self._allocator = allocator
        self._owner = owner
        self.taken: list[int] = []

    def take(self, number: int) -> str:
        """Why a port cannot be had; empty when it can."""
        failure = PORT_TAKEN if number in self.taken else self._allocator.port_failure(number, self._owner)
        if not failure:
            self.taken.append(number)
        return failure

    def next(self, what: str) -> int:
        number = self._allocator.free_port({*self.taken, *self._asked}, self._owner, what)
        self.taken.append(number)
        return number


class _RehearsedPorts(_Ports):
    def next(self, what: str) -> int:
        number = max(self.taken, default=32768) + 1
        self.taken.append(number)
        return number


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

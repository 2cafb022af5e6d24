"""Who has which service address and which node port.

What committed services hold is an index kept by their changes, so that asking costs nothing however many services
there are. On top of it stand claims of writes under way, which decide a race, and picks: values just handed out, kept
for their owner for some seconds so that two writes rarely want the same in the first place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING

from fastapi_core.registry.definition import Tree

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.storage.cacher.changes import WatchEvent

Value = str | int
"""An address in canonical form, or a node port."""
PICK_SECONDS = 10.0
HEADLESS = "None"


def addresses_of(spec: Tree) -> tuple[str, ...]:
    """The cluster addresses of a service, in canonical form."""
    return tuple(canonical(address) for address in spec.get("clusterIPs") or () if address and address != HEADLESS)


@lru_cache(maxsize=4096)
def canonical(address: str) -> str:
    """An address as it is compared; what is no address stays as it is."""
    try:
        return str(ip_address(address))
    except ValueError:
        return address


def ports_of(spec: Tree) -> tuple[int, ...]:
    """The node ports of a service, each once."""
    ports = [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]
    if spec.get("healthCheckNodePort"):
        ports.append(spec["healthCheckNodePort"])
    return tuple(dict.fromkeys(ports))


def claims_of(tree: Tree) -> tuple[Value, ...]:
    """Everything a service holds."""
    spec = tree.get("spec") or {}
    return (*addresses_of(spec), *ports_of(spec))


def owner_of(tree: Tree) -> str:
    metadata = tree["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"


class Claims:
    """The index. Owners are `namespace/name`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._holders: dict[Value, set[str]] = {}
        self._held: dict[str, tuple[int, tuple[Value, ...]]] = {}
        self._under_way: dict[Value, str] = {}
        self._picked: dict[Value, tuple[str, float, bool]] = {}
        self._picks: dict[str, set[Value]] = {}
        self._tidy_at = 256

    # What is committed

    def commit(self, owner: str, revision: int, values: tuple[Value, ...]) -> None:
        """A service as committed. An older state than the one known changes nothing."""
        known, before = self._held.get(owner, (0, ()))
        if revision < known:
            return
        self._held[owner] = (revision, values)
        for value in before:
            if value not in values:
                self._let_go(value, owner)
        for value in values:
            self._holders.setdefault(value, set()).add(owner)
        self.unpick(owner)

    def remove(self, owner: str, revision: int) -> None:
        known, before = self._held.get(owner, (0, ()))
        if revision < known:
            return
        self._held.pop(owner, None)
        for value in before:
            self._let_go(value, owner)

    def _let_go(self, value: Value, owner: str) -> None:
        holders = self._holders.get(value)
        if holders is not None:
            holders.discard(owner)
            if not holders:
                del self._holders[value]

    def load(self, objects: Iterable[CachedObject]) -> None:
        for obj in objects:
            self.commit(f"{obj.namespace}/{obj.name}", obj.revision, claims_of(obj.tree()))

    def follow(self, events: list[WatchEvent]) -> None:
        """Changes as the cacher tells them."""
        for event in events:
            obj = event.change.object
            owner = f"{obj.namespace}/{obj.name}"
            if event.change.deleted:
                self.remove(owner, event.change.revision)
            else:
                self.commit(owner, event.change.revision, claims_of(obj.tree()))

    # Who may have what

    def taken(self, value: Value, owner: str) -> bool:
        """Whether somebody else holds the value, is about to, or was given it a moment ago."""
        holders = self._holders.get(value)
        if holders and (len(holders) > 1 or owner not in holders):
            return True
        if self._under_way.get(value, owner) != owner:
            return True
        picked = self._picked.get(value)
        if picked is None or picked[0] == owner:
            return False
        if picked[1] > self._clock():
            return True
        del self._picked[value]
        return False

    def pick(self, value: Value, owner: str, *, offered: bool = False) -> None:
        """Keep the value for its owner for a while. `offered`: the owner would be content with another one."""
        now = self._clock()
        if len(self._picked) >= self._tidy_at:
            self._picked = {v: pick for v, pick in self._picked.items() if pick[1] > now}
            self._picks = {}
            for other, (holder, _, _) in self._picked.items():
                self._picks.setdefault(holder, set()).add(other)
            self._tidy_at = 2 * len(self._picked) + 256
        self._picked[value] = (owner, now + PICK_SECONDS, offered)
        self._picks.setdefault(owner, set()).add(value)

    def offered(self, value: Value, owner: str) -> bool:
        """Whether the value is one that its owner did not ask for."""
        picked = self._picked.get(value)
        return picked is not None and picked[0] == owner and picked[2]

    def unpick(self, owner: str) -> None:
        """The owner will not take what it was given: a dry run, a write that failed, or another attempt begins."""
        for value in self._picks.pop(owner, ()):
            if self._picked.get(value, ("", 0.0, False))[0] == owner:
                del self._picked[value]

    def begin(self, owner: str, values: Iterable[Value]) -> Value | None:
        """Claim values for a write under way, all or none; the first that somebody else has, None when claimed."""
        wanted = tuple(values)
        for value in wanted:
            holders = self._holders.get(value)
            if (holders and owner not in holders) or self._under_way.get(value, owner) != owner:
                return value
        for value in wanted:
            self._under_way[value] = owner
        return None

    def end(self, owner: str, values: Iterable[Value]) -> None:
        """The write is over; what it committed is in the index by now."""
        for value in values:
            with suppress(KeyError):
                if self._under_way[value] == owner:
                    del self._under_way[value]

    def holders(self, value: Value) -> tuple[str, ...]:
        return tuple(sorted(self._holders.get(value, ())))

    def __len__(self) -> int:
        return len(self._holders)

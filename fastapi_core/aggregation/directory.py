"""The APIService objects as everything else here wants them: parsed once, followed, told apart by what matters."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi_core.discovery.priorities import version_key
from fastapi_core.obs import logs
from fastapi_core.records import dataclass

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.registry.store import ResourceStore
    from fastapi_core.storage.cacher.changes import WatchEvent
    from fastapi_core.storage.cacher.watchers import Watcher

Tree = dict[str, Any]
log = logs.get("aggregation")

APISERVICES = "/registry/apiregistration.k8s.io/apiservices/"
AVAILABLE = "Available"


class Backing(NamedTuple):
    """The Service behind an APIService."""

    namespace: str
    name: str
    port: int

    @property
    def server_name(self) -> str:
        """The name its certificate is for."""
        return f"{self.name}.{self.namespace}.svc"


Way = tuple[Backing, bool, bytes]


@dataclass(frozen=True, slots=True)
class APIService:
    """One registered group version. Equal ones are served the same way."""

    name: str
    group: str
    version: str
    group_priority: int
    version_priority: int
    backing: Backing | None
    """None: this server answers itself."""
    insecure: bool
    authorities: bytes
    """PEM bundle; empty: the system's."""
    available: bool
    uid: str
    said: tuple[str, str, str] = ("", "", "")
    """Status, reason and message of its condition."""

    @property
    def way(self) -> Way | None:
        """What leads to its backend, and what is believed of it; None without one."""
        return None if self.backing is None else (self.backing, self.insecure, self.authorities)

    @property
    def path(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


def parsed(tree: Tree) -> APIService:
    """An APIService object, complete or not."""
    spec: Tree = tree.get("spec") or {}
    service: Tree | None = spec.get("service")
    backing = None
    if service is not None:
        backing = Backing(service.get("namespace") or "", service.get("name") or "", service.get("port") or 443)
    try:
        authorities = base64.b64decode(spec.get("caBundle") or "")
    except (binascii.Error, ValueError):
        authorities = b"-"
    available = condition(tree) or {}
    return APIService(
        tree["metadata"]["name"],
        spec.get("group") or "",
        spec.get("version") or "",
        spec.get("groupPriorityMinimum") or 0,
        spec.get("versionPriority") or 0,
        backing,
        bool(spec.get("insecureSkipTLSVerify")),
        authorities,
        available=available.get("status") == "True",
        uid=tree["metadata"].get("uid") or "",
        said=(available.get("status") or "", available.get("reason") or "", available.get("message") or ""),
    )


def condition(tree: Tree) -> Tree | None:
    """The condition Available."""
    conditions = (tree.get("status") or {}).get("conditions") or ()
    return next((c for c in conditions if c.get("type") == AVAILABLE), None)


_NOBODY = APIService("", "", "", 0, 0, None, False, b"", False, "")

Changed = Callable[[APIService | None, APIService | None], None]
"""Told of (before, now); None for one that was not there, or is no more."""


class Directory:
    """All APIServices of this moment."""

    def __init__(self, store: ResourceStore) -> None:
        self.store = store
        self.generation = 0
        """Grows with every change that matters."""
        self._services: dict[str, APIService] = {}
        self._by_group: dict[str, dict[str, APIService]] = {}
        self._sorted: dict[str, tuple[APIService, ...]] = {}
        self._listeners: list[Changed] = []
        self._group_listeners: list[Callable[[str], None]] = []
        self._watcher: Watcher | None = None

    @property
    def services(self) -> Mapping[str, APIService]:
        """By name."""
        return self._services

    def listen(self, changed: Changed) -> None:
        """Call for every change from now on; what is there already is told by `open`."""
        self._listeners.append(changed)

    def listen_groups(self, noted: Callable[[str], None]) -> None:
        """Call with the name of each group whose versions, or what is known of them, have changed."""
        self._group_listeners.append(noted)

    async def open(self) -> None:
        """Read what there is, and follow it."""
        cache = self.store.cache
        revision = cache.revision
        for obj in cache.list().objects:
            self._put(obj)
        watcher = cache.watch(since=revision, deliver=self._deliver)
        self._watcher = await watcher if isinstance(watcher, Awaitable) else watcher

    def close(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()

    def expect(self, group: str, version: str, group_priority: int, version_priority: int) -> None:
        """List a group version answered here from now on, though its APIService is still being written: who sees a
        definition established looks its group up next. Listeners are told of the object."""
        name = f"{version}.{group}"
        known = self._services.get(name)
        made = known or APIService(name, group, version, group_priority, version_priority, None, False, b"", True, "")
        if self._by_group.setdefault(group, {}).setdefault(name, made) is made:
            self._regroup(group)

    def forget(self, group: str, version: str) -> None:
        """No longer list a group version answered here, though its APIService may have to be deleted yet."""
        known = self._by_group.get(group, {})
        if known.pop(f"{version}.{group}", None) is not None:
            if not known:
                del self._by_group[group]
            self._regroup(group)

    def _regroup(self, group: str) -> None:
        """The versions of a group have changed."""
        self.generation += 1
        self._sorted.pop(group, None)
        for noted in self._group_listeners:
            noted(group)

    def _deliver(self, events: list[WatchEvent]) -> None:
        for event in events:
            change = event.change
            if change.deleted:
                before = self._services.pop(change.object.name, None)
                if before is not None:
                    self._tell(before, None)
            else:
                self._put(change.object)

    def _put(self, obj: CachedObject) -> None:
        now = parsed(obj.tree())
        before = self._services.get(now.name)
        if before != now:
            self._services[now.name] = now
            self._tell(before, now)

    def _tell(self, before: APIService | None, now: APIService | None) -> None:
        if before is not None:
            known = self._by_group.get(before.group, {})
            known.pop(before.name, None)
            if not known:
                self._by_group.pop(before.group, None)
        if now is not None:
            self._by_group.setdefault(now.group, {})[now.name] = now
        for group in {service.group for service in (before, now) if service is not None}:
            self._regroup(group)
        for listener in self._listeners:
            try:
                listener(before, now)
            except Exception as error:
                # One that fails over one registration must not cost all others.
                name = (now or before or _NOBODY).name
                log.error("An API service is not taken notice of", error, apiservice=name)

    @property
    def groups(self) -> Iterable[str]:
        """Those with a version registered."""
        return self._by_group.keys()

    def group(self, name: str) -> tuple[APIService, ...]:
        """The registered versions of a group in order."""
        found = self._sorted.get(name)
        if found is None:
            services = self._by_group[name].values() if name in self._by_group else ()
            found = tuple(sorted(services, key=lambda s: (-s.version_priority, version_key(s.version))))
            self._sorted[name] = found
        return found

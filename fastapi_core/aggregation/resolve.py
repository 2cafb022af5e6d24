"""From a Service to addresses: its cluster IP, its ready endpoints, or the name outside that it stands for.

Answers are remembered until the Service or one of its EndpointSlices changes.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from fastapi_core.aggregation.directory import Backing

if TYPE_CHECKING:
    from fastapi_core.registry.store import ResourceStore
    from fastapi_core.storage.cacher.changes import WatchEvent
    from fastapi_core.storage.cacher.watchers import Watcher

Tree = dict[str, Any]
SERVICES, SLICES = "/registry/services/specs/", "/registry/endpointslices/"
SERVICE_NAME = "kubernetes.io/service-name"
Place = tuple[str, int]


class ResolveError(Exception):
    """A Service that leads nowhere; the text is for the log."""


class Resolver:
    """`routing`: endpoints instead of the cluster IP."""

    def __init__(self, stores: Mapping[str, ResourceStore], *, routing: bool, own_port: Callable[[], int]) -> None:
        self._services = stores[SERVICES]
        self._slices = stores[SLICES]
        self._routing = routing
        self._own_port = own_port
        self._known: dict[Backing, list[Place]] = {}
        self._slices_of: dict[tuple[str, str], dict[str, Tree]] = {}
        self._listeners: list[Callable[[str, str], None]] = []
        self._watchers: list[Watcher] = []

    def listen(self, changed: Callable[[str, str], None]) -> None:
        """Call with namespace and name of every Service that may lead elsewhere now."""
        self._listeners.append(changed)

    async def open(self) -> None:
        revision = self._slices.cache.revision
        for obj in self._slices.cache.list().objects:
            self._slice(obj.key, obj.tree(), gone=False)
        for store, deliver in ((self._slices, self._slices_changed), (self._services, self._services_changed)):
            since = revision if store is self._slices else store.cache.revision
            watcher = store.cache.watch(since=since, deliver=deliver)
            self._watchers.append(await watcher if isinstance(watcher, Awaitable) else watcher)

    def close(self) -> None:
        for watcher in self._watchers:
            watcher.stop()

    def _services_changed(self, events: list[WatchEvent]) -> None:
        for event in events:
            obj = event.change.object
            self._forget(obj.namespace, obj.name)

    def _slices_changed(self, events: list[WatchEvent]) -> None:
        for event in events:
            change = event.change
            if change.previous is not None:
                self._slice(change.object.key, change.previous.tree(), gone=True)
            self._slice(change.object.key, change.object.tree(), gone=change.deleted)

    def _slice(self, key: str, tree: Tree, *, gone: bool) -> None:
        metadata = tree["metadata"]
        name = (metadata.get("labels") or {}).get(SERVICE_NAME)
        if not name:
            return
        place = (metadata.get("namespace") or "", name)
        found = self._slices_of.setdefault(place, {})
        if gone:
            found.pop(key, None)
        else:
            found[key] = tree
        if not found:
            del self._slices_of[place]
        self._forget(*place)

    def _forget(self, namespace: str, name: str) -> None:
        for backing in [b for b in self._known if b.namespace == namespace and b.name == name]:
            del self._known[backing]
        for listener in self._listeners:
            listener(namespace, name)

    # Answers

    def service(self, namespace: str, name: str) -> Tree | None:
        """The Service object."""
        obj = self._services.cache.get(self._services.key(namespace, name))
        return None if obj is None else obj.tree()

    def slices(self, namespace: str, name: str) -> list[Tree]:
        """EndpointSlices of a Service."""
        return list(self._slices_of.get((namespace, name), {}).values())

    def places(self, backing: Backing) -> list[Place]:
        """Where to connect, any of them first. Raises ResolveError."""
        found = self._known.get(backing)
        if found is None:
            found = self._known[backing] = self._resolve(backing)
        if len(found) < 2:
            return found
        return random.sample(found, min(len(found), 3))

    def _resolve(self, backing: Backing) -> list[Place]:
        if (backing.namespace, backing.name, backing.port) == ("default", "kubernetes", 443):
            return [("127.0.0.1", self._own_port())]
        service = self.service(backing.namespace, backing.name)
        if service is None:
            raise ResolveError(f'service "{backing.name}" not found')
        spec: Tree = service.get("spec") or {}
        kind = spec.get("type") or "ClusterIP"
        if kind == "ExternalName":
            return [(spec.get("externalName") or "", backing.port)]
        port = next((p for p in spec.get("ports") or () if p.get("port") == backing.port), None)
        if port is None:
            raise ResolveError(f"no service port {backing.port} found for service {backing.name!r}")
        if self._routing:
            return self._endpoints(backing, port.get("name") or "")
        address = spec.get("clusterIP") or ""
        if address in ("", "None"):
            raise ResolveError(f"service {backing.name!r} has no cluster IP")
        return [(address, backing.port)]

    def _endpoints(self, backing: Backing, port: str) -> list[Place]:
        found = [
            (endpoint["addresses"][0], entry["port"])
            for tree in self.slices(backing.namespace, backing.name)
            for entry in tree.get("ports") or ()
            if (entry.get("name") or "") == port and entry.get("port")
            for endpoint in tree.get("endpoints") or ()
            if is_ready(endpoint) and endpoint.get("addresses")
        ]
        if not found:
            raise ResolveError(f"no endpoints available for service {backing.name!r}")
        return found


def is_ready(endpoint: Tree) -> bool:
    """Whether an endpoint takes requests; one that does not say does."""
    return (endpoint.get("conditions") or {}).get("ready") is not False

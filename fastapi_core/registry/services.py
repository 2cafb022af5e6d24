"""From a Service to addresses: its ready endpoints, its cluster address, or the name outside that it stands for."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from fastapi_core.errors import go_quote
from fastapi_core.registry.definition import Tree

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.registry.store import ResourceStore
    from fastapi_core.storage.cacher.changes import WatchEvent
    from fastapi_core.storage.cacher.watchers import Watcher

SERVICES, ENDPOINTS, SLICES = "/registry/services/specs/", "/registry/services/endpoints/", "/registry/endpointslices/"
SERVICE_NAME = "kubernetes.io/service-name"
#: Types that have endpoints behind a cluster address.
_ROUTED = ("", "ClusterIP", "NodePort", "LoadBalancer")
#: Of many endpoints as many are told: one to use, the others in case it cannot be reached.
_TOLD = 3
Place = tuple[str, int]
Changed = Callable[[str, str], None]


class ServiceError(Exception):
    """A Service that leads nowhere; the text is the reference's."""


class Way(Enum):
    """How a Service with a cluster address is reached."""

    CLUSTER = "by its cluster address"
    ENDPOINTS = "at one of its ready endpoints"
    NEAREST = "at an endpoint, by the cluster address where none is known"


class Address(NamedTuple):
    """An endpoint that takes requests. `target` refers to what it belongs to."""

    host: str
    port: int
    target: Tree


class Services:
    """Services, their slices and their endpoints, of one server; `stores` by key prefix. Followed from the first question on."""

    def __init__(self, stores: Mapping[str, ResourceStore]) -> None:
        self._stores = stores
        self.own_port: Callable[[], int] | None = None
        """The port of this server, which is the Service `kubernetes`."""
        self._slices: dict[tuple[str, str], dict[str, CachedObject]] = {}
        self._listeners: list[Changed] = []
        self._watchers: list[Watcher] = []

    def listen(self, changed: Changed) -> None:
        """Call with namespace and name of every Service that may lead elsewhere now."""
        self._listeners.append(changed)

    def open(self) -> None:
        """Follow them, if that is not so already."""
        if self._watchers:
            return
        for prefix, deliver in ((SLICES, self._slices_changed), (SERVICES, self._changed), (ENDPOINTS, self._changed)):
            cache = self._stores[prefix].cache
            watcher = cache.watch(since=cache.revision, deliver=deliver)
            assert not isinstance(watcher, Awaitable), "nothing has to be read that is newer than the newest"
            self._watchers.append(watcher)
        for obj in self._stores[SLICES].cache.list().objects:
            self._slice(obj, gone=False)

    def close(self) -> None:
        for watcher in self._watchers:
            watcher.stop()
        self._watchers.clear()
        self._slices.clear()

    def _changed(self, events: list[WatchEvent]) -> None:
        for event in events:
            self._tell(event.change.object.namespace, event.change.object.name)

    def _slices_changed(self, events: list[WatchEvent]) -> None:
        for event in events:
            change = event.change
            if change.previous is not None:
                self._slice(change.previous, gone=True)
            self._slice(change.object, gone=change.deleted)

    def _slice(self, obj: CachedObject, *, gone: bool) -> None:
        name = obj.labels().get(SERVICE_NAME)
        if not name:
            return
        place = (obj.namespace, name)
        found = self._slices.setdefault(place, {})
        if gone:
            found.pop(obj.key, None)
        else:
            found[obj.key] = obj
        if not found:
            del self._slices[place]
        self._tell(*place)

    def _tell(self, namespace: str, name: str) -> None:
        for listener in self._listeners:
            listener(namespace, name)

    # Answers

    def service(self, namespace: str, name: str) -> Tree | None:
        """The Service object."""
        return self._object(SERVICES, namespace, name)

    def slices(self, namespace: str, name: str) -> list[Tree]:
        """EndpointSlices of a Service."""
        self.open()
        return [obj.tree() for obj in self._slices.get((namespace, name), {}).values()]

    def ready(self, namespace: str, name: str, port: str) -> Iterator[Address]:
        """The endpoints of a named port of a Service that take requests: of its slices, else of its Endpoints."""
        slices = self.slices(namespace, name)
        for tree in slices:
            numbers = [p["port"] for p in tree.get("ports") or () if (p.get("name") or "") == port and p.get("port")]
            for endpoint in tree.get("endpoints") or ():
                if is_ready(endpoint) and endpoint.get("addresses"):
                    for number in numbers:
                        yield Address(endpoint["addresses"][0], number, endpoint.get("targetRef") or {})
        if slices:
            return
        for subset in (self._object(ENDPOINTS, namespace, name) or {}).get("subsets") or ():
            numbers = [p["port"] for p in subset.get("ports") or () if (p.get("name") or "") == port]
            for address in subset.get("addresses") or ():
                for number in numbers:
                    yield Address(address["ip"], number, address.get("targetRef") or {})

    def _object(self, prefix: str, namespace: str, name: str) -> Tree | None:
        store = self._stores[prefix]
        obj = store.cache.get(store.key(namespace, name))
        return None if obj is None else obj.tree()


class Resolver:
    """Places of Services in one way, remembered until something about them changes."""

    def __init__(self, services: Services, way: Way) -> None:
        self.services = services
        self._way = way
        self._known: dict[tuple[str, str], dict[int, list[Place]]] = {}
        services.listen(self._forget)

    def _forget(self, namespace: str, name: str) -> None:
        self._known.pop((namespace, name), None)

    def places(self, namespace: str, name: str, port: int) -> list[Place]:
        """Where to connect, the first first. Raises ServiceError."""
        known = self._known.get((namespace, name))
        found = known.get(port) if known is not None else None
        if found is None:
            self.services.open()
            found = self._resolve(namespace, name, port)
            self._known.setdefault((namespace, name), {})[port] = found
        return found if len(found) < 2 else random.sample(found, min(len(found), _TOLD))

    def _resolve(self, namespace: str, name: str, port: int) -> list[Place]:
        own_port = self.services.own_port
        if own_port is not None and (namespace, name, port) == ("default", "kubernetes", 443):
            return [("127.0.0.1", own_port())]
        service = self.services.service(namespace, name)
        if service is None:
            raise ServiceError(f"service {go_quote(name)} not found")
        spec: Tree = service.get("spec") or {}
        kind = spec.get("type") or ""
        if kind == "ExternalName":
            return [(spec.get("externalName") or "", port)]
        if kind not in _ROUTED:
            raise ServiceError(f"unsupported service type {go_quote(kind)}")
        named = next((p.get("name") or "" for p in spec.get("ports") or () if p.get("port") == port), None)
        if named is None:
            raise ServiceError(f"no service port {port} found for service {go_quote(name)}")
        if self._way is not Way.CLUSTER:
            found = [(endpoint.host, endpoint.port) for endpoint in self.services.ready(namespace, name, named)]
            if found:
                return found
        address = spec.get("clusterIP") or ""
        if self._way is Way.ENDPOINTS or address in ("", "None"):
            raise ServiceError(f"no endpoints available for service {go_quote(name)}")
        return [(address, port)]


def is_ready(endpoint: Tree) -> bool:
    """Whether an endpoint takes requests; one that does not say does."""
    return (endpoint.get("conditions") or {}).get("ready") is not False

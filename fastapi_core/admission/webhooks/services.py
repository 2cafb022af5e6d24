"""Where a service is reached: at one of its ready endpoints, as its cluster address would lead to one.

This server may run where cluster addresses are not routed, so they are only used for services whose endpoints it does
not know.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from fastapi_core.admission.objects import Objects, decoded
from fastapi_core.errors import go_quote
from fastapi_core.registry.definition import Tree

_SERVICE_NAME = "kubernetes.io/service-name"
_ROUTED = ("", "ClusterIP", "NodePort", "LoadBalancer")


class ServiceError(Exception):
    """A service that leads nowhere; the text is the reference's."""


class Services:
    """Services, their endpoint slices and their endpoints."""

    def __init__(self, services: Objects, slices: Objects, endpoints: Objects) -> None:
        self._services = services
        self._slices = slices
        self._endpoints = endpoints

    def resolve(self, namespace: str, name: str, port: int) -> tuple[str, int]:
        """(host, port) to connect to. Raises ServiceError."""
        service = self._services.get(namespace, name)
        if service is None:
            raise ServiceError(f"service {go_quote(name)} not found")
        spec: Tree = service.get("spec") or {}
        kind = spec.get("type") or ""
        if kind == "ExternalName":
            return spec.get("externalName") or "", port
        if kind not in _ROUTED:
            raise ServiceError(f"unsupported service type {go_quote(kind)}")
        ports = [p for p in spec.get("ports") or () if p.get("port") == port]
        if not ports:
            raise ServiceError(f"no service port {port} found for service {go_quote(name)}")
        wanted = ports[0].get("name") or ""
        places = [*self._in_slices(namespace, name, wanted)] or [*self._in_endpoints(namespace, name, wanted)]
        if places:
            return random.choice(places)
        address = spec.get("clusterIP") or ""
        if address in ("", "None"):
            raise ServiceError(f"no endpoints available for service {go_quote(name)}")
        return address, port

    def _in_slices(self, namespace: str, name: str, port: str) -> Iterator[tuple[str, int]]:
        for obj in self._slices.list(namespace):
            if obj.labels().get(_SERVICE_NAME) != name:
                continue
            tree = decoded(obj)
            numbers = [p["port"] for p in tree.get("ports") or () if (p.get("name") or "") == port and p.get("port")]
            for endpoint in tree.get("endpoints") or ():
                if (endpoint.get("conditions") or {}).get("ready") is not False:
                    for address in endpoint.get("addresses") or ():
                        yield from ((address, number) for number in numbers)

    def _in_endpoints(self, namespace: str, name: str, port: str) -> Iterator[tuple[str, int]]:
        tree = self._endpoints.get(namespace, name) or {}
        for subset in tree.get("subsets") or ():
            numbers = [p["port"] for p in subset.get("ports") or () if (p.get("name") or "") == port]
            for address in subset.get("addresses") or ():
                yield from ((address["ip"], number) for number in numbers)

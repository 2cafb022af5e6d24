"""Documents of the whole server: what it serves itself, with what backends publish put in its place.

Both are made anew on the first request after a change, from parts that are at hand; nothing is asked for then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from hashlib import sha512
from typing import TYPE_CHECKING, Any

import orjson

from fastapi_core.aggregation import swagger
from fastapi_core.aggregation.registration import OWN_GROUP
from fastapi_core.discovery import priorities
from fastapi_core.discovery.documents import Document as DiscoveryDocument
from fastapi_core.discovery.live import LiveDocuments
from fastapi_core.errors import APIError
from fastapi_core.http.client import UpstreamError
from fastapi_core.openapi import protobuf_v2
from fastapi_core.openapi.documents import Document, OpenAPIDocuments
from fastapi_core.registry.services import ServiceError

if TYPE_CHECKING:
    from fastapi_core.aggregation.directory import APIService, Directory
    from fastapi_core.aggregation.published import Published

Tree = dict[str, Any]
Services = tuple["APIService", ...]


_LIST = b'{"kind":"APIGroupList","apiVersion":"v1","groups":['
_NESTED = b'{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":['
_END = b"]}\n"


class Discovery:
    """`/apis` and `/apis/GROUP` of one moment (`discovery.endpoints.Shown`)."""

    def __init__(
        self, documents: LiveDocuments, directory: Directory, entries: Mapping[str, Tree], before: Discovery | None
    ) -> None:
        self._documents = documents
        self._services = directory.groups()
        # What a group adds is made again when something about the group has changed.
        self._listed: dict[str, tuple[Services, bytes]] = {} if before is None else before._listed
        self._joined: dict[str, tuple[tuple[object, ...], bytes]] = {} if before is None else before._joined
        self.group_list = DiscoveryDocument(self._group_list())
        self.aggregated_groups = DiscoveryDocument(self._aggregated(entries))
        self._groups: dict[str, DiscoveryDocument] = {}

    def group(self, name: str) -> DiscoveryDocument | None:
        """The document of a group: of its registered versions, else of what is served."""
        services = self._services.get(name)
        if not services or name == OWN_GROUP:
            return self._documents.group(name)
        found = self._groups.get(name)
        if found is None:
            tree = {"kind": "APIGroup", "apiVersion": "v1", **_group(name, services)}
            found = self._groups[name] = DiscoveryDocument(tree)
        return found

    def _group_list(self) -> bytes:
        own = self._documents.group(OWN_GROUP)
        parts = []
        if own is not None:
            parts.append(orjson.dumps({k: v for k, v in own.tree.items() if k not in ("kind", "apiVersion")}))
        known: dict[str, tuple[Services, bytes]] = {}
        for name, services in self._services.items():
            if name in ("", OWN_GROUP):
                continue
            found = self._listed.get(name)
            if found is None or found[0] is not services:
                found = services, orjson.dumps(_group(name, services))
            known[name] = found
            parts.append(found[1])
        self._listed = known
        return _LIST + b",".join(parts) + _END

    def _aggregated(self, entries: Mapping[str, Tree]) -> bytes:
        local = self._documents.parts()
        ranked: list[tuple[int, str, bytes]] = []
        known: dict[str, tuple[tuple[object, ...], bytes]] = {}
        for group in {**local, **self._services}:
            services = self._services.get(group, ())
            part = local.get(group, b"")
            if _remote(services):
                made_of = (services, part, *[entries.get(service.name) for service in services])
                found = self._joined.get(group)
                if found is None or found[0] != made_of:
                    found = made_of, _joined(group, part, services, entries)
                known[group] = found
                part = found[1]
            if part and group:
                ranked.append((-_rank(group, services), group, part))
        ranked.sort()
        self._joined = known
        return _NESTED + b",".join([part for _, _, part in ranked]) + _END


def _joined(group: str, local: bytes, services: tuple[APIService, ...], entries: Mapping[str, Tree]) -> bytes:
    """What a group adds whose versions are not all served here."""
    versions = {entry["version"]: entry for entry in orjson.loads(local)["versions"]} if local else {}
    for service in services:
        if service.backing is not None:
            stale = {"version": service.version, "freshness": "Stale"}
            versions[service.version] = entries.get(service.name, stale)
    return orjson.dumps({"metadata": {"name": group}, "versions": _in_order(group, versions, services)})


def _group(name: str, services: tuple[APIService, ...]) -> Tree:
    versions = [{"groupVersion": f"{name}/{service.version}", "version": service.version} for service in services]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _remote(services: Services) -> bool:
    """Whether another server answers for one of the versions."""
    for service in services:  # noqa: SIM110 - of thousands of groups, with one version each
        if service.backing is not None:
            return True
    return False


def _rank(group: str, services: tuple[APIService, ...]) -> int:
    if services and group != OWN_GROUP:
        return max([service.group_priority for service in services])
    return priorities.BUILTIN.get(group, priorities.DEFAULT).group


def _in_order(group: str, versions: Mapping[str, Tree], services: tuple[APIService, ...]) -> list[Tree]:
    known = priorities.BUILTIN.get(group, priorities.CUSTOM)
    asked = {service.version: service.version_priority for service in services}

    def key(version: str) -> tuple[int, priorities.VersionKey]:
        number = asked.get(version, known.versions.get(version, known.other))
        return -number, priorities.version_key(version)

    return [versions[version] for version in sorted(versions, key=key)]


class DiscoveryView:
    """The newest `Discovery`; made again when something it rests on has changed."""

    def __init__(self, documents: LiveDocuments, directory: Directory, published: Published) -> None:
        self._documents = documents
        self._directory = directory
        self._published = published
        self._made: tuple[object, int, int] | None = None
        self._view: Discovery | None = None

    def __call__(self, documents: object) -> Discovery:
        """`documents` are those this was made for."""
        live = self._documents
        state = (live.generation, self._directory.generation, self._published.generation)
        if self._view is None or self._made != state:
            self._view = Discovery(live, self._directory, self._published.entries, self._view)
            self._made = state
        return self._view


class OpenAPIView:
    """The newest OpenAPI documents, local and remote."""

    def __init__(self, directory: Directory, published: Published) -> None:
        self._directory = directory
        self._published = published
        self._made: tuple[object, int, int] | None = None
        self._view: OpenAPIDocuments | None = None

    def __call__(self, documents: OpenAPIDocuments) -> OpenAPIDocuments:
        state = (documents, self._directory.generation, self._published.openapi_generation)
        if self._view is None or self._made != state:
            self._view = self._merged(documents)
            self._made = state
        return self._view

    def _merged(self, local: OpenAPIDocuments) -> OpenAPIDocuments:
        remote: dict[str, Document] = {}
        parts: list[tuple[swagger.Swagger, str]] = []
        for service in self._directory.services.values():
            source = self._published.source(service)
            if source is None or not service.group:
                continue
            name = f"apis/{service.group}/{service.version}"
            url = source.v3.get(name)
            if url is not None:
                remote[name] = self._passed_on(service, name, url)
            elif source.v2 is not None:
                remote[name] = _converted(source.v2, name, service.path)
            if source.v2 is not None:
                parts.append((source.v2, service.path))
        if not remote and not parts:
            return local
        return MergedOpenAPI(local, remote, parts, self._view)

    def _passed_on(self, service: APIService, name: str, url: str) -> Document:
        given = url.rpartition("?hash=")[2] if "?hash=" in url else ""
        digest = sha512(f"{service.uid} {url} {given}".encode()).hexdigest().upper()
        holder: dict[str, bytes] = {}

        async def prepare() -> None:
            try:
                holder["body"] = await self._published.document(service, url)
            except (UpstreamError, TimeoutError, ServiceError, ValueError) as error:
                text = f"the OpenAPI document of {service.name} cannot be had: {error}"
                raise APIError("ServiceUnavailable", text) from None

        return Document(name, digest, lambda: orjson.loads(holder["body"]), prepare=prepare)


def _converted(found: swagger.Swagger, name: str, path: str) -> Document:
    def make() -> Tree:
        return swagger.to_v3(swagger.own_part(found.tree, [path]))

    return Document(name, sha512(f"{name} {found.hash}".encode()).hexdigest().upper(), make)


class MergedOpenAPI(OpenAPIDocuments):
    """Documents of this server and of backends."""

    def __init__(
        self,
        local: OpenAPIDocuments,
        remote: Mapping[str, Document],
        parts: list[tuple[swagger.Swagger, str]],
        previous: OpenAPIDocuments | None,
    ) -> None:
        self.modified = int(time.time())
        self.documents = {**local.documents, **remote}
        digests = [f"{path} {found.hash}" for found, path in parts]
        v2_hash = sha512("\n".join([local.v2.hash, *digests]).encode()).hexdigest().upper()
        self.v2 = Document("v2", v2_hash, _whole(local, parts), protobuf_v2.encode) if parts else local.v2
        if previous is not None:
            self._take_over(previous)
        self._list()


def _whole(local: OpenAPIDocuments, parts: list[tuple[swagger.Swagger, str]]) -> Callable[[], Tree]:
    def make() -> Tree:
        tree: Tree = orjson.loads(local.v2.body())
        for found, path in parts:
            swagger.merge(tree, swagger.own_part(found.tree, [path]))
        for member in ("paths", "definitions", "parameters"):
            tree[member] = dict(sorted(tree[member].items()))
        return tree

    return make

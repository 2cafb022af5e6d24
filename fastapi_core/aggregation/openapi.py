"""OpenAPI of the whole server: what it serves itself, with what backends publish put in its place.

Made anew on the first request after a change, from parts that are at hand; nothing is asked for then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from hashlib import sha512
from typing import TYPE_CHECKING, Any

import orjson

from fastapi_core.aggregation import swagger
from fastapi_core.errors import APIError
from fastapi_core.http.client import UpstreamError
from fastapi_core.openapi import protobuf_v2
from fastapi_core.openapi.documents import Document, OpenAPIDocuments
from fastapi_core.registry.services import ServiceError

if TYPE_CHECKING:
    from fastapi_core.aggregation.directory import APIService, Directory
    from fastapi_core.aggregation.published import Published

Tree = dict[str, Any]


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
        # The backend's own word for the state of its document, where it can stand in an address.
        digest = given if given.isalnum() else sha512(f"{service.uid} {url} {given}".encode()).hexdigest().upper()
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

"""Endpoints over the discovery documents.

`/api`, `/api/VERSION` and `/apis/GROUP/VERSION` of built-in groups are services: GET only, trailing slashes ignored.
`/apis`, `/apis/GROUP` and the versions of custom resources are plain paths that answer any method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from fastapi_core.discovery.accept import check_service, choose
from fastapi_core.discovery.documents import DiscoveryDocuments, Document
from fastapi_core.discovery.live import LiveDocuments
from fastapi_core.http.exchange import Header, Response
from fastapi_core.request.routing import ANY, Route
from fastapi_core.request.status import page_not_found, wants_pretty

if TYPE_CHECKING:
    from fastapi_core.request.context import Endpoint, RequestContext

AGGREGATOR = "apiregistration.k8s.io"
"""The one group whose own document is a service: it is the aggregator's."""

DumpYAML = Callable[[dict[str, Any]], bytes]
_AGGREGATED_TYPE = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Shown(Protocol):
    """What stands in the lists of groups, and in the documents of groups."""

    @property
    def group_list(self) -> Document: ...
    @property
    def aggregated_groups(self) -> Document: ...
    def group(self, name: str) -> Document | None: ...


class DiscoveryEndpoints:
    """Serves `documents`, which may be replaced at any time by newer ones.

    `dump_yaml` renders a tree as YAML (`codec.yaml.dump`).
    """

    def __init__(self, documents: DiscoveryDocuments | LiveDocuments, dump_yaml: DumpYAML) -> None:
        self.documents = documents
        self.shown: Callable[[DiscoveryDocuments | LiveDocuments], Shown] = lambda documents: documents
        """What is told of the documents: they, or they and those of others."""
        self._dump_yaml = dump_yaml

    def routes(self) -> list[Route]:
        """Routes of the present documents, to be made anew when groups or versions come or go."""
        routes: list[Route] = [("/apis", {ANY: self.group_list}), ("/apis/", {ANY: self.group_list})]
        for group, versions in self.documents.versions.items():
            root = f"/apis/{group}" if group else "/api"
            if group == AGGREGATOR:
                routes.append((root + "{/}", {"GET": self.group(group, service=True)}))
            elif group:
                routes += [(root, {ANY: self.group(group)}), (root + "/", {ANY: self.group(group)})]
            else:
                routes.append(("/api{/}", {"GET": self.core}))
            for version in versions:
                custom = (group, version) in self.documents.custom
                endpoint = self._resource_list(group, version, service=not custom)
                routes.append((f"{root}/{version}{{/}}", {ANY if custom else "GET": endpoint}))
        return routes

    def group_routes(self, group: str, versions: Iterable[str], *, whole: bool = True) -> list[Route]:
        """Routes of a group of custom resources; `whole` False: the group's own document is routed elsewhere."""
        root = f"/apis/{group}"
        routes: list[Route] = [(root + "{/}", {ANY: self.group(group)})] if whole else []
        for version in versions:
            routes.append((f"{root}/{version}{{/}}", {ANY: self._resource_list(group, version, service=False)}))
        return routes

    def core(self, ctx: RequestContext) -> Response:
        """`/api`."""
        accept = _accept(ctx)
        check_service(accept)
        return self._answer(ctx, accept, self.documents.core, self.documents.aggregated_core)

    def group_list(self, ctx: RequestContext) -> Response:
        """`/apis`."""
        shown = self.shown(self.documents)
        return self._answer(ctx, _accept(ctx), shown.group_list, shown.aggregated_groups)

    def group(self, group: str, *, service: bool = False) -> Endpoint:
        """`/apis/GROUP`."""

        def endpoint(ctx: RequestContext) -> Response:
            document = self.shown(self.documents).group(group)
            if service:
                check_service(_accept(ctx))
            return page_not_found() if document is None else self._answer(ctx, _accept(ctx), document)

        return endpoint

    def _resource_list(self, group: str, version: str, *, service: bool) -> Endpoint:
        def endpoint(ctx: RequestContext) -> Response:
            document = self.documents.resource_list(group, version)
            if document is None:
                return page_not_found()
            accept = _accept(ctx)
            if service:
                check_service(accept)
            return self._answer(ctx, accept, document)

        return endpoint

    def _answer(self, ctx: RequestContext, accept: str, plain: Document, nested: Document | None = None) -> Response:
        media = choose(accept, nested=nested is not None)
        document = nested if media.as_kind and nested is not None else plain
        content_type = media.content_type
        headers: list[Header] = []
        if media.as_kind:
            content_type += _AGGREGATED_TYPE
            etag = document.etag.encode()
            headers = [(b"Etag", etag), (b"Vary", b"Accept"), (b"Cache-Control", b"public")]
            if ctx.request.header(b"if-none-match") == etag:
                return Response(304, headers)
        headers.append((b"Content-Type", content_type.encode()))
        if media.format == "yaml":
            return Response(200, headers, self._dump_yaml(document.tree), compress=True)
        if media.format == "protobuf":
            return Response(200, headers, document.protobuf, compress=True)
        body = document.pretty if media.pretty or wants_pretty(ctx.request) else document.json
        return Response(200, headers, body, compress=True)


def _accept(ctx: RequestContext) -> str:
    value = ctx.request.header(b"accept")
    return value.decode("latin-1") if value else ""

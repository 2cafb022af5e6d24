"""/openapi/v2, /openapi/v3 and /openapi/v3/<document>."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from fastapi_core.http.exchange import Header, Response
from fastapi_core.later import later
from fastapi_core.openapi.accept import choose

if TYPE_CHECKING:
    from fastapi_core.openapi import conditional
    from fastapi_core.openapi import documents as made_of
    from fastapi_core.openapi.documents import Document, OpenAPIDocuments
    from fastapi_core.request.context import RequestContext
    from fastapi_core.request.routing import Route
else:
    conditional = later("fastapi_core.openapi.conditional")
    made_of = later("fastapi_core.openapi.documents")

V3_PREFIX = "/openapi/v3/"

_JSON = "application/json"


def _offer(version: str) -> dict[str, str]:
    """Media types asked for -> media type answered, in order of preference; the one with `@` is an older spelling."""
    answered = f"application/com.github.proto-openapi.spec.{version}.v1.0+protobuf"
    return {
        _JSON: _JSON,
        answered: answered,
        f"application/com.github.proto-openapi.spec.{version}@v1.0+protobuf": answered,
    }


_V2 = _offer("v2")
_V3 = _offer("v3")
_YEAR = 365 * 24 * 3600


class OpenAPIEndpoints:
    """The endpoints over a set of documents that `swap` replaces, at once or with the next request.

    Building a document goes to a thread: the loop serves others meanwhile, and requests for the same document wait for
    the same build.
    """

    def __init__(self, documents: OpenAPIDocuments | Callable[[], OpenAPIDocuments]) -> None:
        self._documents = documents
        self._next: Callable[[OpenAPIDocuments], OpenAPIDocuments] | None = None
        self.shown: Callable[[OpenAPIDocuments], OpenAPIDocuments] = lambda documents: documents
        """What is served of the documents: they, or they and those of others."""
        self._builds: dict[tuple[Document, str], asyncio.Future[bytes]] = {}

    def swap(self, documents: OpenAPIDocuments) -> None:
        """Serve other documents from now on."""
        self._documents, self._next = documents, None

    def outdate(self, make: Callable[[OpenAPIDocuments], OpenAPIDocuments]) -> None:
        """Serve what `make` makes of the present documents, from the next request on: changes in a row cost once."""
        self._next = make

    @property
    def documents(self) -> OpenAPIDocuments:
        if callable(self._documents):
            self._documents = self._documents()
        if self._next is not None:
            self.swap(self._next(self._documents))
        return self._documents

    def routes(self) -> list[Route]:
        """Every path of them."""
        from fastapi_core.request.routing import ANY

        return [
            ("/openapi/v2", {ANY: self.v2}),
            ("/openapi/v3", {ANY: self.v3_index}),
            ("/openapi/v3/{document...}", {ANY: self.v3}),
        ]

    def v3_index(self, ctx: RequestContext) -> Response:
        """GET /openapi/v3."""
        documents = self.shown(self.documents)
        return _serve(ctx, documents.index, documents.index_hash, documents.modified, b"text/plain; charset=utf-8", [])

    def v3(self, ctx: RequestContext) -> Response | Awaitable[Response]:
        """GET /openapi/v3/<document>[?hash=...]."""
        documents = self.shown(self.documents)
        document = documents.documents.get(ctx.info.path.removeprefix(V3_PREFIX))
        if document is None:
            return Response(404, [])
        headers: list[Header] = [(b"Vary", b"Accept")]
        kind = _choose(ctx, _V3)
        if not kind:
            return Response(200 if kind is None else 406, headers)
        asked = ctx.info.first("hash")
        if asked and asked != document.hash:
            location = f"{V3_PREFIX}{document.name}?hash={document.hash}".encode()
            headers += [(b"Location", location), (b"Etag", f'"{document.hash}"'.encode())]
            if kind == _JSON:
                headers.append((b"Content-Type", b"application/json"))
            return Response(301, headers)
        if asked:
            headers += [
                (b"Cache-Control", b"public, immutable"),
                (b"Expires", conditional.http_date(time.time() + _YEAR)),
            ]

        def answer(body: bytes) -> Response:
            return _serve(ctx, body, document.hash, documents.modified, kind.encode(), headers)

        return self._with_body(ctx, document, _form(kind), documents.modified, answer)

    def v2(self, ctx: RequestContext) -> Response | Awaitable[Response]:
        """GET /openapi/v2."""
        documents = self.shown(self.documents)
        document = documents.v2
        headers: list[Header] = [(b"Vary", b"Accept-Encoding, Accept")]
        kind = _choose(ctx, _V2)
        if not kind:
            return Response(406, headers)

        def answer(body: bytes) -> Response:
            return _serve(ctx, body, document.hash, documents.modified, kind.encode(), headers)

        return self._with_body(ctx, document, _form(kind), documents.modified, answer)

    def _with_body(
        self, ctx: RequestContext, document: Document, form: str, modified: int, answer: Callable[[bytes], Response]
    ) -> Response | Awaitable[Response]:
        """Answer with the body of a document; at once when it is there or not needed."""
        if document.ready(form):
            return answer(document.body(form))
        if conditional.evaluate(ctx.request, f'"{document.hash}"', modified) != 200:
            return answer(b"")
        return self._build(document, form, answer)

    async def _build(self, document: Document, form: str, answer: Callable[[bytes], Response]) -> Response:
        key = (document, form)
        build = self._builds.get(key)
        if build is None:
            build = asyncio.ensure_future(_made(document, form))
            self._builds[key] = build
            build.add_done_callback(lambda _: self._builds.pop(key, None))
        return answer(await asyncio.shield(build))


async def _made(document: Document, form: str) -> bytes:
    if document.prepare is not None:
        await document.prepare()
    return await asyncio.get_running_loop().run_in_executor(None, document.body, form)


def _choose(ctx: RequestContext, offer: dict[str, str]) -> str | None:
    accept = ctx.request.header(b"accept")
    chosen = choose("" if accept is None else accept.decode("latin-1"), tuple(offer))
    return offer[chosen] if chosen else chosen


def _form(kind: str) -> str:
    return made_of.JSON if kind == _JSON else made_of.PROTOBUF


def _serve(
    ctx: RequestContext, body: bytes, digest: str, modified: int, kind: bytes, headers: list[Header]
) -> Response:
    tag = f'"{digest}"'
    status = conditional.evaluate(ctx.request, tag, modified)
    headers = [*headers, (b"Etag", tag.encode()), (b"Last-Modified", conditional.http_date(modified))]
    if status != 304:
        headers.append((b"Content-Type", kind))
    if status != 200:
        return Response(status, headers)
    return Response(200, headers, body, compress=True)

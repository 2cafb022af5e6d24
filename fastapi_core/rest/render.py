"""Objects and lists as the client wants them: JSON, pretty JSON, YAML, protobuf, Table, PartialObjectMetadata(List).

The fast way is bytes only: the object's own, or a concatenation of many. Everything else decodes and encodes again.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import orjson

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject, list_document
from fastapi_core.codec import json as json_codec
from fastapi_core.codec import protobuf
from fastapi_core.codec.negotiate import (
    METADATA_TRANSFORMS,
    RESOURCE_TRANSFORMS,
    RESOURCE_TYPES,
    MediaType,
    Transforms,
    acceptable,
)
from fastapi_core.http.exchange import Answer, Header, Response
from fastapi_core.registry.printers import kind_printer, partial_metadata
from fastapi_core.registry.store import Page
from fastapi_core.request.aside import LARGE, Deferred
from fastapi_core.request.status import wants_pretty
from fastapi_core.rest import wire

if TYPE_CHECKING:
    from fastapi_core.request.context import Endpoint, RequestContext
    from fastapi_core.rest.scope import Scope

JSON_TYPE: Header = (b"content-type", b"application/json")
YAML_TYPE: Header = (b"content-type", b"application/yaml")
PROTOBUF_TYPE: Header = (b"content-type", b"application/vnd.kubernetes.protobuf")
META_VERSIONS = ("v1", "v1beta1")
PLAIN = MediaType()


def media_type(
    ctx: RequestContext,
    scope: Scope | None = None,
    produced: tuple[str, ...] = RESOURCE_TYPES,
    transforms: Transforms = RESOURCE_TRANSFORMS,
) -> MediaType:
    """The representation asked for; 406 when none of the accepted ones is to be had. `produced`: what the path is
    declared to produce, where it is a built-in resource's."""
    accept = ctx.request.header(b"accept")
    if accept is None:
        return PLAIN
    if scope is not None and scope.definition.custom:
        return acceptable(accept.decode("latin-1"), custom=True)
    return acceptable(accept.decode("latin-1"), transforms, produced=produced)


def negotiated(
    endpoint: Endpoint,
    *,
    scope: Scope | None = None,
    tables: bool = False,
    produced: tuple[str, ...] = RESOURCE_TYPES,
) -> Endpoint:
    """The endpoint for those who accept its answers; `tables`: these have columns."""
    transforms = RESOURCE_TRANSFORMS if tables else METADATA_TRANSFORMS

    def checked(ctx: RequestContext) -> Answer | Awaitable[Answer]:
        media_type(ctx, scope, produced, transforms)
        return endpoint(ctx)

    return checked


def binary(body: bytes, *, status: int = 200) -> Response:
    """A protobuf document."""
    return Response(status, [PROTOBUF_TYPE], body, compress=True)


def document(ctx: RequestContext, media: MediaType, body: bytes, *, status: int = 200) -> Response:
    """A JSON document in the format asked for."""
    if media.format == "protobuf":
        return binary(protobuf.answer(orjson.loads(body)), status=status)
    if media.format == "yaml":
        from fastapi_core.codec import yaml as yaml_codec

        return _made(status, YAML_TYPE, body, yaml_codec.dump)
    if media.pretty or wants_pretty(ctx.request):
        return _made(status, JSON_TYPE, body, json_codec.encode_pretty)
    return Response(status, [JSON_TYPE], body, compress=True)


def _made(status: int, content_type: Header, body: bytes, dump: Callable[[Any], bytes]) -> Response:
    """A document printed anew; large ones beside the loop."""
    if len(body) < LARGE:
        return Response(status, [content_type], dump(orjson.loads(body)), compress=True)
    return Deferred(status, [content_type], lambda: dump(orjson.loads(body)))


def check_form(media: MediaType, kind: str) -> None:
    """406 for the metadata of a list of what is one object, or the other way round: `kind` is what there is. The
    reference finds this out when it has done what was asked."""
    if media.as_kind in ("Table", "PartialObjectMetadataList" if kind.endswith("List") else "PartialObjectMetadata"):
        return
    article = "is a list" if kind.endswith("List") else "is not a list"
    raise errors.APIError(
        "NotAcceptable", f"you requested {media.as_kind}, but the requested object {article} ({kind})"
    )


def one(
    ctx: RequestContext, scope: Scope, obj: CachedObject, *, status: int = 200, media: MediaType | None = None
) -> Response:
    """A single object; `media` is what `media_type` has found, where it has been asked."""
    if media is None:
        media = media_type(ctx, scope)
    if media.as_kind:
        check_form(media, scope.definition.kind)
    if media.format == "protobuf":
        return binary(wire.partial(obj, media.as_version) if media.as_kind else wire.one(scope, obj), status=status)
    if not media.as_kind:
        view = scope.view(obj)
        # What was never committed (a dry run) has no resource version to show.
        body = view.head + view.body if obj.revision else view.stored()
        return document(ctx, media, body + b"\n", status=status)
    return document(ctx, media, transformed(ctx, scope, media, obj), status=status)


def transformed(
    ctx: RequestContext, scope: Scope, media: MediaType, obj: CachedObject, *, columns: bool = True
) -> bytes:
    """One object as a Table of one row or as PartialObjectMetadata; `columns` as in watches, where only the first has them."""
    if media.as_kind == "Table":
        metadata = b'{"resourceVersion":"%d"}' % obj.revision if obj.revision else b"{}"
        return table(ctx, scope, media, [obj], metadata, columns=columns)
    shown = scope.view(obj) if scope.definition.custom else obj
    return partial_metadata(shown, media.as_version) + b"\n"


def include_object(ctx: RequestContext) -> str:
    policy = ctx.info.first("includeObject")
    if policy not in ("", "None", "Metadata", "Object"):
        raise errors.bad_request(
            f"Unable to convert to Table as requested: includeObject: Invalid value: {errors.go_quote(policy)}: "
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    return policy or "Metadata"


def table(
    ctx: RequestContext,
    scope: Scope,
    media: MediaType,
    objects: list[CachedObject],
    metadata: bytes,
    *,
    columns: bool = True,
) -> bytes:
    """A Table of stored objects: cells are read in the storage version, whole objects shown in the one asked for."""
    include = include_object(ctx)
    if scope.definition.custom:
        objects = scope.views(objects)
    elif scope.definition.kind == "FlowSchema":
        # In the order in which they are asked, which is what people want to see.
        objects = sorted(objects, key=_precedence)
    whole = scope.views(objects) if include == "Object" and not scope.definition.custom else None
    rows = scope.printer.render_rows(objects, time.time(), include, media.as_version, whole=whole)
    return scope.printer.table(metadata, rows, columns=columns, version=media.as_version) + b"\n"


def _precedence(obj: CachedObject) -> tuple[int, str]:
    return obj.tree()["spec"].get("matchingPrecedence", 0), obj.name


def page(ctx: RequestContext, scope: Scope, media: MediaType, listing: Page, *, selected: bool) -> Response:
    """A list of objects with its metadata. `selected`: a selector was given, so the remaining count is left out."""
    objects = listing.objects
    if media.as_kind:
        check_form(media, scope.definition.list_kind)
    if scope.definition.custom and media.as_kind != "Table":
        objects = scope.views(objects)
        if not media.as_kind and media.format != "protobuf":
            return document(ctx, media, custom_page(scope, listing, objects, selected=selected))
    if media.format == "protobuf":
        return binary(_binary_page(scope, media, listing, selected=selected))
    metadata = _list_metadata(listing, selected=selected)
    if not media.as_kind:
        head = scope.list_head + metadata + b'},"items":['
        return document(ctx, media, list_document(head, scope.views(objects), b"]}\n", whole=scope.definition.custom))
    if media.as_kind == "Table":
        return document(ctx, media, table(ctx, scope, media, objects, b"{%b}" % metadata))
    opening = b'{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/%b","metadata":{%b},"items":' % (
        media.as_version.encode(),
        metadata,
    )
    # One join: such a list is long, and every copy of it costs as much as making it.
    parts = [opening]
    for obj in objects:
        parts += (b",", partial_metadata(obj, media.as_version))
    if objects:
        parts[1] = b"["
        parts.append(b"]}\n")
    else:
        parts.append(b"null}\n")
    return document(ctx, media, b"".join(parts))


def _list_metadata(listing: Page, *, selected: bool) -> bytes:
    """Members of a list's metadata. What is made anew for each request has no version, and says none."""
    parts = []
    if listing.revision:
        parts.append(b'"resourceVersion":"%d"' % listing.revision)
    if listing.token:
        parts.append(b'"continue":"%b"' % listing.token.encode())
        if not selected and listing.remaining > 0:
            parts.append(b'"remainingItemCount":%d' % listing.remaining)
    return b",".join(parts)


def custom_page(scope: Scope, listing: Page, objects: list[CachedObject], *, selected: bool) -> bytes:
    """A list of custom resources: members in alphabetical order, as in their objects."""
    definition = scope.definition
    metadata = b'"continue":"' + listing.token.encode() + b'"'
    if listing.token and not selected and listing.remaining > 0:
        metadata += b',"remainingItemCount":%d' % listing.remaining
    if listing.revision:
        metadata += b',"resourceVersion":"%d"' % listing.revision
    tail = b'],"kind":"%b","metadata":{%b}}\n' % (definition.list_kind.encode(), metadata)
    head = b'{"apiVersion":"%b","items":[' % definition.group_version.encode()
    return list_document(head, objects, tail, whole=True)


def _binary_page(scope: Scope, media: MediaType, listing: Page, *, selected: bool) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": str(listing.revision)} if listing.revision else {}
    if listing.token:
        metadata["continue"] = listing.token
        if not selected and listing.remaining > 0:
            metadata["remainingItemCount"] = listing.remaining
    if media.as_kind:
        return wire.partial_page(metadata, listing.objects, media.as_version)
    return wire.page(scope, metadata, listing.objects)


def tree(
    ctx: RequestContext,
    content: Any,
    *,
    scope: Scope | None = None,
    status: int = 200,
    tables: bool = False,
    columns: str = "",
) -> Response:
    """A document that is no stored object (Status, reviews, scale); `tables`: it may be shown as a Table, with the
    `columns` of its kind or of this one."""
    media = media_type(ctx, scope, transforms=RESOURCE_TRANSFORMS if tables else METADATA_TRANSFORMS)
    if media.as_kind and content["kind"] != "Status":
        check_form(media, content["kind"])
        if media.as_kind == "Table":
            return document(ctx, media, _tree_table(ctx, content, media, columns) + b"\n", status=status)
        content = _partial(content, media)
    if media.format == "protobuf":
        return binary(protobuf.answer(content), status=status)
    return document(ctx, media, json_codec.encode(content) + b"\n", status=status)


def _partial(content: dict[str, Any], media: MediaType) -> dict[str, Any]:
    version = f"meta.k8s.io/{media.as_version}"
    return {"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": content.get("metadata") or {}}


def _tree_table(ctx: RequestContext, content: dict[str, Any], media: MediaType, columns: str) -> bytes:
    """A document that is no stored object as a Table of one row."""
    include = include_object(ctx)
    metadata = content.get("metadata") or {}
    shown: dict[str, Any] | None = content if include == "Object" else None
    if include == "Metadata":
        shown = _partial(content, media)
    printer = kind_printer(columns or content["kind"])
    rows = printer.render_tree(content, time.time(), json_codec.encode(shown))
    listing = {"resourceVersion": metadata["resourceVersion"]} if "resourceVersion" in metadata else {}
    return printer.table(json_codec.encode(listing), rows, version=media.as_version)

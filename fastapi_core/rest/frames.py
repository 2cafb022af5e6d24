"""The events of one watch as bytes: JSON or protobuf, whole objects, their metadata or Tables.

A frame is made once per representation, kept with the change, and the same bytes go to every watcher.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fastapi_core._ext.objects import CachedObject, watch_frame
from fastapi_core.codec import json as json_codec
from fastapi_core.http.exchange import Header
from fastapi_core.later import later
from fastapi_core.meta.names import TEMPLATE_GENERATION
from fastapi_core.request.context import RequestContext

if TYPE_CHECKING:
    from fastapi_core.codec import protobuf
    from fastapi_core.codec.negotiate import MediaType
    from fastapi_core.registry import printers
    from fastapi_core.rest import render, wire
    from fastapi_core.rest.scope import Scope
    from fastapi_core.schema import normalize
else:
    printers = later("fastapi_core.registry.printers")
    protobuf = later("fastapi_core.codec.protobuf")
    render = later("fastapi_core.rest.render")
    wire = later("fastapi_core.rest.wire")
    normalize = later("fastapi_core.schema.normalize")

Framed = tuple[str, CachedObject, dict[Any, Any]]
"""Type of an event, its object, and where frames of it are remembered."""
BATCH = 32 << 10
"""Bytes of events that are made at once."""
JSON_STREAM: Header = (b"content-type", b"application/json")
PROTOBUF_STREAM: Header = (b"content-type", b"application/vnd.kubernetes.protobuf;stream=watch")


def _chunked(frame: bytes) -> bytes:
    """A frame with the chunk framing of HTTP around it."""
    return b"%x\r\n%b\r\n" % (len(frame), frame)


class Frames:
    """The frames of one watch; it remembers whether the columns of a Table have been sent."""

    def __init__(self, ctx: RequestContext, scope: Scope, media: MediaType) -> None:
        self._ctx = ctx
        self._scope = scope
        self._media = media
        self._binary = media.format == "protobuf"
        self._key = (scope, media.as_kind, media.as_version, media.format)
        self._table_started = False

    @property
    def content_type(self) -> Header:
        return PROTOBUF_STREAM if self._binary else JSON_STREAM

    def event(self, kind: str, obj: CachedObject, memo: dict[Any, Any]) -> bytes:
        """An event about a stored object."""
        if self._media.as_kind == "Table":
            columns, self._table_started = not self._table_started, True
            return self._table(kind, obj, columns)
        return self._remembered(kind, obj, memo)

    def batches(self, found: list[Framed]) -> Iterator[tuple[bytes, int]]:
        """The frames of many events, made as they are taken, with the number of events in each piece.

        Which of them has the columns of a Table is settled now.
        """
        table, columns = self._media.as_kind == "Table", not self._table_started
        self._table_started = self._table_started or bool(found)
        return self._made(found, table, columns)

    def error(self, status: dict[str, Any]) -> bytes:
        """An ERROR event."""
        return self._document("ERROR", status)

    def bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        """An empty object of the kind under the revision reached."""
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        if self._media.as_kind == "Table":
            return watch_frame("BOOKMARK", b"", self._bookmark_table(metadata))
        if self._media.as_kind:
            version = f"meta.k8s.io/{self._media.as_version}"
            return self._document("BOOKMARK", {"kind": wire.PARTIAL, "apiVersion": version, "metadata": metadata})
        return self._document("BOOKMARK", self._empty(metadata))

    def _remembered(self, kind: str, obj: CachedObject, memo: dict[Any, Any]) -> bytes:
        key = (self._key, kind)
        frame = memo.get(key)
        if frame is None:
            if self._binary:
                frame = _chunked(protobuf.watch_frame(kind, self._binary_body(obj)))
            elif self._media.as_kind:
                body = render.transformed(self._ctx, self._scope, self._media, obj).rstrip(b"\n")
                frame = watch_frame(kind, b"", body)
            else:
                view = self._scope.view(obj)
                frame = watch_frame(kind, view.head, view.body)
            memo[key] = frame
        return frame

    def _made(self, found: list[Framed], table: bool, columns: bool) -> Iterator[tuple[bytes, int]]:
        batch: list[bytes] = []
        size = 0
        for number, (kind, obj, memo) in enumerate(found, 1):
            frame = self._table(kind, obj, columns) if table else self._remembered(kind, obj, memo)
            columns = False
            batch.append(frame)
            size += len(frame)
            if size >= BATCH or number == len(found):
                yield b"".join(batch), len(batch)
                batch.clear()
                size = 0

    def _binary_body(self, obj: CachedObject) -> bytes:
        return wire.partial(obj, self._media.as_version) if self._media.as_kind else wire.one(self._scope, obj)

    def _document(self, kind: str, tree: dict[str, Any]) -> bytes:
        """An event about a document that is no stored object."""
        if self._binary:
            return _chunked(protobuf.watch_frame(kind, protobuf.answer(tree)))
        return watch_frame(kind, b"", json_codec.encode(tree))

    def _table(self, kind: str, obj: CachedObject, columns: bool) -> bytes:
        """A Table of one row; only the first of a watch carries the column definitions."""
        body = render.transformed(self._ctx, self._scope, self._media, obj, columns=columns)
        return watch_frame(kind, b"", body.rstrip(b"\n"))

    def _empty(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """The zero object of the kind. Replicas of apps show, and an annotation: inside the reference they are plain numbers."""
        definition = self._scope.definition
        tree: dict[str, Any] = {"kind": definition.kind, "apiVersion": definition.group_version, "metadata": metadata}
        if definition.custom:
            return tree
        if definition.kind == "DaemonSet":
            tree["metadata"] = {
                **metadata,
                "annotations": {**metadata.get("annotations", {}), TEMPLATE_GENERATION: "0"},
            }
        elif definition.group == "apps" and "scale" in definition.subresources:
            tree["spec"] = {"replicas": 0}
        return normalize.normalize(definition.type, tree).tree

    def _bookmark_table(self, metadata: dict[str, Any]) -> bytes:
        """A Table whose only row shows the empty object."""
        version = f"meta.k8s.io/{self._media.as_version}"
        partial = json_codec.encode({"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": metadata})
        printer = self._scope.printer
        columns, self._table_started = not self._table_started, True
        return printer.table(
            b'{"resourceVersion":"%b"}' % metadata["resourceVersion"].encode(),
            printer.render_tree(self._empty(metadata), time.time(), partial),
            columns=columns,
            version=self._media.as_version,
        )

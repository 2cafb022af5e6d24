"""Protobuf of cached objects: each is encoded once a version, lists and watches put the pieces together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import orjson

from fastapi_core._ext.objects import CachedObject
from fastapi_core.codec import protobuf
from fastapi_core.registry.printers import inner_metadata
from fastapi_core.schema.tables import type_of

if TYPE_CHECKING:
    from fastapi_core.rest.scope import Scope

PARTIAL = "PartialObjectMetadata"
_OBJECT_KEY = "protobuf"


def chunk(scope: Scope, obj: CachedObject) -> bytes:
    """The object in the scope's version as a list or an envelope holds it."""
    view = scope.view(obj)
    kept: bytes | None = view.memo.get(_OBJECT_KEY)
    if kept is None:
        kept = view.memo[_OBJECT_KEY] = protobuf.chunk(protobuf.encode(scope.definition.type, view.tree()))
    return kept


def one(scope: Scope, obj: CachedObject) -> bytes:
    """A document of one object."""
    definition = scope.definition
    start = protobuf.envelope_start(definition.group_version, definition.kind)
    return start + chunk(scope, obj) + protobuf.ENVELOPE_END


def page(scope: Scope, metadata: dict[str, Any], objects: Iterable[CachedObject]) -> bytes:
    """A list document."""
    definition = scope.definition
    items = [chunk(scope, obj) for obj in objects]
    return protobuf.list_document(definition.group_version, definition.list_kind, metadata, items)


def partial(obj: CachedObject, version: str) -> bytes:
    """A document of an object's metadata; `version` is that of meta.k8s.io."""
    return protobuf.envelope_start(f"meta.k8s.io/{version}", PARTIAL) + _partial_chunk(obj, 2) + protobuf.ENVELOPE_END


def partial_page(metadata: dict[str, Any], objects: Iterable[CachedObject], version: str) -> bytes:
    """A list of metadata. The older version numbers its two fields the other way round."""
    older = version == "v1beta1"
    items = [_partial_chunk(obj, 1 if older else 2) for obj in objects]
    return protobuf.list_document(f"meta.k8s.io/{version}", PARTIAL + "List", metadata, items, metadata_last=older)


def _partial_chunk(obj: CachedObject, number: int) -> bytes:
    key = (PARTIAL, number)
    kept: bytes | None = obj.memo.get(key)
    if kept is None:
        tree = {"metadata": inner_metadata(obj) or orjson.loads(obj.metadata())}
        message = protobuf.encode(type_of(f"meta/v1.{PARTIAL}"), tree)
        kept = obj.memo[key] = protobuf.chunk(message, number)
    return kept

"""PATCH with an apply configuration: server-side apply, which creates what does not exist."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, NamedTuple

from fastapi_core import errors
from fastapi_core.codec import json as json_codec
from fastapi_core.codec.negotiate import MediaType
from fastapi_core.http.exchange import Response
from fastapi_core.patch import managers
from fastapi_core.patch.apply import Applier, gvk, named, plain_failure, sync_last_applied
from fastapi_core.registry import lifecycle
from fastapi_core.registry.definition import Tree
from fastapi_core.request import aside
from fastapi_core.request.context import RequestContext
from fastapi_core.rest import render
from fastapi_core.rest.body import Expected, warn
from fastapi_core.rest.create import create_object, expected_of
from fastapi_core.rest.defaulting import apply_defaults
from fastapi_core.rest.options import WriteOptions, write_options
from fastapi_core.rest.scope import Scope
from fastapi_core.rest.update import check_identity, write
from fastapi_core.schema import normalize
from fastapi_core.schema.errors import TypeMismatch
from fastapi_core.storage.interface import StorageError

_EMPTY: tuple[Any, ...] = (None, {}, [])


class Configuration(NamedTuple):
    """A decoded apply body and the keys it gave twice."""

    tree: Tree
    complaints: list[str]


def read_configuration(ctx: RequestContext) -> Configuration:
    """The body, YAML 1.1 or JSON; 400 for anything but one object."""
    body = ctx.request.body
    try:
        parsed = aside.parse(ctx, "json" if body[:1] == b"{" else "yaml")
        if parsed.duplicates:
            parsed = aside.parse(ctx, "yaml")  # which knows the lines
    except json_codec.DecodeError as error:
        if body[:1] != b"{":
            raise errors.bad_request(f"error decoding YAML: {error}") from error
        parsed = _flow_mapping(ctx)
    tree: Any = parsed.tree if parsed.tree is not None else {}
    if not isinstance(tree, dict):
        text = f"json: cannot unmarshal {json_codec.summary(body)} into Go value of type map[string]interface {{}}"
        raise errors.bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {text}")
    return Configuration(tree, parsed.complaints)


def _flow_mapping(ctx: RequestContext) -> json_codec.Parsed:
    """A body that begins like JSON and is not, but may still be YAML."""
    try:
        return aside.parse(ctx, "yaml")
    except json_codec.DecodeError as error:
        raise errors.bad_request(f"error decoding YAML: {error}") from error


def check_kind(tree: Tree, expected: Expected) -> None:
    """400 unless the configuration says it is of the endpoint's kind and version."""
    if tree.get("metadata", tree) is None:
        del tree["metadata"]
    version, kind = tree.get("apiVersion"), tree.get("kind")
    if version == expected.group_version and kind == expected.kind:
        return
    group, _, name = (version if isinstance(version, str) else "").rpartition("/")
    shown = kind if isinstance(kind, str) else ""
    raise errors.bad_request(f"invalid object type: {group}/{name}, Kind={shown}")


def check_duplicates(ctx: RequestContext, config: Configuration, options: WriteOptions) -> None:
    """Keys given twice: refused or reported, as fieldValidation says."""
    if not config.complaints or options.field_validation == "Ignore":
        return
    text = "error converting YAML to JSON: " + "\n".join(config.complaints)
    if options.field_validation == "Strict":
        raise errors.bad_request(f"error strict decoding YAML: {text}")
    warn(ctx, text)


def apply(ctx: RequestContext, scope: Scope, media: MediaType, subresource: str) -> Awaitable[Response]:
    """Answer an apply request in the form asked for."""
    options = write_options(ctx.request.query, "PatchOptions", apply=True)
    config = read_configuration(ctx)
    check_kind(config.tree, expected_of(scope))
    return _apply(ctx, scope, media, config, options, subresource)


async def _apply(
    ctx: RequestContext,
    scope: Scope,
    media: MediaType,
    config: Configuration,
    options: WriteOptions,
    subresource: str,
) -> Response:
    """Create or change, whichever the object's existence asks for by the time of the commit."""
    name, namespace = ctx.info.name, ctx.info.namespace
    key = scope.store.key(namespace, name)

    def change(current: Tree) -> Tree:
        tree = merged(scope, current, config, options, subresource)
        check_duplicates(ctx, config, options)
        check_identity(scope, tree, name, namespace)
        return tree

    while True:
        if scope.store.cache.get(key) is None and not subresource:
            created = change({})
            if created["metadata"].get("uid"):
                raise _unknown_uid(scope, created)
            created["metadata"].pop("resourceVersion", None)
            try:
                obj = await create_object(ctx, scope, created, options, verb="patch", applied=True)
                return render.one(ctx, scope, obj, status=201, media=media)
            except errors.APIError as error:
                if error.reason != "AlreadyExists" or not isinstance(error.__cause__, StorageError):
                    raise
                await scope.store.settle(error.__cause__)
        else:
            try:
                obj = await write(ctx, scope, change, options, subresource, applied=True)
                return render.one(ctx, scope, obj, media=media)
            except errors.APIError as error:
                if error.reason != "NotFound" or subresource or scope.store.cache.get(key) is not None:
                    raise


def merged(scope: Scope, current: Tree, config: Configuration, options: WriteOptions, subresource: str) -> Tree:
    """The object after the apply, decoded and defaulted, with its entries of managedFields."""
    definition = scope.definition
    now = lifecycle.timestamp()
    applier = Applier(scope.tracker(subresource))
    result = applier.apply(current, config.tree, options.field_manager, now, force=bool(options.force))
    if result.tree is None:
        tree = {**current, "metadata": dict(current["metadata"])}
    elif definition.custom:
        metadata = result.tree.get("metadata") or {}
        tree = {**result.tree, "metadata": {name: value for name, value in metadata.items() if value not in _EMPTY}}
    else:
        try:
            tree = normalize.normalize(scope.type, result.tree, known=current).tree
        except TypeMismatch as error:
            text = (
                f"failed to convert new object ({named(config.tree)}) to proper version: unable to convert unstructured "
                f"object to {gvk(config.tree)}: {error}"
            )
            raise plain_failure(text) from error
        tree["metadata"] = dict(tree.get("metadata") or {})
    if result.tree is not None:
        apply_defaults(definition, tree, current)
    metadata = tree["metadata"]
    metadata.pop("managedFields", None)
    if result.managed:
        metadata["managedFields"] = managers.write(result.managed)
    sync_last_applied(tree, config.tree, options.field_manager)
    return tree


def _unknown_uid(scope: Scope, tree: Tree) -> errors.APIError:
    definition, metadata = scope.definition, tree["metadata"]
    text = f"uid mismatch: the provided object specified uid {metadata['uid']}, and no existing object was found"
    return errors.conflict(definition.plural, definition.group, metadata["name"], text)

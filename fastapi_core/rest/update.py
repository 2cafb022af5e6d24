"""PUT of one object, and the write path that PUT and PATCH share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.admission.chain import Attributes
from fastapi_core.codec.negotiate import MediaType
from fastapi_core.http.exchange import Response
from fastapi_core.patch.managers import same_but_time
from fastapi_core.registry import lifecycle
from fastapi_core.registry.definition import Tree
from fastapi_core.registry.metadata import dedup_owner_references, version_required
from fastapi_core.registry.store import CONFLICT_TEXT, retrying
from fastapi_core.request.aside import large_body, patiently
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.rest import render
from fastapi_core.rest.body import read_object
from fastapi_core.rest.commit import slimmed
from fastapi_core.rest.create import create_object, expected_of, manager_of, settle_namespace
from fastapi_core.rest.defaulting import apply_defaults
from fastapi_core.rest.options import WriteOptions, write_options
from fastapi_core.rest.scope import Scope
from fastapi_core.storage.interface import StorageError

Change = Callable[[Tree], Tree]
"""Makes the new tree (served version, defaulted) from a fresh copy of the current one."""


class Shown(NamedTuple):
    """What admission sees of an object in a subresource with a kind of its own."""

    show: Change
    """The subresource's object of a whole one."""
    take: Callable[[Tree, Tree], Tree]
    """(whole object, what mutating admission made of the subresource's) -> the whole one."""


def updater(scope: Scope, subresource: str = "") -> Endpoint:
    """PUT .../NAME (or .../NAME/status)."""
    expected = expected_of(scope)

    def update(ctx: RequestContext) -> Awaitable[Response]:
        media = render.media_type(ctx, scope)
        options = write_options(ctx.request.query, "UpdateOptions")
        tree = read_object(ctx, expected, options.field_validation)
        metadata = tree["metadata"] = dict(tree.get("metadata") or {})
        settle_namespace(scope, ctx.info.namespace, metadata)
        check_name(metadata, ctx.info.name)
        apply_defaults(scope.definition, tree)
        return _put(ctx, scope, media, tree, options, subresource)

    return update


def check_name(metadata: Tree, name: str) -> None:
    """An object is written under its own name."""
    given = metadata.get("name") or ""
    if not given:
        raise errors.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if given != name:
        raise errors.bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def check_identity(scope: Scope, tree: Tree, name: str, namespace: str) -> None:
    """Neither a patch nor the update of a subresource can move an object to another name or namespace."""
    metadata = tree.setdefault("metadata", {})
    check_name(metadata, name)
    if scope.definition.namespaced and (metadata.get("namespace") or "") != namespace:
        if metadata.get("namespace"):
            raise errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        metadata["namespace"] = namespace
    elif not scope.definition.namespaced:
        metadata.pop("namespace", None)


async def _put(
    ctx: RequestContext, scope: Scope, media: MediaType, tree: Tree, options: WriteOptions, subresource: str
) -> Response:
    info = ctx.info
    if scope.definition.create_on_update and await _absent(scope, info.namespace, info.name):
        # There is nothing that a version could be compared with.
        tree["metadata"].pop("resourceVersion", None)
        obj = await create_object(ctx, scope, tree, options, verb="update")
        return render.one(ctx, scope, obj, status=201, media=media)
    obj = await write(ctx, scope, lambda current: _copy(tree), options, subresource, replace=True)
    return render.one(ctx, scope, obj, media=media)


async def _absent(scope: Scope, namespace: str, name: str) -> bool:
    """Whether there is no such object, wherever it may have been written."""
    store = scope.store
    key = store.key(namespace, name)
    if store.cache.get(key) is not None:
        return False
    pending = store.fresh()
    if pending is not None:
        await pending
    return store.cache.get(key) is None


def _copy(tree: Tree) -> Tree:
    """Fresh top level and metadata: what a lost race has changed must not leak into the next attempt."""
    copied = dict(tree)
    copied["metadata"] = dict(tree["metadata"])
    for name in ("spec", "status"):
        if isinstance(copied.get(name), dict):
            copied[name] = dict(copied[name])
    return copied


async def write(
    ctx: RequestContext,
    scope: Scope,
    change: Change,
    options: WriteOptions,
    subresource: str,
    *,
    replace: bool = False,
    prepare: lifecycle.Prepare | None = None,
    applied: bool = False,
    shown: Shown | None = None,
) -> CachedObject:
    """Compare-and-swap `change` onto the newest object until it is not overtaken; the object as committed.

    `replace`: the client sent a whole object, whose uid is a precondition. `prepare` is the subresource's own
    preparation where it is neither the main resource nor status. `applied`: `change` also sets the owners of fields.
    `shown`: where admission is to see something else.
    """
    info = ctx.info
    strategy = scope.definition.strategy
    if prepare is None:
        main = strategy.preparing(dry_run=options.dry_run)
        prepare = strategy.prepare_status if subresource == "status" else main

    async def attempt(current: CachedObject) -> CachedObject:
        if scope.converts and (pending := scope.ready((current,))) is not None:
            await pending
        old = scope.view(current).tree()
        tree = change(old)
        for warning in dedup_owner_references(tree):
            ctx.warn(warning)
        if not applied:
            scope.tracker(subresource).update(old, tree, manager_of(ctx, options), lifecycle.timestamp())
        _check_uid(scope, tree, old, asked=replace)
        attributes, tree = await _gate(ctx, scope, tree, old, options, subresource, prepare, shown)
        stored = scope.to_storage(tree)
        try:
            if not isinstance(stored, dict):
                stored = await stored
            if old["metadata"].get("deletionTimestamp") and lifecycle.to_be_removed(tree):
                if not options.dry_run:
                    await scope.store.delete(current)
                return scope.store.unsaved(stored, current.revision)
            if options.dry_run:
                return scope.store.unsaved(stored, current.revision)
            try:
                return await scope.store.update(current, stored, old if stored is tree else None)
            except errors.APIError as error:
                return await scope.store.update(current, slimmed(error, stored, applied=applied))
        except (errors.APIError, StorageError):
            if attributes.undo:
                await scope.admission.revert(attributes)
            raise

    result: CachedObject = await retrying(scope.store, info.namespace, info.name, attempt)
    if scope.converts and (pending := scope.ready((result,))) is not None:
        await pending
    return result


async def _gate(
    ctx: RequestContext,
    scope: Scope,
    tree: Tree,
    old: Tree,
    options: WriteOptions,
    subresource: str,
    prepare: lifecycle.Prepare,
    shown: Shown | None,
) -> tuple[Attributes, Tree]:
    """Admission and the strategy; the object that came through."""
    seen, before = (tree, old) if shown is None else (shown.show(tree), shown.show(old))
    attributes = Attributes(
        "UPDATE", scope.definition, subresource, ctx.info.namespace, ctx.info.name, seen, before, options.dry_run, ctx,
        options=options,
    )  # fmt: skip
    pending = scope.admission.admit(attributes)
    if pending is not None:
        await pending
    if shown is None:
        tree = attributes.object or tree
        tree.setdefault("metadata", {})
    elif attributes.object is not None and attributes.object is not seen:
        tree = shown.take(tree, attributes.object)
    _check_version(scope, tree, old)
    if scope.guard is not None:
        await scope.guard(ctx, tree, old)
    _keep_times(tree, old)
    warnings: list[str] | Awaitable[list[str]]
    if scope.expressive or large_body(ctx):
        check = partial(lifecycle.before_update, scope.definition, tree, old, prepare)
        warnings = patiently(check, large=large_body(ctx))
    else:
        warnings = lifecycle.before_update(scope.definition, tree, old, prepare)
    for warning in warnings if isinstance(warnings, list) else await warnings:
        ctx.warn(warning)
    if shown is not None:
        attributes.object = shown.show(tree)
    pending = scope.admission.check(attributes)
    if pending is not None:
        await pending
    return attributes, tree if shown is not None else attributes.object or tree


def _keep_times(tree: Tree, old: Tree) -> None:
    """Entries that changed nothing but their time, on an object that did not change either, keep the old one."""
    metadata, previous = tree["metadata"], old["metadata"]
    entries, known = metadata.get("managedFields"), previous.get("managedFields")
    if entries == known or not same_but_time(entries, known):
        return
    if {**tree, "metadata": {**metadata, "managedFields": known}} == old:
        metadata["managedFields"] = known


def _check_uid(scope: Scope, tree: Tree, old: Tree, *, asked: bool) -> None:
    """The uid of the client's object against that of the current one; a patch has none of its own (`asked`)."""
    uid, known = tree["metadata"].get("uid"), old["metadata"].get("uid", "")
    if asked and uid and uid != known:
        name = old["metadata"]["name"]
        key = scope.store.key(old["metadata"].get("namespace", ""), name)
        text = (
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {known}"
        )
        raise errors.conflict(scope.definition.plural, scope.definition.group, name, text)


def _check_version(scope: Scope, tree: Tree, old: Tree) -> None:
    """resourceVersion of the object that admission has let in against the current one."""
    definition = scope.definition
    metadata, previous = tree["metadata"], old["metadata"]
    name = previous["name"]
    version = metadata.get("resourceVersion") or "0"
    if version == "0":
        if not definition.unconditional_update:
            raise version_required(definition, name)
        # Objects of an extension's own source need not have versions.
        if "resourceVersion" in previous:
            metadata["resourceVersion"] = previous["resourceVersion"]
    elif version != previous.get("resourceVersion"):
        if not (version.isascii() and version.isdigit()):
            text = f"strconv.ParseUint: parsing {errors.go_quote(version)}: invalid syntax"
            raise errors.APIError("", text, code=500)
        raise errors.conflict(definition.plural, definition.group, name, CONFLICT_TEXT)

"""POST of a collection: decode, gate, stamp, commit."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.admission.chain import Attributes
from fastapi_core.codec.negotiate import MediaType
from fastapi_core.http.exchange import Response
from fastapi_core.patch.managers import manager_name
from fastapi_core.registry import lifecycle
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.registry.metadata import dedup_owner_references
from fastapi_core.request.aside import large_body, patiently
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.rest import render
from fastapi_core.rest.authorize import check_create
from fastapi_core.rest.body import Expected, read_object
from fastapi_core.rest.commit import slimmed
from fastapi_core.rest.defaulting import apply_defaults
from fastapi_core.rest.options import WriteOptions, write_options
from fastapi_core.rest.scope import Scope

GENERATE_ATTEMPTS = 8


def expected_of(scope: Scope) -> Expected:
    definition = scope.definition
    return Expected(
        definition.kind,
        definition.group,
        definition.version,
        definition.type,
        definition.custom,
        partial(apply_defaults, definition),
        definition.form,
    )


def creator(scope: Scope) -> Endpoint:
    """POST of a new object."""
    expected = expected_of(scope)

    def create(ctx: RequestContext) -> Awaitable[Response]:
        media = render.media_type(ctx, scope)
        options = write_options(ctx.request.query, "CreateOptions")
        tree = read_object(ctx, expected, options.field_validation)
        return _commit(ctx, scope, media, tree, options)

    return create


async def _commit(ctx: RequestContext, scope: Scope, media: MediaType, tree: Tree, options: WriteOptions) -> Response:
    return render.one(ctx, scope, await create_object(ctx, scope, tree, options), status=201, media=media)


def manager_of(ctx: RequestContext, options: WriteOptions) -> str:
    """Who owns what the request writes."""
    agent = b"" if options.field_manager else ctx.request.header(b"user-agent") or b""
    return manager_name(options.field_manager, agent.decode("utf-8", "replace"))


async def create_object(
    ctx: RequestContext, scope: Scope, tree: Tree, options: WriteOptions, *, verb: str = "create", applied: bool = False
) -> CachedObject:
    """Gate and commit a decoded new object; with a dry run everything but the commit.

    `verb`: what the request asked for; another one than create needs the right to create as well. `applied`: it comes
    from an apply, which has set the owners of its fields."""
    definition = scope.definition
    _own_metadata(tree, wipe=verb == "create")
    attributes = _decoded(ctx, scope, tree, options, applied=applied)
    pending = scope.admission.admit(attributes)
    if pending is not None:
        await pending
    tree = attributes.object or tree
    metadata = tree.setdefault("metadata", {})
    if pending is not None:
        settle_namespace(scope, ctx.info.namespace, metadata)
    if scope.guard is not None:
        await scope.guard(ctx, tree, None)
    if verb != "create":
        await check_create(ctx, scope)
    generated = not metadata.get("name") and bool(metadata.get("generateName"))
    for attempt in range(1, GENERATE_ATTEMPTS + 1):
        if generated:
            metadata.pop("name", None)
        if scope.expressive or large_body(ctx):
            stamped = patiently(partial(_stamp, ctx, definition, tree, dry_run=options.dry_run), large=large_body(ctx))
            if stamped is not None:
                await stamped
        else:
            _stamp(ctx, definition, tree, dry_run=options.dry_run)
        attributes.name = tree["metadata"]["name"]
        pending = scope.admission.check(attributes)
        if pending is not None:
            await pending
        lifecycle.check_unstored(tree, options.dry_run)
        try:
            return await _store(scope, tree, dry_run=options.dry_run, applied=applied)
        except errors.APIError as error:
            if attributes.undo:
                await scope.admission.revert(attributes)
            metadata = tree["metadata"]
            if error.reason != "AlreadyExists" or not metadata.get("generateName"):
                raise
            if not generated or attempt == GENERATE_ATTEMPTS:
                raise _not_unique(error) from error
    raise AssertionError("unreachable: the last attempt returns or raises")


def _own_metadata(tree: Tree, *, wipe: bool) -> None:
    """Metadata that may be changed. `wipe`: nothing is created on its way out (an update or an apply that creates may)."""
    metadata = tree["metadata"] = dict(tree.get("metadata") or {})
    if wipe:
        metadata.pop("deletionTimestamp", None)
        metadata.pop("deletionGracePeriodSeconds", None)


def _decoded(ctx: RequestContext, scope: Scope, tree: Tree, options: WriteOptions, *, applied: bool) -> Attributes:
    """What admission is shown: the object defaulted, its fields owned."""
    definition = scope.definition
    metadata = tree["metadata"]
    settle_namespace(scope, ctx.info.namespace, metadata)
    apply_defaults(definition, tree)
    for warning in dedup_owner_references(tree):
        ctx.warn(warning)
    if not applied:
        scope.tracker().update(None, tree, manager_of(ctx, options), lifecycle.timestamp())
    space = definition.kind == "Namespace" and not definition.group
    return Attributes(
        "CREATE",
        definition,
        "",
        metadata.get("name") or "" if space else ctx.info.namespace,
        metadata.get("name") or "",
        tree,
        None,
        options.dry_run,
        ctx,
        options=options,
    )


def _stamp(ctx: RequestContext, definition: ResourceDefinition, tree: Tree, *, dry_run: bool) -> None:
    """What the server itself writes into a new object; and whether it is valid."""
    for warning in lifecycle.before_create(definition, tree, dry_run=dry_run):
        ctx.warn(warning)
    if definition.strategy.requester is not None:
        definition.strategy.requester(tree, ctx.user)


async def _store(scope: Scope, tree: Tree, *, dry_run: bool, applied: bool) -> CachedObject:
    stored = scope.to_storage(tree)
    if not isinstance(stored, dict):
        stored = await stored
    if dry_run:
        obj = _dry(scope, stored)
    else:
        try:
            obj = await scope.store.create(stored)
        except errors.APIError as error:
            obj = await scope.store.create(slimmed(error, stored, applied=applied))
    if scope.converts and (pending := scope.ready((obj,))) is not None:
        await pending
    return obj


def _dry(scope: Scope, stored: Tree) -> CachedObject:
    metadata = stored["metadata"]
    if scope.store.cache.get(scope.store.key(metadata.get("namespace", ""), metadata["name"])) is not None:
        raise errors.already_exists(scope.definition.plural, scope.definition.group, metadata["name"])
    return scope.store.unsaved(stored)


def _not_unique(error: errors.APIError) -> errors.APIError:
    """A generated name that was taken: the client may simply try again."""
    details = {**(error.details or {}), "retryAfterSeconds": 1}
    return errors.APIError(
        "AlreadyExists",
        f"{error.message}, the server was not able to generate a unique name for the object",
        details=details,
    )


def settle_namespace(scope: Scope, namespace: str, metadata: Tree) -> None:
    """The namespace of the URL, unless the body names another (400); none for cluster-scoped kinds."""
    settle_namespace_of(scope.definition, namespace, metadata)


def settle_namespace_of(definition: ResourceDefinition, namespace: str, metadata: Tree) -> None:
    """`settle_namespace` for kinds that are not stored."""
    if not definition.namespaced:
        metadata.pop("namespace", None)
        return
    if not metadata.get("namespace"):
        metadata["namespace"] = namespace
    elif metadata["namespace"] != namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )

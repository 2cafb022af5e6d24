"""DELETE of one object and of a collection."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.admission.chain import Attributes
from fastapi_core.codec import decode, protobuf
from fastapi_core.codec.negotiate import MediaType
from fastapi_core.http.exchange import Response
from fastapi_core.registry import lifecycle
from fastapi_core.registry.store import Page, retrying
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.rest import render
from fastapi_core.rest.body import body_form
from fastapi_core.rest.list import judged_page, read_page
from fastapi_core.rest.options import DeleteOptions, checked_delete, delete_options_from_query, list_options
from fastapi_core.rest.scope import Scope
from fastapi_core.schema.tables import type_of
from fastapi_core.storage.interface import StorageError

JOB_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


#: Kinds that all group versions have besides DeleteOptions, and what the reference calls the place where it looks for kinds.
_UNVERSIONED = {"Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"}
_SCHEME = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"


def read_options(ctx: RequestContext) -> DeleteOptions:
    """DeleteOptions of the body, or of the query when there is none (a body wins over the whole query)."""
    if not ctx.request.body:
        return delete_options_from_query(ctx.request.query)
    try:
        tree = _options_tree(ctx.request.body, body_form(ctx))
    except decode.DecodeError as error:
        raise errors.bad_request(str(error)) from error
    if tree is None:
        tree = {}
    if not isinstance(tree, dict):
        raise errors.bad_request("couldn't get version/kind; json parse error: not an object")
    kind = _member(tree, "kind", str) or "DeleteOptions"
    version = _member(tree, "apiVersion", str) or "meta.k8s.io/v1"
    if version.count("/") > 1:
        raise errors.bad_request(f"unexpected GroupVersion string: {version}")
    if kind in _UNVERSIONED:
        raise errors.bad_request(f"converting (v1.{kind}) to (v1.DeleteOptions): unknown conversion")
    if kind != "DeleteOptions":
        raise errors.bad_request(f'no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"')
    if ctx.audit is not None:
        ctx.audit.decoded({"kind": kind, "apiVersion": "v1", **tree})
    preconditions = _member(tree, "preconditions", dict) or {}
    return checked_delete(
        dry_run=_texts(tree, "dryRun"),
        grace=_member(tree, "gracePeriodSeconds", int),
        orphan=_member(tree, "orphanDependents", bool),
        propagation=_member(tree, "propagationPolicy", str),
        uid=_member(preconditions, "uid", str),
        resource_version=_member(preconditions, "resourceVersion", str),
    )


def _texts(tree: dict[str, Any], name: str) -> list[str]:
    """A list of texts, in which null counts as an empty one."""
    values = ["" if value is None else value for value in _member(tree, name, list) or ()]
    if not all(isinstance(value, str) for value in values):
        raise errors.bad_request(f"json: cannot unmarshal into Go struct field DeleteOptions.{name} of type string")
    return values


def _options_tree(body: bytes, form: str) -> Any:
    if form != "protobuf":
        return decode.parse(body, form).tree
    envelope = protobuf.open_envelope(body)
    kind = envelope.kind or "DeleteOptions"
    if kind != "DeleteOptions":
        return {"kind": kind}
    return decode.from_protobuf(type_of("meta/v1.DeleteOptions"), envelope.message)


def _member(tree: dict[str, Any], name: str, kind: type) -> Any:
    value = tree.get(name)
    if value is None:
        return None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise errors.bad_request(
            f"json: cannot unmarshal {type(value).__name__} into Go struct field DeleteOptions.{name}"
        )
    return value


def deleter(scope: Scope) -> Endpoint:
    """DELETE .../NAME."""

    def delete(ctx: RequestContext) -> Awaitable[Response]:
        media = render.media_type(ctx, scope)
        return _delete(ctx, scope, media, read_options(ctx))

    return delete


async def _delete(ctx: RequestContext, scope: Scope, media: MediaType, options: DeleteOptions) -> Response:
    definition = scope.definition
    _warn_of_orphans(ctx, scope, options)
    obj, gone = await delete_object(ctx, scope, ctx.info.namespace, ctx.info.name, options)
    status = 202 if not gone and options.orphan is False else 200
    if gone and not definition.return_deleted:
        return _success(ctx, scope, obj)
    return render.one(ctx, scope, obj, status=status, media=media)


def _warn_of_orphans(ctx: RequestContext, scope: Scope, options: DeleteOptions) -> None:
    definition = scope.definition
    if definition.kind == "Job" and definition.group == "batch" and not options.propagation and options.orphan is None:
        ctx.warn(JOB_WARNING)


def _success(ctx: RequestContext, scope: Scope, obj: CachedObject) -> Response:
    definition = scope.definition
    details = {"name": obj.name, "group": definition.group, "kind": definition.plural}
    details = {k: v for k, v in details.items() if v}
    details["uid"] = obj.tree()["metadata"].get("uid", "")
    ctx.outcome = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return render.tree(ctx, ctx.outcome, scope=scope, tables=True)


async def delete_object(
    ctx: RequestContext, scope: Scope, namespace: str, name: str, options: DeleteOptions, *, admitted: bool = False
) -> tuple[CachedObject, bool]:
    """Delete, or start to; (the object as it was last, whether it is gone). `admitted`: another request has let it pass."""

    def shown(old: dict[str, Any]) -> DeleteOptions:
        space = scope.definition.kind == "Namespace" and not scope.definition.group
        return replace(options, uid=old["metadata"]["uid"]) if space and options.uid is None else options

    asked = ctx.info.name  # a deletion of many names none

    async def attempt(current: CachedObject) -> tuple[CachedObject, bool]:
        pending = scope.ready((current,))
        if pending is not None:
            await pending
        old = scope.view(current).tree()
        lifecycle.check_preconditions(old, scope.definition, options.uid, options.resource_version)
        plan = lifecycle.plan_deletion(
            scope.definition, old, grace=options.grace, orphan=options.orphan, propagation=options.propagation
        )
        if not admitted and not plan.pending:
            attributes = Attributes(
                "DELETE", scope.definition, "", namespace, asked, None, old, options.dry_run, ctx, options=shown(old)
            )
            await scope.admission.mutate(attributes)
            await scope.admission.validate(attributes)
        return await _carry_out(scope, current, plan, dry_run=options.dry_run)

    if name in _SYSTEM_CLASSES and (scope.definition.group, scope.definition.kind) == _CLASSES:
        text = "this is a system priority class and cannot be deleted"
        raise errors.forbidden(scope.definition.plural, scope.definition.group, name, text)
    obj, gone = await retrying(scope.store, namespace, name, attempt)
    return await scope.readied(obj), gone


_CLASSES = ("scheduling.k8s.io", "PriorityClass")
_SYSTEM_CLASSES = frozenset({"system-node-critical", "system-cluster-critical"})


async def _carry_out(
    scope: Scope, current: CachedObject, plan: lifecycle.Deletion, *, dry_run: bool
) -> tuple[CachedObject, bool]:
    store = scope.store
    if plan.changed:
        stored = scope.to_storage(plan.tree)
        if not isinstance(stored, dict):
            stored = await stored
        current = store.unsaved(stored, current.revision) if dry_run else await store.update(current, stored)
    if plan.remove and not dry_run:
        await store.delete(current)
    return current, plan.remove


def collection_deleter(scope: Scope) -> Endpoint:
    """DELETE of a collection: each object that matches, one after the other; answers the list."""

    def delete(ctx: RequestContext) -> Awaitable[Response]:
        media = render.media_type(ctx, scope)
        listing = list_options(ctx.request.query)
        matcher = scope.matcher(listing)
        options = read_options(ctx)
        return _collection(ctx, scope, media, listing, matcher, options)

    return delete


async def _collection(
    ctx: RequestContext, scope: Scope, media: MediaType, listing: Any, matcher: Any, options: DeleteOptions
) -> Response:
    _warn_of_orphans(ctx, scope, options)
    read = judged_page if scope.judges_views(matcher) else read_page
    found = read(scope, ctx.info.namespace, listing, matcher)
    page = found if isinstance(found, Page) else await found
    for obj in page.objects:
        try:
            await delete_object(ctx, scope, obj.namespace, obj.name, options)
        except errors.APIError as error:
            if error.reason != "NotFound":
                raise
        except StorageError as error:
            raise scope.store.write_error(error, obj.name) from error
    return render.page(ctx, scope, media, page, selected=matcher is not None)

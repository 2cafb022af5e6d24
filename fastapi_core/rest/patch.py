"""PATCH: which engine by media type, applied anew on the newest object until it is not overtaken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from typing import Any

from fastapi_core import errors
from fastapi_core.codec import json as json_codec
from fastapi_core.codec.decode import by_name, unknown
from fastapi_core.codec.negotiate import MediaType, check_consumed
from fastapi_core.http.exchange import Response
from fastapi_core.patch import jsonpatch, merge, strategic
from fastapi_core.registry.definition import Tree
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.rest import apply, custom, render
from fastapi_core.rest.body import clears_owners
from fastapi_core.rest.custom import undecodable
from fastapi_core.rest.defaulting import apply_defaults
from fastapi_core.rest.options import WriteOptions, write_options
from fastapi_core.rest.scope import Scope
from fastapi_core.rest.update import check_identity, write
from fastapi_core.schema import normalize
from fastapi_core.schema.errors import TypeMismatch
from fastapi_core.schema.types import Type

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

CUSTOM_TYPES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)

Engine = Callable[[Tree], Tree]


def patcher(scope: Scope, subresource: str = "") -> Endpoint:
    """PATCH .../NAME (or .../NAME/status)."""
    definition = scope.definition

    def patch(ctx: RequestContext) -> Awaitable[Response]:
        form = patch_form(ctx, service=not definition.custom)
        media = render.media_type(ctx, scope)
        if ctx.audit is not None:
            ctx.audit.patch(ctx.request.body, "yaml" if form == APPLY_PATCH else "json")
        if form == APPLY_PATCH:
            return apply.apply(ctx, scope, media, subresource)
        options = write_options(ctx.request.query, "PatchOptions")
        try:
            engine, problems = patch_engine(form, ctx.request.body, scope.type, custom=definition.custom)
        except errors.APIError as error:
            if error.code == 400:  # bodies are read once there is something to patch
                scope.store.get(ctx.info.namespace, ctx.info.name)
            raise
        return _patch(ctx, scope, media, form, engine, options, problems, subresource)

    return patch


def patch_form(ctx: RequestContext, *, service: bool) -> str:
    """Media type of a patch body. `service`: the path is a built-in resource's, which has declared what it takes."""
    header = ctx.request.header(b"content-type") or b""
    if service:
        check_consumed(header.decode("latin-1"), TYPES)
    return _form_of(header)


@lru_cache(maxsize=64)
def _form_of(header: bytes) -> str:
    return header.decode("latin-1").partition(";")[0]


def patch_engine(form: str, body: bytes, type: Type, *, custom: bool) -> tuple[Engine, list[str]]:
    """The body as a function of the current tree, and what is odd about its document (duplicate fields). `form` is the
    body's media type, `type` that of the objects to patch.

    415 for another media type than the resource takes, 400 for a body that is no JSON.
    """
    accepted = CUSTOM_TYPES if custom else TYPES
    if form not in accepted:
        raise errors.unsupported_media_type(accepted)
    try:
        parsed = json_codec.parse(body)
    except json_codec.DecodeError as error:
        raise errors.bad_request(str(error)) from error
    if form == JSON_PATCH:
        problems = [f"json patch {complaint}" for complaint in parsed.complaints]
        return partial(jsonpatch.apply_json_patch, body=parsed.tree), problems + jsonpatch.unknown_members(parsed.tree)
    if form == MERGE_PATCH:
        return partial(merge.merge, patch=parsed.tree), parsed.complaints
    return partial(_strategic, patch=parsed.tree, type=type), parsed.complaints


def _strategic(current: Tree, patch: Any, type: Type) -> Tree:
    """A merge into the typed object: whatever it says of kind and version, it is one of that type afterwards."""
    patched = strategic.strategic(current, patch=patch, type=type)
    stated = [name for name in ("kind", "apiVersion") if isinstance(patched.get(name), str)]
    return {name: value for name, value in patched.items() if name not in stated}


async def _patch(
    ctx: RequestContext,
    scope: Scope,
    media: MediaType,
    form: str,
    engine: Engine,
    options: WriteOptions,
    problems: list[str],
    subresource: str,
) -> Response:
    definition = scope.definition
    reported: list[str] = []

    def change(current: Tree) -> Tree:
        patched = engine(current)
        if form == STRATEGIC_PATCH:  # which is about members of the type
            patched = {**patched, "kind": definition.kind, "apiVersion": scope.group_version}
        reported[:] = problems
        if definition.form is not None:
            patched = custom.conform_patched(definition, definition.form, patched, reported)
        else:
            patched = conform(definition.kind, scope.group_version, scope.type, patched, reported, current)
        if reported:
            complain(ctx, reported, options)
        check_identity(scope, patched, ctx.info.name, ctx.info.namespace)
        apply_defaults(definition, patched, current)
        return patched

    obj = await write(ctx, scope, change, options, subresource)
    return render.one(ctx, scope, obj, media=media)


def complain(ctx: RequestContext, reported: list[str], options: WriteOptions) -> None:
    """Unknown and duplicate fields of a patched object: refused or reported, as fieldValidation says."""
    if options.field_validation == "Strict":
        raise undecodable("strict decoding error: " + ", ".join(reported))
    if options.field_validation == "Warn":
        for problem in reported:
            ctx.warn(problem)


def conform(own: str, wanted: str, type: Type, patched: Tree, reported: list[str], current: Tree) -> Tree:
    """The patched tree decoded as its type, as the reference decodes the patched JSON (members in sorted order).

    `own` is the kind, `wanted` the apiVersion of the objects to patch.
    """
    if not isinstance(patched.get("metadata", {}), dict):
        raise undecodable("json: cannot unmarshal into Go struct field .metadata of type v1.ObjectMeta")
    kind, version = patched.get("kind") or own, patched.get("apiVersion") or wanted
    if patched.get("kind") and not patched.get("apiVersion"):
        # Read as another type of that name, which has nothing but these two.
        reported += [unknown(name) for name in sorted(patched) if name not in ("kind", "apiVersion")]
        return {"metadata": {}}
    if kind != own or version != wanted:
        raise undecodable(f'no kind "{kind}" is registered for version "{version}" in scheme')
    try:
        result = normalize.normalize(type, patched, known=current)
    except TypeMismatch as error:
        raise undecodable(str(error)) from error
    if result.unknown:
        reported += [unknown(path) for path in by_name(result.unknown)]
    tree: Tree = result.tree
    tree["kind"], tree["apiVersion"] = own, wanted
    tree["metadata"] = dict(tree.get("metadata") or {})
    if clears_owners(patched):
        tree["metadata"]["managedFields"] = []
    return tree

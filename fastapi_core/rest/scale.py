"""The scale subresource: replicas of a workload as an `autoscaling/v1` Scale."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import cache, partial
from typing import Any, Protocol

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.errors import FieldError
from fastapi_core.http.exchange import Response
from fastapi_core.meta.selectors import format_selector
from fastapi_core.patch import managers
from fastapi_core.patch import scale as ownership
from fastapi_core.patch.apply import Applier, gvk, named, plain_failure
from fastapi_core.patch.scale import Paths
from fastapi_core.patch.tracking import Tracker
from fastapi_core.registry import lifecycle
from fastapi_core.registry.definition import Tree
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.rest import render
from fastapi_core.rest.apply import check_duplicates, check_kind, read_configuration
from fastapi_core.rest.body import Expected, read_object
from fastapi_core.rest.create import manager_of
from fastapi_core.rest.options import WriteOptions, write_options
from fastapi_core.rest.patch import APPLY_PATCH, complain, conform, patch_engine, patch_form
from fastapi_core.rest.scope import Scope
from fastapi_core.rest.update import Change, Shown, check_identity, write
from fastapi_core.schema import normalize
from fastapi_core.schema.errors import TypeMismatch
from fastapi_core.schema.tables import type_of

KIND, GROUP_VERSION = "Scale", "autoscaling/v1"


class Scaling(Protocol):
    """Where a kind keeps what its Scale shows."""

    paths: Paths

    def check(self, parent: Tree) -> None:
        """Raise when there is nothing a Scale could show."""

    def read(self, parent: Tree) -> Tree:
        """The Scale of an object."""

    def write(self, parent: Tree, replicas: int) -> Tree:
        """The object with other replicas."""


class _Workload:
    """Built-in kinds: replicas of spec and status, the selector of pods."""

    def __init__(self, scope: Scope) -> None:
        self.paths = replicas_paths(scope)

    def check(self, parent: Tree) -> None:
        return None

    def read(self, parent: Tree) -> Tree:
        return to_scale(parent)

    def write(self, parent: Tree, replicas: int) -> Tree:
        if replicas < 0:
            problem = FieldError("Invalid value", "spec.replicas", "must be greater than or equal to 0", replicas)
            raise errors.invalid(KIND, "autoscaling", parent["metadata"]["name"], [problem])
        return {**parent, "spec": {**parent["spec"], "replicas": replicas}}


def _scaling(scope: Scope) -> Scaling:
    return scope.scaling or _Workload(scope)


def to_scale(parent: Tree) -> Tree:
    """The Scale of a workload object."""
    spec, status = parent.get("spec", {}), parent.get("status", {})
    return scale_of(parent, spec.get("replicas", 0), status.get("replicas", 0), _selector(spec.get("selector")))


def scale_of(parent: Tree, replicas: int, observed: int, selector: str) -> Tree:
    """A Scale with the metadata of the object it belongs to."""
    metadata = parent["metadata"]
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    scale: Tree = {
        "kind": KIND,
        "apiVersion": GROUP_VERSION,
        "metadata": {name: metadata[name] for name in names if name in metadata},
        "spec": {},
        "status": {"replicas": observed},
    }
    if replicas:
        scale["spec"]["replicas"] = replicas
    if selector:
        scale["status"]["selector"] = selector
    return scale


def _selector(selector: Any) -> str:
    if not selector:
        return ""
    if "matchLabels" in selector or "matchExpressions" in selector:
        return format_selector(selector)
    return format_selector({"matchLabels": selector})


def from_scale(scaling: Scaling, parent: Tree, scale: Tree) -> Tree:
    """The object with the Scale's replicas (and its resourceVersion as precondition)."""
    changed = scaling.write(parent, (scale.get("spec") or {}).get("replicas", 0))
    metadata = dict(parent["metadata"])
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version:
        metadata["resourceVersion"] = version
    return {**changed, "metadata": metadata}


def _check_uid(scope: Scope, old: Tree, new: Tree, *, patched: bool) -> None:
    """409 for a Scale that says it belongs to another object, in words that tell the path it has come."""
    uid, present = new["metadata"].get("uid") or "", old["metadata"].get("uid")
    if not uid or uid == present or (patched and scope.definition.custom):
        return
    definition, name = scope.definition, old["metadata"]["name"]
    text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {present}"
    if patched:
        raise errors.conflict(f"{definition.plural}/scale", definition.group, name, text)
    key = scope.store.key(old["metadata"].get("namespace", ""), name)
    text = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {text}"
    raise errors.conflict(definition.plural, definition.group, name, text)


def expected() -> Expected:
    return Expected(KIND, "autoscaling", "v1", type_of("autoscaling/v1.Scale"))


def getter(scope: Scope) -> Endpoint:
    """GET .../NAME/scale."""

    def get(ctx: RequestContext) -> Response | Awaitable[Response]:
        obj = scope.store.get(ctx.info.namespace, ctx.info.name)
        pending = scope.anew(obj)
        return _answer(ctx, obj) if pending is None else _later(ctx, obj, pending)

    async def _later(ctx: RequestContext, obj: CachedObject, pending: Awaitable[None]) -> Response:
        await pending
        return _answer(ctx, obj)

    def _answer(ctx: RequestContext, obj: CachedObject) -> Response:
        parent, scaling = scope.view(obj).tree(), _scaling(scope)
        scaling.check(parent)
        return render.tree(ctx, scaling.read(parent), tables=True)

    return get


def updater(scope: Scope) -> Endpoint:
    """PUT .../NAME/scale."""

    def update(ctx: RequestContext) -> Awaitable[Response]:
        options = write_options(ctx.request.query, "UpdateOptions")
        scale = read_object(ctx, expected(), options.field_validation)
        check_identity(scope, scale, ctx.info.name, ctx.info.namespace)

        def change(old: Tree) -> Tree:
            _check_uid(scope, old, scale, patched=False)
            return dict(scale)

        return _write(ctx, scope, options, _tracked(ctx, scope, options, change))

    return update


def patcher(scope: Scope) -> Endpoint:
    """PATCH .../NAME/scale."""

    def patch(ctx: RequestContext) -> Awaitable[Response]:
        form = patch_form(ctx, service=not scope.definition.custom)
        if ctx.audit is not None:
            ctx.audit.patch(ctx.request.body, "yaml" if form == APPLY_PATCH else "json")
        if form == APPLY_PATCH:
            options = write_options(ctx.request.query, "PatchOptions", apply=True)
            return _write(ctx, scope, options, _applied(ctx, scope, options))
        options = write_options(ctx.request.query, "PatchOptions")
        type = expected().type
        engine, problems = patch_engine(form, ctx.request.body, type, custom=scope.definition.custom)

        def change(old: Tree) -> Tree:
            reported = list(problems)
            patched = conform(KIND, GROUP_VERSION, type, engine(old), reported, old)
            if reported:
                complain(ctx, reported, options)
            check_identity(scope, patched, ctx.info.name, ctx.info.namespace)
            _check_uid(scope, old, patched, patched=True)
            return patched

        return _write(ctx, scope, options, _tracked(ctx, scope, options, change))

    return patch


@cache
def _tracker() -> Tracker:
    return Tracker(expected().type, GROUP_VERSION, subresource="scale")


def _tracked(ctx: RequestContext, scope: Scope, options: WriteOptions, change: Change) -> Change:
    """`change` of a Scale, with the owner of what it changes."""

    def tracked(old: Tree) -> Tree:
        new = change(old)
        new["metadata"] = dict(new.get("metadata") or {})
        _tracker().update(old, new, manager_of(ctx, options), lifecycle.timestamp())
        return new

    return tracked


def _applied(ctx: RequestContext, scope: Scope, options: WriteOptions) -> Change:
    """The apply of a Scale. That of a custom resource can take hold of replicas; the reference fails to carry out one
    that changes them."""
    config = read_configuration(ctx)
    check_kind(config.tree, expected())

    def change(old: Tree) -> Tree:
        result = Applier(_tracker()).apply(
            old, config.tree, options.field_manager, lifecycle.timestamp(), force=bool(options.force)
        )
        check_duplicates(ctx, config, options)
        new = old
        if result.tree is not None:
            new = _converted(scope, result.tree, config.tree)
            check_identity(scope, new, ctx.info.name, ctx.info.namespace)
            _check_uid(scope, old, new, patched=True)
        return {**new, "metadata": {**new["metadata"], "managedFields": managers.write(result.managed)}}

    return change


def _converted(scope: Scope, tree: Tree, config: Tree) -> Tree:
    """An applied Scale as its type has it."""
    failure = f"failed to convert new object ({named(config)}) to proper version: "
    if scope.definition.custom:
        raise plain_failure(f"{failure}request to convert CR to an invalid group/version: {GROUP_VERSION}")
    try:
        scale: Tree = normalize.normalize(expected().type, tree).tree
    except TypeMismatch as error:
        raise plain_failure(f"{failure}unable to convert unstructured object to {gvk(config)}: {error}") from error
    return {**scale, "metadata": dict(scale.get("metadata") or {})}


def replicas_paths(scope: Scope) -> Paths:
    """Where each version of a workload keeps its replicas."""
    definition = scope.definition
    versions = {definition.version, definition.storage_version}
    prefix = f"{definition.group}/" if definition.group else ""
    return {prefix + version: ("f:spec", "f:replicas") for version in versions}


async def _write(ctx: RequestContext, scope: Scope, options: WriteOptions, scale_of: Change) -> Response:
    """Write a workload with the Scale that `scale_of` makes of the current one."""
    scaling = _scaling(scope)
    paths = scaling.paths

    def change(parent: Tree) -> Tree:
        entries = parent["metadata"].get("managedFields")
        old = scaling.read(parent)
        shown = ownership.to_scale(entries, paths)
        if shown:
            old["metadata"]["managedFields"] = shown
        new = scale_of(old)
        tree = from_scale(scaling, parent, new)
        tree["metadata"].pop("managedFields", None)
        kept = ownership.to_workload(
            entries, (new.get("metadata") or {}).get("managedFields"), paths, scope.definition.group_version
        )
        if kept:
            tree["metadata"]["managedFields"] = kept
        return tree

    shown = Shown(scaling.read, partial(from_scale, scaling))
    obj: CachedObject = await write(ctx, scope, change, options, "scale", applied=True, shown=shown)
    return render.tree(ctx, scaling.read(scope.view(obj).tree()), tables=True)

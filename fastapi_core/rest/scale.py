"""The scale subresource: replicas of a workload as an `autoscaling/v1` Scale."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.errors import FieldError
from fastapi_core.http.exchange import Response
from fastapi_core.meta.selectors import format_selector
from fastapi_core.registry.definition import Tree
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.rest import render
from fastapi_core.rest.body import Expected, read_object
from fastapi_core.rest.options import WriteOptions, write_options
from fastapi_core.rest.patch import patch_engine
from fastapi_core.rest.scope import Scope
from fastapi_core.rest.update import write
from fastapi_core.schema import normalize
from fastapi_core.schema.errors import TypeMismatch
from fastapi_core.schema.tables import type_of

KIND, GROUP_VERSION = "Scale", "autoscaling/v1"


def to_scale(parent: Tree) -> Tree:
    """The Scale of a workload object."""
    metadata = parent["metadata"]
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    scale: Tree = {
        "kind": KIND,
        "apiVersion": GROUP_VERSION,
        "metadata": {name: metadata[name] for name in names if name in metadata},
        "spec": {},
        "status": {"replicas": parent.get("status", {}).get("replicas", 0)},
    }
    replicas = parent.get("spec", {}).get("replicas", 0)
    if replicas:
        scale["spec"]["replicas"] = replicas
    selector = _selector(parent.get("spec", {}).get("selector"))
    if selector:
        scale["status"]["selector"] = selector
    return scale


def _selector(selector: Any) -> str:
    if not selector:
        return ""
    if "matchLabels" in selector or "matchExpressions" in selector:
        return format_selector(selector)
    return format_selector({"matchLabels": selector})


def from_scale(parent: Tree, scale: Tree) -> Tree:
    """The workload with the Scale's replicas (and its resourceVersion as precondition)."""
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        problem = FieldError("Invalid value", "spec.replicas", "must be greater than or equal to 0", replicas)
        raise errors.invalid(KIND, "autoscaling", parent["metadata"]["name"], [problem])
    metadata = dict(parent["metadata"])
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version:
        metadata["resourceVersion"] = version
    return {**parent, "metadata": metadata, "spec": {**parent["spec"], "replicas": replicas}}


def expected() -> Expected:
    return Expected(KIND, "autoscaling", "v1", type_of("autoscaling/v1.Scale"))


def getter(scope: Scope) -> Endpoint:
    """GET .../NAME/scale."""

    def get(ctx: RequestContext) -> Response:
        obj = scope.store.get(ctx.info.namespace, ctx.info.name)
        return render.tree(ctx, to_scale(scope.view(obj).tree()))

    return get


def updater(scope: Scope) -> Endpoint:
    """PUT .../NAME/scale."""

    def update(ctx: RequestContext) -> Awaitable[Response]:
        options = write_options(ctx.request.query, "UpdateOptions")
        scale = read_object(ctx, expected(), options.field_validation)
        name = (scale.get("metadata") or {}).get("name", "")
        if name != ctx.info.name:
            raise errors.bad_request(
                f"the name of the object ({name}) does not match the name on the URL ({ctx.info.name})"
            )
        return _write(ctx, scope, options, lambda parent: scale)

    return update


def patcher(scope: Scope) -> Endpoint:
    """PATCH .../NAME/scale."""

    def patch(ctx: RequestContext) -> Awaitable[Response]:
        options = write_options(ctx.request.query, "PatchOptions")
        engine, _ = patch_engine(ctx, expected().type, custom=False)

        def change(parent: Tree) -> Tree:
            try:
                patched = normalize.normalize(expected().type, engine(to_scale(parent))).tree
            except TypeMismatch as error:
                raise errors.invalid("", "", "", [FieldError("Invalid value", "patch", str(error), "")]) from error
            return dict(patched)

        return _write(ctx, scope, options, change)

    return patch


async def _write(
    ctx: RequestContext, scope: Scope, options: WriteOptions, scale_of: Callable[[Tree], Tree]
) -> Response:
    obj: CachedObject = await write(ctx, scope, lambda parent: from_scale(parent, scale_of(parent)), options, "scale")
    return render.tree(ctx, to_scale(scope.view(obj).tree()))

"""PUT namespaces/NAME/finalize: the only way spec.finalizers change; emptying them completes a deletion."""

from __future__ import annotations

from collections.abc import Awaitable

from fastapi_core.apis.strategies.kinds import prepare_namespace_finalize
from fastapi_core.http.exchange import Response
from fastapi_core.registry.definition import Tree
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.rest import render
from fastapi_core.rest.body import read_object
from fastapi_core.rest.create import expected_of
from fastapi_core.rest.defaulting import apply_defaults
from fastapi_core.rest.options import WriteOptions, write_options
from fastapi_core.rest.scope import Scope
from fastapi_core.rest.update import check_name, write


def finalizer(scope: Scope) -> Endpoint:
    expected = expected_of(scope)

    def finalize(ctx: RequestContext) -> Awaitable[Response]:
        options = write_options(ctx.request.query, "UpdateOptions")
        tree = read_object(ctx, expected, options.field_validation)
        metadata = tree["metadata"] = dict(tree.get("metadata") or {})
        check_name(metadata, ctx.info.name)
        apply_defaults(scope.definition, tree)
        return _finalize(ctx, scope, tree, options)

    return finalize


async def _finalize(ctx: RequestContext, scope: Scope, tree: Tree, options: WriteOptions) -> Response:
    obj = await write(
        ctx,
        scope,
        lambda current: {**tree, "metadata": dict(tree["metadata"]), "spec": dict(tree.get("spec") or {})},
        options,
        "finalize",
        replace=True,
        prepare=prepare_namespace_finalize,
    )
    return render.one(ctx, scope, obj)

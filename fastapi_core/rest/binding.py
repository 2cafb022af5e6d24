"""POST pods/NAME/binding and bindings: a scheduler's decision, written into the pod.

The pod changes below its strategy, so that neither its generation nor its managed fields follow.
"""

from __future__ import annotations

from collections.abc import Awaitable

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.admission.chain import Attributes
from fastapi_core.apis.conditions import with_pod_condition
from fastapi_core.errors import FieldError
from fastapi_core.http.exchange import Response
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.registry.store import retrying
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.rest import render
from fastapi_core.rest.backends import Backends
from fastapi_core.rest.body import Expected, read_object
from fastapi_core.rest.create import settle_namespace
from fastapi_core.rest.options import WriteOptions, write_options
from fastapi_core.rest.scope import Scope
from fastapi_core.schema.tables import type_of

RESOURCE = "pods/binding"
SUCCESS: Tree = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def binder(scope: Scope) -> Endpoint:
    """POST pods/NAME/binding."""

    def bind(ctx: RequestContext) -> Awaitable[Response]:
        options, binding = _read(ctx, scope)
        if (binding["metadata"].get("name") or "") != ctx.info.name:
            raise errors.bad_request("name in URL does not match name in Binding object")
        return _bind(ctx, scope, scope.definition, binding, options)

    return bind


def collection_binder(definition: ResourceDefinition, backends: Backends) -> Endpoint:
    """POST bindings, the older form: the pod is named in the body."""

    def bind(ctx: RequestContext) -> Awaitable[Response]:
        scope = backends.scopes["", "pods"]()
        options, binding = _read(ctx, scope)
        return _bind(ctx, scope, definition, binding, options)

    return bind


def _read(ctx: RequestContext, scope: Scope) -> tuple[WriteOptions, Tree]:
    options = write_options(ctx.request.query, "CreateOptions")
    binding = read_object(ctx, Expected("Binding", "", "v1", type_of("core/v1.Binding")), options.field_validation)
    metadata = binding["metadata"] = dict(binding.get("metadata") or {})
    settle_namespace(scope, ctx.info.namespace, metadata)
    return options, binding


def check(binding: Tree) -> None:
    """The reference answers what is wrong here as a plain 500."""
    target: Tree = binding.get("target") or {}
    problems = []
    kind = target.get("kind") or ""
    if kind not in ("", "Node"):
        problems.append(FieldError("Unsupported value", "target.kind", 'supported values: "Node", "<empty>"', kind))
    if not target.get("name"):
        problems.append(FieldError("Required value", "target.name"))
    if problems:
        texts = [str(problem) for problem in problems]
        raise errors.APIError("", texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]", code=500)


async def _bind(
    ctx: RequestContext, scope: Scope, definition: ResourceDefinition, binding: Tree, options: WriteOptions
) -> Response:
    check(binding)
    metadata = binding["metadata"]
    name = metadata.get("name") or ""
    subresource = "binding" if definition is scope.definition else ""
    attributes = Attributes(
        "CREATE",
        definition,
        subresource,
        ctx.info.namespace,
        name,
        binding,
        None,
        options.dry_run,
        ctx,
        options=options,
    )
    await scope.admission.mutate(attributes)
    await scope.admission.validate(attributes)
    binding = attributes.object or binding

    async def attempt(current: CachedObject) -> CachedObject:
        tree = assigned(current.tree(), binding, current.key)
        return current if options.dry_run else await scope.store.update(current, tree)

    await retrying(scope.store, ctx.info.namespace, name, attempt)
    ctx.outcome = SUCCESS
    return render.tree(ctx, SUCCESS, status=201)


def assigned(pod: Tree, binding: Tree, key: str) -> Tree:
    """The pod on its node. Raises Conflict when it cannot go there any more."""
    metadata, wanted = pod["metadata"], binding["metadata"]
    name = metadata["name"]
    for member, label in (("uid", "UID"), ("resourceVersion", "RV")):
        asked = wanted.get(member)
        if asked and asked != metadata.get(member):
            text = f"{label} in precondition: {asked}, {label} in object meta: {metadata.get(member)}"
            detail = (
                f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, "
                f"AdditionalErrorMsg: Precondition failed: {text}"
            )
            raise errors.conflict("pods", "", name, detail)
    spec: Tree = dict(pod.get("spec") or {})
    if metadata.get("deletionTimestamp"):
        raise errors.conflict(RESOURCE, "", name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        text = f"pod {name} is already assigned to node {errors.go_quote(spec['nodeName'])}"
        raise errors.conflict(RESOURCE, "", name, text)
    if spec.get("schedulingGates"):
        raise errors.conflict(RESOURCE, "", name, f"pod {name} has non-empty .spec.schedulingGates")
    spec["nodeName"] = binding["target"]["name"]
    metadata = dict(metadata)
    for member in ("annotations", "labels"):
        if wanted.get(member):
            metadata[member] = dict(sorted({**(metadata.get(member) or {}), **wanted[member]}.items()))
    status = with_pod_condition(pod, "PodScheduled")
    status.pop("nominatedNodeName", None)
    return {**pod, "metadata": metadata, "spec": spec, "status": status}

"""POST pods/NAME/eviction: a deletion that a disruption budget can refuse.

A budget's status counts what may still go: each eviction takes one from `disruptionsAllowed` and notes the pod in
`disruptedPods`, by compare-and-swap, before the pod is deleted.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core._ext.selector import Matcher
from fastapi_core.admission.chain import Attributes
from fastapi_core.apis.conditions import is_true, with_condition, with_pod_condition
from fastapi_core.errors import APIError
from fastapi_core.http.exchange import Response
from fastapi_core.meta import time
from fastapi_core.meta.selectors import from_object
from fastapi_core.registry.definition import Tree
from fastapi_core.registry.lifecycle import check_preconditions
from fastapi_core.registry.store import ResourceStore, retrying
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.rest import render
from fastapi_core.rest.backends import BUDGETS, Backends
from fastapi_core.rest.binding import SUCCESS
from fastapi_core.rest.body import Expected, read_object
from fastapi_core.rest.create import settle_namespace
from fastapi_core.rest.delete import delete_object
from fastapi_core.rest.options import DeleteOptions, WriteOptions, checked_delete, write_options
from fastapi_core.rest.scope import Scope
from fastapi_core.schema.tables import type_of

ATTEMPTS = 20
MOST_DISRUPTED = 2000
REFUSAL = "Cannot evict pod as it would violate the pod's disruption budget."
SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


def evictor(scope: Scope, backends: Backends) -> Endpoint:
    """POST pods/NAME/eviction."""

    def evict(ctx: RequestContext) -> Awaitable[Response]:
        options = write_options(ctx.request.query, "CreateOptions")
        expected = Expected("Eviction", "policy", "v1", type_of("policy/v1.Eviction"), earlier="policy/v1beta1")
        tree = read_object(ctx, expected, options.field_validation)
        metadata = tree["metadata"] = dict(tree.get("metadata") or {})
        settle_namespace(scope, ctx.info.namespace, metadata)
        if (metadata.get("name") or "") != ctx.info.name:
            raise errors.bad_request("name in URL does not match name in Eviction object")
        return _evict(ctx, scope, backends.stores[BUDGETS], tree, options)

    return evict


def delete_options(tree: Tree, *, dry_run: bool) -> DeleteOptions:
    """DeleteOptions of an eviction; a dry run may be asked for there or in the query."""
    preconditions: Tree = tree.get("preconditions") or {}
    options = checked_delete(
        dry_run=list(tree.get("dryRun") or ()),
        grace=tree.get("gracePeriodSeconds"),
        orphan=tree.get("orphanDependents"),
        propagation=tree.get("propagationPolicy"),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
    )
    return replace(options, dry_run=options.dry_run or dry_run)


async def _evict(
    ctx: RequestContext,
    scope: Scope,
    budgets: ResourceStore,
    eviction: Tree,
    given: WriteOptions,
) -> Response:
    namespace, name = ctx.info.namespace, ctx.info.name
    attributes = Attributes(
        "CREATE", scope.definition, "eviction", namespace, name, eviction, None, given.dry_run, ctx, options=given
    )
    await scope.admission.mutate(attributes)
    await scope.admission.validate(attributes)
    scope.store.get(namespace, name)
    options = delete_options((attributes.object or eviction).get("deleteOptions") or {}, dry_run=given.dry_run)
    for attempt in range(1, ATTEMPTS + 1):
        pod = scope.store.get(namespace, name).tree()
        if not beyond_budgets(pod):
            break
        finished = pod["metadata"].get("deletionTimestamp") or _phase(pod) in ("Succeeded", "Failed")
        ours = not finished and options.resource_version is None
        try:
            await _remove(ctx, scope, _of_version(options, pod) if ours else options)
        except APIError as error:
            if error.reason != "Conflict" or not ours or attempt == ATTEMPTS:
                raise
        else:
            ctx.outcome = SUCCESS
            return render.tree(ctx, SUCCESS, status=201)
    await _spend(ctx, scope, budgets, pod, options)
    ctx.outcome = SUCCESS
    return render.tree(ctx, SUCCESS, status=201)


async def _spend(ctx: RequestContext, scope: Scope, budgets: ResourceStore, pod: Tree, options: DeleteOptions) -> None:
    """Delete a running pod when its budget, if it has one, allows it."""
    covering = covering_budgets(budgets, scope.store.get(ctx.info.namespace, ctx.info.name))
    if len(covering) > 1:
        raise APIError("", SEVERAL, code=500)
    unhealthy = False
    if covering:
        budget = covering[0].tree()
        unhealthy = not is_true(pod, "Ready") and unhealthy_may_go(budget)
        if not unhealthy:
            await _count(budgets, covering[0], pod["metadata"]["name"], dry_run=options.dry_run)
    try:
        await _remove(ctx, scope, _of_version(options, pod) if unhealthy else options)
    except APIError as error:
        if error.reason == "Conflict" and unhealthy and options.resource_version is None:
            raise _undecided(covering[0].name) from error
        raise


def _phase(pod: Tree) -> str:
    return (pod.get("status") or {}).get("phase") or ""


def beyond_budgets(pod: Tree) -> bool:
    """A pod that does no work (not yet, or no more) can always go."""
    return bool(pod["metadata"].get("deletionTimestamp")) or _phase(pod) in ("Succeeded", "Failed", "Pending")


def unhealthy_may_go(budget: Tree) -> bool:
    """Whether a pod that is not ready can go without counting."""
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status: Tree = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


def covering_budgets(budgets: ResourceStore, pod: CachedObject) -> list[CachedObject]:
    """The budgets of the pod's namespace that select it."""
    found = []
    for budget in budgets.cache.list(budgets.scope(pod.namespace)).objects:
        selector = (budget.tree().get("spec") or {}).get("selector")
        if selector is not None and Matcher(from_object(selector), ()).matches(pod):
            found.append(budget)
    return found


async def _count(budgets: ResourceStore, budget: CachedObject, pod: str, *, dry_run: bool) -> None:
    async def attempt(current: CachedObject) -> Any:
        tree = spent(current.tree(), pod)
        return None if dry_run else await budgets.update(current, tree)

    await retrying(budgets, budget.namespace, budget.name, attempt)


def spent(budget: Tree, pod: str) -> Tree:
    """The budget after one more eviction. 429 when there is nothing left or nobody knows, 403 when it is unusable."""
    metadata, status = budget["metadata"], dict(budget.get("status") or {})
    name, allowed = metadata["name"], status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        raise _undecided(name)
    if allowed < 0:
        raise errors.forbidden("poddisruptionbudget", "policy", name, "pdb disruptions allowed is negative")
    disrupted = dict(status.get("disruptedPods") or {})
    if len(disrupted) > MOST_DISRUPTED:
        text = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise errors.forbidden("poddisruptionbudget", "policy", name, text)
    if allowed == 0:
        desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise _refused(f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
    status["disruptionsAllowed"] = allowed - 1
    if allowed == 1:
        status["conditions"] = with_condition(
            status.get("conditions"),
            "DisruptionAllowed",
            False,
            reason="InsufficientPods",
            generation=status.get("observedGeneration", 0),
        )
    disrupted[pod] = time.now()
    status["disruptedPods"] = dict(sorted(disrupted.items()))
    return {**budget, "status": status}


def _refused(text: str, seconds: int = 0) -> APIError:
    details: Tree = {"causes": [{"reason": "DisruptionBudget", "message": text}]}
    if seconds:
        details["retryAfterSeconds"] = seconds
    return APIError("TooManyRequests", REFUSAL, details=details)


def _undecided(name: str) -> APIError:
    return _refused(f"The disruption budget {name} is still being processed by the server.", 10)


def _of_version(options: DeleteOptions, pod: Tree) -> DeleteOptions:
    """Only the pod that was looked at is deleted, not what it has become meanwhile."""
    return replace(options, resource_version=pod["metadata"]["resourceVersion"])


async def _remove(ctx: RequestContext, scope: Scope, options: DeleteOptions) -> None:
    """Note in the pod why it goes, then delete it."""
    namespace, name = ctx.info.namespace, ctx.info.name
    if not options.dry_run:

        async def attempt(current: CachedObject) -> CachedObject:
            pod = current.tree()
            check_preconditions(pod, scope.definition, options.uid, options.resource_version)
            status = with_pod_condition(
                pod, "DisruptionTarget", reason="EvictionByEvictionAPI", message="Eviction API: evicting"
            )
            return await scope.store.update(current, {**pod, "status": status})

        noted: CachedObject = await retrying(scope.store, namespace, name, attempt)
        if options.resource_version is not None:
            options = replace(options, resource_version=str(noted.revision))
    await delete_object(ctx, scope, namespace, name, options, admitted=True)

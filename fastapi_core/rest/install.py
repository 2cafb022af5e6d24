"""Binds a resource to its verb handlers: what `request.routing.resource_routes` turns into routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi_core import errors
from fastapi_core.admission.chain import AdmissionChain
from fastapi_core.authz.base import Authorizer
from fastapi_core.http.exchange import Answer
from fastapi_core.registry.definition import ResourceDefinition
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.rest import (
    binding,
    create,
    delete,
    finalize,
    get,
    patch,
    reviews,
    scale,
    subresources,
    token_review,
    update,
)
from fastapi_core.rest import list as listing
from fastapi_core.rest.backends import Backends
from fastapi_core.rest.options import list_options
from fastapi_core.rest.scope import Scope
from fastapi_core.rest.watch import WatchServer


def endpoints(scope: Scope, watches: WatchServer, backends: Backends) -> dict[str, Endpoint]:
    """Verb (or `subresource:verb`) -> endpoint of a stored resource."""
    made: dict[str, Callable[[], Endpoint]] = {
        "get": lambda: get.getter(scope),
        "list": lambda: listing.lister(scope, watches),
        "watch": lambda: _deprecated_watch(scope, watches),
        "create": lambda: create.creator(scope),
        "update": lambda: update.updater(scope),
        "patch": lambda: patch.patcher(scope),
        "delete": lambda: delete.deleter(scope),
        "deletecollection": lambda: delete.collection_deleter(scope),
    }
    table = {verb: made[verb]() for verb in scope.definition.verbs if verb in made}
    for name, subresource in scope.definition.subresources.items():
        for verb in subresource.verbs:
            endpoint = _subresource(scope, name, verb) or subresources.endpoint(scope, name, verb, backends)
            table[f"{name}:{verb}"] = endpoint or _unavailable
    return table


def virtual_endpoints(
    definition: ResourceDefinition, authorizer: Authorizer, backends: Backends, admission: AdmissionChain
) -> dict[str, Endpoint]:
    """Endpoints of a resource that is answered and never stored."""
    if definition.kind == "Binding":
        return {"create": binding.collection_binder(definition, backends)}
    answer = _answerer(definition, authorizer, backends)
    if answer is not None:
        return {"create": reviews.reviewed(definition, admission, answer)}
    return dict.fromkeys(definition.verbs, _unavailable)


def _answerer(definition: ResourceDefinition, authorizer: Authorizer, backends: Backends) -> reviews.Answerer | None:
    """What answers reviews of this kind; None for other kinds."""
    if definition.kind == "SelfSubjectReview":
        return reviews.self_subject_review
    if definition.kind == "TokenReview" and backends.reviewer is not None:
        return token_review.token_review(*backends.reviewer)
    if definition.kind in ("SelfSubjectAccessReview", "SubjectAccessReview", "LocalSubjectAccessReview"):
        return reviews.access_review(definition, authorizer)
    if definition.kind == "SelfSubjectRulesReview":
        return reviews.rules_review(authorizer)
    return None


def _subresource(scope: Scope, name: str, verb: str) -> Endpoint | None:
    if name == "status":
        scope = subresources.status_scope(scope)
        if verb == "get":
            return get.getter(scope)
        return update.updater(scope, "status") if verb == "update" else patch.patcher(scope, "status")
    if name == "scale":
        return {"get": scale.getter, "update": scale.updater, "patch": scale.patcher}[verb](scope)
    if name == "finalize":
        return finalize.finalizer(scope)
    return None


def _deprecated_watch(scope: Scope, watches: WatchServer) -> Endpoint:
    """The old /watch/ paths: a watch whatever the query says."""

    def watch(ctx: RequestContext) -> Answer | Awaitable[Answer]:
        return watches.start(ctx, scope, list_options(ctx.request.query, deprecated_watch=True))

    return watch


def warned(endpoint: Endpoint, text: str) -> Endpoint:
    """The endpoint with a Warning on every answer."""

    def warn(ctx: RequestContext) -> Answer | Awaitable[Answer]:
        ctx.warn(text)
        return endpoint(ctx)

    return warn


def _unavailable(ctx: RequestContext) -> Answer:
    """A subresource the discovery documents name and this server does not carry out."""
    info = ctx.info
    what = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    raise errors.APIError("", f"{what} is not implemented by this server", code=501)

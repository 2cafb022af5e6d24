"""Binds a resource to its verb handlers: what `request.routing.resource_routes` turns into routes.

An endpoint, and all that only it needs, is made with its first request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from fastapi_core import errors
from fastapi_core.admission.chain import AdmissionChain
from fastapi_core.authz.base import Authorizer
from fastapi_core.http.exchange import Answer
from fastapi_core.later import later
from fastapi_core.registry.definition import ResourceDefinition
from fastapi_core.request.context import Endpoint, RequestContext

if TYPE_CHECKING:
    from fastapi_core.meta import selectors
    from fastapi_core.rest import (
        binding,
        create,
        delete,
        finalize,
        get,
        options,
        patch,
        render,
        reviews,
        scale,
        subresources,
        token_review,
        update,
    )
    from fastapi_core.rest import list as listing
    from fastapi_core.rest.backends import Backends
    from fastapi_core.rest.scope import Scope
    from fastapi_core.rest.watch import WatchServer
else:
    binding = later("fastapi_core.rest.binding")
    create = later("fastapi_core.rest.create", soon=True)
    delete = later("fastapi_core.rest.delete")
    finalize = later("fastapi_core.rest.finalize")
    get = later("fastapi_core.rest.get", soon=True)
    listing = later("fastapi_core.rest.list", soon=True)
    options = later("fastapi_core.rest.options")
    patch = later("fastapi_core.rest.patch")
    render = later("fastapi_core.rest.render")
    reviews = later("fastapi_core.rest.reviews")
    scale = later("fastapi_core.rest.scale")
    selectors = later("fastapi_core.meta.selectors")
    subresources = later("fastapi_core.rest.subresources")
    token_review = later("fastapi_core.rest.token_review")
    update = later("fastapi_core.rest.update")


def endpoints(
    definition: ResourceDefinition, scope: Callable[[], Scope], watches: WatchServer, backends: Backends
) -> dict[str, Endpoint]:
    """Verb (or `subresource:verb`) -> endpoint of a stored resource; `scope` is asked with the first request."""
    made: dict[str, Callable[[], Endpoint]] = {
        "get": lambda: get.getter(scope()),
        "list": lambda: listing.lister(scope(), watches),
        "watch": lambda: _deprecated_watch(scope(), watches),
        "create": lambda: create.creator(scope()),
        "update": lambda: update.updater(scope()),
        "patch": lambda: patch.patcher(scope()),
        "delete": lambda: delete.deleter(scope()),
        "deletecollection": lambda: delete.collection_deleter(scope()),
    }
    table = {verb: made_later(made[verb]) for verb in definition.verbs if verb in made}
    for name, subresource in definition.subresources.items():
        for verb in subresource.verbs:
            table[f"{name}:{verb}"] = made_later(partial(_subresource, scope, name, verb, backends))
    return table


def made_later(make: Callable[[], Endpoint]) -> Endpoint:
    """An endpoint that is made with its first request."""
    made: Endpoint | None = None

    def endpoint(ctx: RequestContext) -> Answer | Awaitable[Answer]:
        nonlocal made
        if made is None:
            made = make()
        return made(ctx)

    return endpoint


def virtual_endpoints(
    definition: ResourceDefinition, authorizer: Authorizer, backends: Backends, admission: AdmissionChain
) -> dict[str, Endpoint]:
    """Endpoints of a resource that is answered and never stored."""

    def make() -> Endpoint:
        if definition.kind == "Binding":
            return render.negotiated(binding.collection_binder(definition, backends))
        answer = _answerer(definition, authorizer, backends)
        return _unavailable if answer is None else render.negotiated(reviews.reviewed(definition, admission, answer))

    return {verb: made_later(make) for verb in definition.verbs}


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


#: Subresources that show their object, and not as a Table.
_NO_TABLES = {
    ("", "pods", "ephemeralcontainers"),
    ("", "pods", "resize"),
    ("apiextensions.k8s.io", "customresourcedefinitions", "status"),
    ("apiregistration.k8s.io", "apiservices", "status"),
    ("certificates.k8s.io", "certificatesigningrequests", "approval"),
    ("resource.k8s.io", "resourceclaims", "status"),
}


def _subresource(find: Callable[[], Scope], name: str, verb: str, backends: Backends) -> Endpoint:
    scope = find()
    made = _made_subresource(scope, name, verb, backends)
    definition = scope.definition
    return render.negotiated(made) if (definition.group, definition.plural, name) in _NO_TABLES else made


def _made_subresource(scope: Scope, name: str, verb: str, backends: Backends) -> Endpoint:
    if name == "status":
        scope = subresources.status_scope(scope)
        if verb == "get":
            return get.getter(scope)
        return update.updater(scope, "status") if verb == "update" else patch.patcher(scope, "status")
    if name == "scale":
        made = {"get": scale.getter, "update": scale.updater, "patch": scale.patcher}[verb](scope)
        return render.negotiated(made, scope=scope, tables=True)
    if name == "finalize":
        return render.negotiated(finalize.finalizer(scope))
    return subresources.endpoint(scope, name, verb, backends) or _unavailable


def _deprecated_watch(scope: Scope, watches: WatchServer) -> Endpoint:
    """The old /watch/ paths: a watch whatever the query says."""

    def watch(ctx: RequestContext) -> Answer | Awaitable[Answer]:
        asked = options.list_options(ctx.request.query, deprecated_watch=True)
        name = ctx.info.name
        if name and scope.matcher(asked) is not None:
            fields = selectors.parse_fields(asked.field_selector)
            named = [value for field, operator, value in fields if (field, operator) == ("metadata.name", "=")]
            if fields and named[:1] != [name]:
                raise errors.bad_request("fieldSelector metadata.name doesn't match requested name")
        return watches.start(ctx, scope, asked)

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

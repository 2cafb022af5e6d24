"""Reviews: questions about identity and rights that are answered and not stored."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from fastapi_core import errors
from fastapi_core.authz.base import Attributes, Authorizer, Decision, Verdict
from fastapi_core.errors import FieldError
from fastapi_core.http.exchange import Response
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.registry.lifecycle import timestamp
from fastapi_core.request.context import Endpoint, RequestContext, User
from fastapi_core.rest import render
from fastapi_core.rest.body import Expected, read_object
from fastapi_core.rest.options import write_options
from fastapi_core.rest.token_review import user_info

GROUP = "authorization.k8s.io"


def _read(ctx: RequestContext, definition: ResourceDefinition) -> Tree:
    options = write_options(ctx.request.query, "CreateOptions")
    expected = Expected(definition.kind, definition.group, definition.version, definition.type)
    return read_object(ctx, expected, options.field_validation)


def self_subject_review(definition: ResourceDefinition) -> Endpoint:
    """Who the server thinks the caller is (`kubectl auth whoami`)."""

    def review(ctx: RequestContext) -> Response:
        tree = _read(ctx, definition)
        answer = {
            "kind": tree["kind"],
            "apiVersion": tree["apiVersion"],
            "metadata": {"creationTimestamp": timestamp()},
            "status": {"userInfo": user_info(ctx.user)},
        }
        return render.tree(ctx, answer, status=201)

    return review


def access_review(definition: ResourceDefinition, authorizer: Authorizer) -> Endpoint:
    """Self-, local- and SubjectAccessReview: what the authorizer says of the attributes in the body."""
    own = definition.kind == "SelfSubjectAccessReview"

    def review(ctx: RequestContext) -> Response | Awaitable[Response]:
        tree = _read(ctx, definition)
        spec = tree.get("spec") or {}
        _check(spec, own=own)
        verdict = authorizer.authorize(_attributes(spec, ctx.user if own else _subject(spec)))
        if isinstance(verdict, Awaitable):
            return _later(ctx, tree, verdict)
        return _answer(ctx, tree, verdict)

    return review


async def _later(ctx: RequestContext, tree: Tree, pending: Awaitable[Verdict]) -> Response:
    return _answer(ctx, tree, await pending)


def _answer(ctx: RequestContext, tree: Tree, verdict: Verdict) -> Response:
    status: dict[str, Any] = {"allowed": verdict.decision is Decision.ALLOW}
    if verdict.decision is Decision.DENY:
        status["denied"] = True
    if verdict.reason:
        status["reason"] = verdict.reason
    tree["status"] = status
    tree.setdefault("metadata", {})
    return render.tree(ctx, tree, status=201)


def _check(spec: Tree, *, own: bool) -> None:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    problems = []
    if resource is not None and path is not None:
        shown = {"Path": path.get("path", ""), "Verb": path.get("verb", "")}
        problems.append(
            FieldError(
                "Invalid value",
                "spec.nonResourceAttributes",
                "cannot be specified in combination with resourceAttributes",
                shown,
            )
        )
    elif resource is None and path is None:
        problems.append(
            FieldError(
                "Invalid value",
                "spec.resourceAttributes",
                "exactly one of nonResourceAttributes or resourceAttributes must be specified",
            )
        )
    if not own and not spec.get("user") and not spec.get("groups"):
        problems.append(FieldError("Invalid value", "spec.user", "at least one of user or group must be specified", ""))
    if problems:
        raise errors.invalid("", GROUP, "", problems)


def _subject(spec: Tree) -> User:
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra)


def _attributes(spec: Tree, user: User) -> Attributes:
    resource = spec.get("resourceAttributes")
    if resource is None:
        path = spec["nonResourceAttributes"]
        return Attributes(user, path.get("verb", ""), "", "", "", "", "", "", path.get("path", ""), False, "", "")
    asked = resource.get
    return Attributes(
        user,
        asked("verb", ""),
        asked("group", ""),
        asked("version", ""),
        asked("namespace", ""),
        asked("resource", ""),
        asked("subresource", ""),
        asked("name", ""),
        "",
        True,
        "",
        "",
    )

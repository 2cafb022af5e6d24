"""Reviews: questions about identity and rights that are answered and not stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi_core import errors
from fastapi_core.admission.chain import AdmissionChain, Attributes
from fastapi_core.authz.base import NOTHING, Authorizer, Decision, RuleLister, Verdict
from fastapi_core.http.exchange import Response
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.registry.lifecycle import timestamp
from fastapi_core.registry.ownership import tracker
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.rest import render
from fastapi_core.rest.body import Expected, read_object
from fastapi_core.rest.create import manager_of, settle_namespace_of
from fastapi_core.rest.options import write_options
from fastapi_core.rest.review_spec import GROUP, LOCAL, Asked, asked, check
from fastapi_core.rest.token_review import user_info

Answerer = Callable[[RequestContext, Tree], "Response | Awaitable[Response]"]
"""What answers a review that was let in."""


def reviewed(definition: ResourceDefinition, admission: AdmissionChain, answer: Answerer) -> Endpoint:
    """POST of a review: decoded, let in by admission like any other object, answered."""

    owners = tracker(definition)

    def review(ctx: RequestContext) -> Response | Awaitable[Response]:
        options = write_options(ctx.request.query, "CreateOptions")
        expected = Expected(definition.kind, definition.group, definition.version, definition.type)
        tree = read_object(ctx, expected, options.field_validation)
        metadata = tree["metadata"] = dict(tree.get("metadata") or {})
        settle_namespace_of(definition, ctx.info.namespace, metadata)
        owners.update(None, tree, manager_of(ctx, options), timestamp())
        attributes = Attributes(
            "CREATE",
            definition,
            "",
            ctx.info.namespace,
            metadata.get("name") or "",
            tree,
            None,
            options.dry_run,
            ctx,
            options=options,
        )
        pending = admission.admit(attributes)
        if pending is None:
            pending = admission.check(attributes)
            return answer(ctx, attributes.object or tree) if pending is None else _admitted(ctx, attributes, pending)
        return _admitted(ctx, attributes, _both(admission, attributes, pending))

    async def _admitted(ctx: RequestContext, attributes: Attributes, pending: Awaitable[None]) -> Response:
        await pending
        found = answer(ctx, attributes.object or {})
        return found if isinstance(found, Response) else await found

    return review


async def _both(admission: AdmissionChain, attributes: Attributes, mutating: Awaitable[None]) -> None:
    await mutating
    await admission.validate(attributes)


def self_subject_review(ctx: RequestContext, tree: Tree) -> Response:
    """Who the server thinks the caller is (`kubectl auth whoami`)."""
    answer = {
        "kind": tree["kind"],
        "apiVersion": tree["apiVersion"],
        "metadata": {"creationTimestamp": timestamp()},
        "status": {"userInfo": user_info(ctx.user)},
    }
    return render.tree(ctx, answer, status=201)


def access_review(definition: ResourceDefinition, authorizer: Authorizer) -> Answerer:
    """Self-, local- and SubjectAccessReview: what the authorizer says of the attributes in the body."""

    def review(ctx: RequestContext, tree: Tree) -> Response | Awaitable[Response]:
        problems = check(tree, definition.kind)
        if problems:
            raise errors.invalid("", GROUP, "", problems)
        if definition.kind == LOCAL and not ctx.info.namespace:
            raise errors.bad_request("namespace is required on this type: ")
        question = asked(tree["spec"], definition.kind, ctx.user)
        verdict = authorizer.authorize(question.attributes)
        if not isinstance(verdict, Verdict):
            return _later(ctx, tree, question, verdict)
        return _answer(ctx, tree, question, verdict)

    return review


async def _later(ctx: RequestContext, tree: Tree, question: Asked, pending: Awaitable[Verdict]) -> Response:
    return _answer(ctx, tree, question, await pending)


def _answer(ctx: RequestContext, tree: Tree, question: Asked, verdict: Verdict) -> Response:
    status: dict[str, Any] = {"allowed": verdict.decision is Decision.ALLOW}
    if verdict.decision is Decision.DENY:
        status["denied"] = True
    if verdict.reason:
        status["reason"] = verdict.reason
    problems = "; ".join(problem for problem in (verdict.error, *question.ignored) if problem)
    if problems:
        status["evaluationError"] = problems
    tree["status"] = status
    return render.tree(ctx, tree, status=201)


def rules_review(authorizer: Authorizer) -> Answerer:
    """What the caller may do in a namespace, as far as the authorizers can list it (`kubectl auth can-i --list`)."""

    def review(ctx: RequestContext, tree: Tree) -> Response:
        namespace = (tree.get("spec") or {}).get("namespace") or ""
        if not namespace:
            raise errors.bad_request("no namespace on request")
        grants = authorizer.grants(ctx.user, namespace) if isinstance(authorizer, RuleLister) else NOTHING
        status: dict[str, Any] = {
            "resourceRules": grants.resource_rules,
            "nonResourceRules": grants.path_rules,
            "incomplete": grants.incomplete,
        }
        if grants.error:
            status["evaluationError"] = grants.error
        # The question is not repeated in the answer.
        answer = {"kind": tree["kind"], "apiVersion": tree["apiVersion"], "metadata": {}, "spec": {}, "status": status}
        return render.tree(ctx, answer, status=201)

    return review

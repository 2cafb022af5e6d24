"""Second questions to the authorizer, where a request turns out to do more than its verb says."""

from __future__ import annotations

from fastapi_core.authz.base import ALLOWED, Attributes, Decision, Verdict, denied
from fastapi_core.errors import forbidden, internal
from fastapi_core.request.context import RequestContext
from fastapi_core.rest.scope import Scope


async def check_create(ctx: RequestContext, scope: Scope) -> None:
    """An update or apply creates: 403 unless the user may create the object the request names."""
    attributes = _create(ctx, "")
    verdict = await _ask(scope, attributes)
    if verdict.decision is not Decision.ALLOW:
        if verdict.error:
            raise internal(verdict.error)
        raise denied(attributes, verdict.reason)


async def check_connect(ctx: RequestContext, scope: Scope) -> None:
    """A WebSocket begins with a GET, but lets the client do what otherwise takes a POST: 403 without that right."""
    info = ctx.info
    verdict = await _ask(scope, _create(ctx, info.subresource))
    if verdict.decision is not Decision.ALLOW:
        raise forbidden(info.resource, info.api_group, info.name, verdict.reason)


def _create(ctx: RequestContext, subresource: str) -> Attributes:
    info = ctx.info
    return Attributes(
        ctx.user, "create", info.api_group, info.api_version, info.namespace, info.resource, subresource, info.name,
        info.path, True, "", "",
    )  # fmt: skip


async def _ask(scope: Scope, attributes: Attributes) -> Verdict:
    if scope.authorizer is None:
        return ALLOWED
    answer = scope.authorizer.authorize(attributes)
    return answer if isinstance(answer, Verdict) else await answer

"""The second question to the authorizer: an update or apply that turns out to create needs the right to create."""

from __future__ import annotations

from fastapi_core.authz.base import Attributes, Decision, Verdict, denied
from fastapi_core.request.context import RequestContext
from fastapi_core.rest.scope import Scope


async def check_create(ctx: RequestContext, scope: Scope) -> None:
    """403 unless the user may create the object the request names."""
    if scope.authorizer is None:
        return
    info = ctx.info
    attributes = Attributes(
        ctx.user,
        "create",
        info.api_group,
        info.api_version,
        info.namespace,
        info.resource,
        "",
        info.name,
        info.path,
        True,
        "",
        "",
    )
    answer = scope.authorizer.authorize(attributes)
    verdict = answer if isinstance(answer, Verdict) else await answer
    if verdict.decision is not Decision.ALLOW:
        raise denied(attributes, verdict.reason)

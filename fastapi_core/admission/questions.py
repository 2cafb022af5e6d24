"""What plugins ask the authorizer about the one who makes the request."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import NamedTuple

from fastapi_core.admission.chain import Attributes
from fastapi_core.authz import base
from fastapi_core.authz.base import Authorizer, Decision


class Reply(NamedTuple):
    allowed: bool
    reason: str
    error: str
    """What kept an authorizer from judging, as Go prints an error: `<nil>` for nothing."""


class Questions:
    """Further rights a request needs, beyond those it was let in with."""

    def __init__(self, authorizer: Authorizer) -> None:
        self.authorizer = authorizer

    async def ask(
        self,
        attributes: Attributes,
        verb: str,
        *,
        group: str,
        version: str,
        resource: str,
        subresource: str = "",
        namespace: str = "",
        name: str = "",
    ) -> Reply:
        """Whether the requester may do this."""
        asked = base.Attributes(
            attributes.context.user, verb, group, version, namespace, resource, subresource, name, "", True, "", ""
        )
        answer = self.authorizer.authorize(asked)
        verdict = await answer if isinstance(answer, Awaitable) else answer
        return Reply(verdict.decision is Decision.ALLOW, verdict.reason, verdict.error or "<nil>")

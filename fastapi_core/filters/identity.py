"""Authentication and authorization as filters."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from fastapi_core.authn.base import Authenticator
from fastapi_core.authz.base import Attributes, Authorizer, Decision, Verdict, attributes_of, denied
from fastapi_core.errors import APIError, unauthorized
from fastapi_core.obs.catalog import Metrics
from fastapi_core.request.context import User

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext

#: Verdicts remembered; the whole memory is dropped when it is full or the policy objects changed.
_MEMORY = 8192


class Authentication:
    """Finds out who asks, or 401."""

    def __init__(self, authenticator: Authenticator, metrics: Metrics) -> None:
        self._authenticate = authenticator.authenticate
        self._success = metrics.authentication_attempts.labels("success")
        self._failure = metrics.authentication_attempts.labels("failure")
        self._error = metrics.authentication_attempts.labels("error")

    def before(self, ctx: RequestContext) -> Awaitable[None] | None:
        try:
            user = self._authenticate(ctx)
        except APIError:
            self._error.inc()
            raise
        if isinstance(user, User):
            self._success.inc()
            ctx.user = user
            return None
        if user is None:
            self._failure.inc()
            raise unauthorized()
        return self._wait(ctx, user)

    async def _wait(self, ctx: RequestContext, pending: Awaitable[User | None]) -> None:
        try:
            user = await pending
        except APIError:
            self._error.inc()
            raise
        if user is None:
            self._failure.inc()
            raise unauthorized()
        self._success.inc()
        ctx.user = user


class Authorization:
    """Asks the authorizer, or remembers what it said to the same attributes under the same policy objects."""

    def __init__(self, authorizer: Authorizer, metrics: Metrics) -> None:
        self._authorizer = authorizer
        self._memory: dict[Attributes, Verdict] = {}
        self._generation = authorizer.generation
        self._allowed = metrics.authorization_attempts.labels("allowed")
        self._denied = metrics.authorization_attempts.labels("denied")

    def before(self, ctx: RequestContext) -> Awaitable[None] | None:
        memory = self._memory
        if self._generation != self._authorizer.generation or len(memory) >= _MEMORY:
            memory = self._memory = {}
            self._generation = self._authorizer.generation
        attributes = attributes_of(ctx)
        verdict = memory.get(attributes)
        if verdict is None:
            answer = self._authorizer.authorize(attributes)
            if not isinstance(answer, Verdict):
                return self._wait(attributes, answer)
            verdict = memory[attributes] = answer
        self._conclude(attributes, verdict)
        return None

    async def _wait(self, attributes: Attributes, pending: Awaitable[Verdict]) -> None:
        # An awaited verdict is remembered by the authorizer that fetched it: only it knows for how long.
        self._conclude(attributes, await pending)

    def _conclude(self, attributes: Attributes, verdict: Verdict) -> None:
        if verdict.decision is Decision.ALLOW:
            self._allowed.inc()
            return
        self._denied.inc()
        raise denied(attributes, verdict.reason)

"""Authentication and authorization as filters."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from fastapi_core.authn.base import Authenticator
from fastapi_core.authz.base import Attributes, AttributesKey, Authorizer, Decision, Verdict, attributes_key, denied
from fastapi_core.errors import APIError, unauthorized
from fastapi_core.obs.catalog import Metrics
from fastapi_core.request.context import User
from fastapi_core.request.info import internal_error

if TYPE_CHECKING:
    from fastapi_core.http.exchange import Answer
    from fastapi_core.request.context import RequestContext

#: Verdicts remembered; the whole memory is dropped when it is full or the policy objects changed.
_MEMORY = 8192
#: Longest request target whose verdict is remembered: what a client sends must not decide how much we keep.
_LONGEST = 512


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
            self._success.value += 1
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
        self._memory: dict[AttributesKey, Verdict] = {}
        self._generation = authorizer.generation
        self._allowed = metrics.authorization_attempts.labels("allowed")
        self._denied = metrics.authorization_attempts.labels("denied")
        self._unsure = metrics.authorization_attempts.labels("no-opinion")
        self._error = metrics.authorization_attempts.labels("error")

    def before(self, ctx: RequestContext) -> Answer | Awaitable[Answer | None] | None:
        memory = self._memory
        if self._generation != self._authorizer.generation or len(memory) >= _MEMORY:
            memory = self._memory = {}
            self._generation = self._authorizer.generation
        key = attributes_key(ctx)
        verdict = memory.get(key)
        if verdict is None:
            answer = self._authorizer.authorize(Attributes(*key))
            if not isinstance(answer, Verdict):
                return self._wait(ctx, key, answer)
            verdict = answer
            if verdict.lasting and len(ctx.request.target) <= _LONGEST:
                memory[key] = verdict
        return self._conclude(ctx, key, verdict)

    async def _wait(self, ctx: RequestContext, key: AttributesKey, pending: Awaitable[Verdict]) -> Answer | None:
        # An awaited verdict is remembered by the authorizer that fetched it: only it knows for how long.
        return self._conclude(ctx, key, await pending)

    def _conclude(self, ctx: RequestContext, key: AttributesKey, verdict: Verdict) -> Answer | None:
        ctx.reason = verdict.reason
        if verdict.decision is Decision.ALLOW:
            ctx.decision = "allow"
            self._allowed.value += 1
            return None
        if verdict.error:
            ctx.reason = "internal error"
            self._error.inc()
            return internal_error(ctx.request.target, verdict.error)
        ctx.decision = "forbid"
        (self._denied if verdict.decision is Decision.DENY else self._unsure).inc()
        ctx.headers.append((b"X-Content-Type-Options", b"nosniff"))
        raise denied(Attributes(*key), verdict.reason)

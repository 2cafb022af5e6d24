"""The endpoint of a group version that another server answers for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import TYPE_CHECKING

from fastapi_core.aggregation.headers import (
    Dropped,
    Identities,
    UnsendableError,
    asked,
    forwarded,
    relayed,
    without_token,
)
from fastapi_core.aggregation.passage import Passage
from fastapi_core.aggregation.transport import Transports
from fastapi_core.http.client import Target, UpstreamError
from fastapi_core.http.exchange import Answer, Header, Response
from fastapi_core.http.pool import Pool
from fastapi_core.http.relay import Relay
from fastapi_core.obs import logs
from fastapi_core.records import dataclass
from fastapi_core.registry.services import Place, Resolver, ServiceError
from fastapi_core.request.status import text

if TYPE_CHECKING:
    from fastapi_core.aggregation.directory import APIService
    from fastapi_core.obs.catalog import Metrics
    from fastapi_core.request.context import RequestContext
    from fastapi_core.rest.upstream import Upstreams

log = logs.get("aggregation")

UNAVAILABLE = "service unavailable"


@dataclass(slots=True)
class Front:
    """What all proxied groups share."""

    pool: Pool
    resolver: Resolver
    transports: Transports
    upstreams: Upstreams
    """Tunnels, which belong to no pool."""
    dropped: Dropped = field(default_factory=Dropped)
    identities: Identities = field(default_factory=Identities)
    reject_redirects: bool = True
    timeout: float = 0.0
    """Seconds for the head of an answer; 0 leaves it to the request's own deadline."""
    retry_after: int = 0
    """Told to clients while a backend is known dead; 0 tells nothing, as the reference."""
    breaker: int = 0
    """Requests in a row a backend must fail for further ones to be refused at once; 0: never."""
    broken: Callable[[str], object] | None = None
    """Told the name of an APIService that is refused from now on, so that it is probed."""
    metrics: Metrics | None = None
    endless: set[Relay] = field(default_factory=set)
    """Streams under way that have no end of their own."""

    async def shutdown(self) -> None:
        """End the streams that have no end of their own."""
        for relay in tuple(self.endless):
            relay.cut()


class Proxied:
    """`Endpoint` of one APIService; `any_size` lets the dispatch hand it bodies of any length."""

    any_size = True

    def __init__(self, front: Front, service: APIService) -> None:
        self._front = front
        self._targets: dict[Place, Target] = {}
        self._failures = 0
        self.service = service

    @property
    def refusing(self) -> bool:
        """Whether requests are refused because too many in a row have failed."""
        return 0 < self._front.breaker <= self._failures

    def mend(self) -> None:
        """The backend has answered."""
        self._failures = 0

    def unreachable(self, reason: str) -> Response:
        """What a request gets that the backend has not answered."""
        self._failures += 1
        if self._failures == self._front.breaker and self._front.broken is not None:
            log.warning("Requests are refused until a probe passes", apiservice=self.service.name, error=reason)
            self._front.broken(self.service.name)
        return text(503, f"error trying to reach service: {reason}")

    def update(self, service: APIService) -> None:
        """It is registered otherwise now, or available or not."""
        old, self.service = self.service, service
        if service.way != old.way:
            self.renew()

    def renew(self) -> None:
        """Connect anew from now on: another certificate is shown, or expected."""
        old, self._targets = self._targets, {}
        for target in old.values():
            self._front.pool.drop(target)

    def __call__(self, ctx: RequestContext) -> Answer | Awaitable[Answer]:
        front, service = self._front, self.service
        if not service.available or service.backing is None or self.refusing:
            answer = self._refusal(ctx, 503, UNAVAILABLE)
            if front.retry_after:
                answer.headers.append((b"Retry-After", str(front.retry_after).encode()))
            return answer
        try:
            targets = [self._target(place) for place in front.resolver.places(*service.backing)]
            identity = front.identities.lines(ctx.user)
        except ServiceError as error:
            log.warning("Service leads nowhere", apiservice=service.name, error=str(error))
            return self._refusal(ctx, 503, UNAVAILABLE)
        except UnsendableError as error:
            return text(503, f"error trying to reach service: {error}")
        except ValueError as error:
            return self._refusal(ctx, 500, str(error))
        if ctx.request.upgrade and _upgrades(ctx):
            return self._tunnel(ctx, targets[0], identity)
        return Passage(self, front, ctx, targets, identity).begin()

    def _target(self, place: Place) -> Target:
        found = self._targets.get(place)
        if found is None:
            if len(self._targets) > 256:
                self.renew()
            found = self._targets[place] = self._front.transports.target(self.service, place)
        return found

    def _refusal(self, ctx: RequestContext, status: int, message: str) -> Response:
        if self._front.metrics is not None:
            info = ctx.info
            where = (info.api_group, info.api_version, info.resource, info.subresource, "", "aggregator")
            self._front.metrics.terminations.labels(info.verb.upper(), *where, str(status)).inc()
        return text(status, message)

    async def _tunnel(self, ctx: RequestContext, target: Target, identity: bytes) -> Answer:
        front, request = self._front, ctx.request
        upgrade = request.header(b"upgrade") or b""
        sent: list[Header] = [(b"host", target.authority.encode()), *without_token(forwarded(ctx, front.dropped))]
        sent += [(name, value) for name, _, value in (line.partition(b": ") for line in identity.split(b"\r\n")[:-1])]
        sent += [(b"connection", b"Upgrade"), (b"upgrade", upgrade)]
        if request.body:
            sent.append((b"content-length", str(len(request.body)).encode()))
        sent.append((b"x-forwarded-host", target.authority.encode()))
        try:
            reply = await front.upstreams.fetch(
                target, request.method, asked(request), sent, request.body, upgrade=True
            )
        except UpstreamError as error:
            return text(503, str(error))
        if reply.status == 101:
            agreed = [(b"Connection", b"Upgrade"), (b"Upgrade", reply.header(b"upgrade"))]
            return reply.stream([*relayed(reply.headers), *agreed])
        if reply.status < 400:
            reply.release()
            return text(503, f"invalid upgrade response: status code {reply.status}")
        return await reply.answer(relayed(reply.headers))


def _upgrades(ctx: RequestContext) -> bool:
    values = ctx.request.header_all(b"connection")
    return any(token.strip().lower() == b"upgrade" for value in values for token in value.split(b","))

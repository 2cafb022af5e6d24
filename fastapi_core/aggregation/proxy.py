"""The endpoint of a group version that another server answers for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import TYPE_CHECKING

from fastapi_core.aggregation.headers import Dropped, Identities, UnsendableError, forwarded, relayed, without_token
from fastapi_core.aggregation.relay import Relay
from fastapi_core.aggregation.resolve import Place, ResolveError, Resolver
from fastapi_core.aggregation.transport import Transports
from fastapi_core.filters.driver import Overtime
from fastapi_core.http.client import Target, UpstreamError
from fastapi_core.http.exchange import Answer, Header, Response, Stream
from fastapi_core.http.pool import Connection, Pool
from fastapi_core.obs import logs
from fastapi_core.records import dataclass
from fastapi_core.request.status import text

if TYPE_CHECKING:
    from fastapi_core.aggregation.directory import APIService
    from fastapi_core.obs.catalog import Metrics
    from fastapi_core.request.context import RequestContext
    from fastapi_core.rest.upstream import Upstreams

log = logs.get("aggregation")

UNAVAILABLE = "service unavailable"
DISCOVERY_SECONDS = 5.0
"""How long the document of a group version is waited for."""
#: Methods that may be sent again when a kept connection turns out to have ended.
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_BODIES = frozenset({"POST", "PUT", "PATCH"})


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
        self.update(service)

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
        self.service = service
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
            targets = [self._target(place) for place in front.resolver.places(service.backing)]
            identity = front.identities.lines(ctx.user)
        except ResolveError as error:
            log.warning("Service leads nowhere", apiservice=service.name, error=str(error))
            return self._refusal(ctx, 503, UNAVAILABLE)
        except UnsendableError as error:
            return text(503, f"error trying to reach service: {error}")
        except ValueError as error:
            return self._refusal(ctx, 500, str(error))
        if ctx.request.upgrade and _upgrades(ctx):
            return self._tunnel(ctx, targets[0], identity)
        return Passing(self, ctx, targets, identity).begin()

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

    @property
    def front(self) -> Front:
        return self._front

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
            reply = await front.upstreams.fetch(target, request.method, _asked(ctx), sent, request.body)
        except UpstreamError as error:
            return text(503, str(error))
        if reply.status == 101:
            agreed = [(b"Connection", b"Upgrade"), (b"Upgrade", reply.header(b"upgrade") or b"")]
            return front.upstreams.tunnel(reply, [*relayed(reply.headers), *agreed])
        if reply.status < 400:
            reply.close()
            return text(503, f"invalid upgrade response: status code {reply.status}")
        found = front.upstreams.relay(reply, relayed(reply.headers))
        return found if isinstance(found, Response | Stream) else await found


def _asked(ctx: RequestContext) -> str:
    """Path and query as the client sent them."""
    request = ctx.request
    return f"{request.path}?{request.query}" if request.query else request.path


def _upgrades(ctx: RequestContext) -> bool:
    values = ctx.request.header_all(b"connection")
    return any(token.strip().lower() == b"upgrade" for value in values for token in value.split(b","))


class Passing:
    """One request on its way to one of several targets."""

    __slots__ = ("_again", "_ctx", "_dial", "_identity", "_lines", "_proxied", "_relay", "_targets", "_timer")

    def __init__(self, proxied: Proxied, ctx: RequestContext, targets: list[Target], identity: bytes) -> None:
        self._proxied = proxied
        self._ctx = ctx
        self._targets = targets
        self._identity = identity
        self._again = False
        self._dial: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._lines = b""
        request = ctx.request
        reader = request.reader
        self._relay = Relay(
            asyncio.get_running_loop(),
            self._failed,
            reject=proxied.front.reject_redirects,
            deadline=0.0 if ctx.long_running else ctx.deadline,
            reader=reader,
            chunked=reader is not None and request.header(b"content-length") is None,
            endless=proxied.front.endless if ctx.long_running else None,
        )

    def begin(self) -> Awaitable[Answer]:
        """Send it; the future of the answer."""
        front, relay = self._proxied.front, self._relay
        target = self._targets[0]
        connection = front.pool.take(target)
        if connection is None:
            self._connect()
        else:
            relay.send(connection, self._head(target), head=self._ctx.request.method == "HEAD")
        self._limit()
        if self._dial is not None or self._timer is not None:
            relay.answer.add_done_callback(self._done)
        if front.breaker:
            relay.answer.add_done_callback(self._judge)
        return relay.answer

    def _limit(self) -> None:
        """Discovery documents have a short time, other answers that of the flag."""
        loop = asyncio.get_running_loop()
        path = self._ctx.request.path
        if path.count("/") == 3 and self._ctx.request.method == "GET":
            self._timer = loop.call_later(DISCOVERY_SECONDS, self._too_slow)
        elif self._proxied.front.timeout and not self._ctx.long_running:
            self._timer = loop.call_later(self._proxied.front.timeout, self._overdue)

    def _too_slow(self) -> None:
        if not self._relay.answer.done():
            self._give_up(self._proxied.unreachable("context deadline exceeded"))

    def _overdue(self) -> None:
        if not self._relay.answer.done():
            self._relay.answer.set_exception(Overtime())
            self._relay.release()

    def _give_up(self, answer: Response) -> None:
        self._relay.answer.set_result(answer)
        self._relay.release()

    def _judge(self, answer: asyncio.Future[Answer]) -> None:
        """Whatever the backend has answered, it lives."""
        if self._relay.answered:
            self._proxied.mend()

    def _done(self, answer: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._dial is not None:
            self._dial.cancel()

    def _connect(self) -> None:
        first = self._dial is None
        self._dial = asyncio.get_running_loop().create_task(self._dialled())
        if not first:
            return
        self._relay.answer.add_done_callback(self._done)

    async def _dialled(self) -> None:
        """Connect to the first target that can be reached: until then none of them has seen the request."""
        connection: Connection | None = None
        for position, target in enumerate(self._targets):
            try:
                connection = await self._proxied.front.pool.connect(target)
                break
            except UpstreamError as error:
                if position == len(self._targets) - 1 and not self._relay.answer.done():
                    self._relay.answer.set_result(self._proxied.unreachable(str(error)))
        if connection is None:
            return
        if self._relay.answer.done():
            self._proxied.front.pool.give_back(connection)
            return
        self._dial = None
        self._relay.send(connection, self._head(connection.target), head=self._ctx.request.method == "HEAD")

    def _failed(self, relay: Relay, error: UpstreamError, untouched: bool) -> None:
        if untouched and not self._again and self._ctx.request.method in _REPEATABLE:
            # The backend closed a kept connection while the request was on its way.
            self._again = True
            self._connect()
            return
        relay.answer.set_result(self._proxied.unreachable(str(error)))

    def _head(self, target: Target) -> bytes:
        request = self._ctx.request
        if not self._lines:
            sent = forwarded(self._ctx, self._proxied.front.dropped)
            if b"te" in (name for name, _ in request.headers):
                sent.append((b"te", b"trailers"))
            if request.reader is not None:
                length = request.header(b"content-length")
                sent.append((b"transfer-encoding", b"chunked") if length is None else (b"content-length", length))
            elif request.body or request.method in _BODIES:
                sent.append((b"content-length", b"%d" % len(request.body)))
            self._lines = b"".join([b"%b: %b\r\n" % header for header in sent])
        authority = target.authority.encode()
        first = f"{request.method} {_asked(self._ctx)} HTTP/1.1\r\n".encode("utf-8", "surrogateescape")
        return b"%bhost: %b\r\nx-forwarded-host: %b\r\n%b%b\r\n%b" % (
            first, authority, authority, self._lines, self._identity, request.body,
        )  # fmt: skip

"""Filters that protect the server: deadline, shutting down, requests in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi_core.authn.base import MASTERS
from fastapi_core.errors import APIError, bad_request
from fastapi_core.http.exchange import Response
from fastapi_core.meta.time import parse_duration
from fastapi_core.obs.catalog import Metrics
from fastapi_core.request.status import TOO_MANY, render_error, text

if TYPE_CHECKING:
    from fastapi_core.http.exchange import Answer
    from fastapi_core.request.context import RequestContext

_READS = frozenset({"get", "list", "watch"})
_ALWAYS = frozenset({"healthz", "livez", "readyz", "metrics"})
GOING_DOWN = "The apiserver is shutting down, please try again later."


#: Seconds for a write, however long the server's limit is.
_WRITE_LIMIT = 34.0
_WRITES = frozenset({"create", "update", "patch", "delete"})
_WRITE_TOO_LONG = "Timeout: request did not complete within requested timeout - context deadline exceeded"


class Deadline:
    """Sets when a request that is not long-running is given up: `timeout` of the query, at most the server's limit."""

    def __init__(self, limit: float) -> None:
        self._limit = limit

    def before(self, ctx: RequestContext) -> None:
        if ctx.long_running:
            return
        limit = self._limit
        if limit > _WRITE_LIMIT and is_write(ctx):
            limit = _WRITE_LIMIT
        if ctx.request.query:
            given = ctx.info.first("timeout")
            if given:
                try:
                    asked = parse_duration(given) / 1e9
                except ValueError as error:
                    raise bad_request(f"invalid timeout specified in the request URL - {error}") from None
                # None at all, and less than that, leave it to the server.
                if 0 < asked < limit:
                    limit = asked
        ctx.deadline = ctx.started + limit


def is_write(ctx: RequestContext) -> bool:
    return ctx.info.verb in _WRITES and ctx.info.is_resource_request


def overtime(ctx: RequestContext, error: APIError) -> Answer:
    """The 504 of a request that was cut off at its deadline.

    The reference ends writes that ask for no time of their own in their handler, all others in a filter that writes a bare
    Status: no kind, and a content type that is sniffed.
    """
    if is_write(ctx) and round(ctx.deadline - ctx.started, 3) >= _WRITE_LIMIT:
        error.message = _WRITE_TOO_LONG
        return render_error(error, ctx.request)
    from fastapi_core.codec import json

    status = error.to_status()
    bare = {key: value for key, value in status.items() if key not in ("kind", "apiVersion")}
    return Response(504, [(b"Content-Type", b"text/plain; charset=utf-8")], json.encode(bare) + b"\n")


class ShutdownGate:
    """Refuses new requests once the server has stopped accepting them; long-running ones but watches end by themselves."""

    def __init__(self) -> None:
        self.closed = False
        self.redirecting = False
        """Requests are sent away with 429 (`--shutdown-send-retry-after`), before they get as far as a refusal."""

    def before(self, ctx: RequestContext) -> None:
        if self.closed and (not ctx.long_running or ctx.info.verb == "watch"):
            ctx.headers.append((b"Retry-After", b"1"))
            raise APIError("ServiceUnavailable", "apiserver is shutting down")

    def send_away(self, ctx: RequestContext) -> Answer | None:
        """429 on a connection that ends with it, so that the client's next one reaches another server."""
        if not self.redirecting or _always_answered(ctx):
            return None
        ctx.headers += [(b"Retry-After", b"5"), (b"Connection", b"close")]
        return text(429, GOING_DOWN)


def _always_answered(ctx: RequestContext) -> bool:
    """Probes and scrapes are, and requests of API servers, which have nowhere else to go."""
    root = ctx.info.path.split("/", 2)[1] if ctx.info.path.startswith("/") else ""
    return root in _ALWAYS or (ctx.request.header(b"user-agent") or b"").startswith(b"kube-apiserver/")


class Pool:
    """Requests of one kind under way; `limit` 0 is no limit."""

    __slots__ = ("current", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.current = 0


class Place:
    """One request's place in a pool, given back by one call."""

    __slots__ = ("_pool",)

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        pool.current += 1

    def __call__(self) -> None:
        self._pool.current -= 1


class MaxInFlight:
    """429 beyond so many reads and so many writes; long-running requests and system:masters are exempt."""

    def __init__(self, reads: int, writes: int, metrics: Metrics) -> None:
        self.reads = Pool(reads)
        self.writes = Pool(writes)
        self._rejected = metrics.terminations
        read_gauge = metrics.inflight.labels("readOnly")
        write_gauge = metrics.inflight.labels("mutating")

        def collect() -> None:
            read_gauge.set(self.reads.current)
            write_gauge.set(self.writes.current)

        metrics.registry.collector(collect)

    def before(self, ctx: RequestContext) -> Answer | None:
        if ctx.long_running:
            return None
        pool = self.reads if ctx.info.verb in _READS else self.writes
        if pool.limit and pool.current >= pool.limit and MASTERS not in ctx.user.groups:
            self._rejected.labels(ctx.info.verb.upper(), "", "", "", "", "", "apiserver", "429").inc()
            ctx.headers.append((b"Retry-After", b"1"))
            return text(429, TOO_MANY)
        ctx.release = Place(pool)
        return None

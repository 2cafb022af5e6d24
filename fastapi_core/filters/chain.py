"""THE list of filters in the reference's order, outermost first. Nothing else decides what surrounds an endpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fastapi_core._ext.reqinfo import ParseError
from fastapi_core.authn.base import Authenticator
from fastapi_core.authz.base import Authorizer
from fastapi_core.errors import APIError
from fastapi_core.filters import headers
from fastapi_core.filters.dispatch import Dispatch, TooLarge
from fastapi_core.filters.driver import Chain, Filter
from fastapi_core.filters.flow import PriorityAndFairness
from fastapi_core.filters.identity import Authentication, Authorization
from fastapi_core.filters.impersonation import Impersonation
from fastapi_core.filters.limits import Deadline, MaxInFlight, ShutdownGate, overtime
from fastapi_core.filters.measure import COMPONENT, RequestMetrics, key_of
from fastapi_core.http.exchange import Answer
from fastapi_core.obs import logs
from fastapi_core.obs.catalog import Metrics
from fastapi_core.records import dataclass
from fastapi_core.request.context import LOOPBACK, RequestContext, is_long_running
from fastapi_core.request.info import InfoParser, refusal
from fastapi_core.request.status import PANIC, Overtime, render_error, text

if TYPE_CHECKING:
    from fastapi_core.audit.auditor import Auditor
    from fastapi_core.flow.control import Control
    from fastapi_core.flow.estimate import Estimator
    from fastapi_core.request.routing import Routes

log = logs.get("filters")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainConfig:
    """What the filters need to know. Times in seconds, sizes in bytes, limits 0 for none."""

    authenticator: Authenticator
    authorizer: Authorizer
    metrics: Metrics
    router: Callable[[], Routes]
    known_group: Callable[[str], bool]
    gate: ShutdownGate
    audit: Auditor | None = None
    """None: nothing is written down, and there is no filter for it."""
    body_limit: int = 3 << 20
    request_timeout: float = 60.0
    max_requests_inflight: int = 400
    max_mutating_requests_inflight: int = 200
    flow: tuple[Control, Estimator] | None = None
    """Priority and fairness, which takes the place of the two limits."""
    cors_allowed_origins: tuple[str, ...] = ()
    strict_transport_security: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chains:
    """The chain, its twin for requests whose body was too large to be kept, and the one for the server itself."""

    serve: Chain
    too_large: Chain
    loopback: Chain


def build_chains(config: ChainConfig) -> Chains:
    """The chains share their filters, so limits and metrics see all requests."""
    inner = filters(config)
    twin = [*inner[:-1], Filter("too-large", before=TooLarge(config.body_limit, config.router).before)]
    # No secret stands for the server itself: only who holds this chain can speak in its name.
    own = [Filter(f.name, before=itself) if f.name == "authentication" else f for f in inner]
    return Chains(Chain(inner), Chain(twin), Chain(own))


def filters(config: ChainConfig) -> list[Filter]:
    """The list, around the endpoints of `config.router`."""
    measure = RequestMetrics(config.metrics)
    return [
        # Outermost, so that whatever happens inside, answer and log lines carry the same id.
        Filter("audit-id", before=headers.audit_id(), after=headers.put_audit_id),
        # Outside all that can fail: a defect becomes a 500 and the connection lives on.
        Filter("panic-recovery", caught=recovery(config.metrics)),
        # (mux and discovery complete: marks requests that came before all paths were installed; with the aggregator)
        # Before anything costs time: deadlines and durations are counted from here.
        Filter("received-timestamp", before=measure.before, after=measure.after, aborted=measure.aborted),
        # From here on everybody may ask what the request is about.
        Filter("request-info", before=request_info()),
        # As far out as it can be: while going down nothing else is worth doing.
        Filter("retry-after", before=config.gate.send_away),
        # On failures too: a client that once came by TLS must not be talked into plain text by an error.
        Filter("hsts", after=headers.hsts(config.strict_transport_security)),
        # On failures too: no proxy may keep a refusal.
        Filter("cache-control", after=headers.put_cache_control),
        # (watch termination and probabilistic GOAWAY: with a grace period, with HTTP/2)
        # Before any work is done for a request that shutdown would not wait for.
        Filter("shutdown-gate", before=config.gate.before),
        # Before authentication: even that may have to ask somebody and must not take longer.
        Filter("deadline", before=Deadline(config.request_timeout).before),
        # Inside the deadline that it enforces, outside everything that may wait.
        Filter("timeout", bounds=True),
        # Outside authentication, which has warnings of its own.
        Filter("warnings", after=headers.put_warnings),
        # Before authentication: a browser's preflight carries no credentials.
        Filter("cors", before=headers.cors(config.cors_allowed_origins)),
        Filter("authentication", before=Authentication(config.authenticator, config.metrics).before),
        # After authentication, which names the user; before everything that may refuse.
        *audit(config.audit),
        # Before the limits and authorization, which judge the impersonated user.
        Filter("impersonation", before=Impersonation(config.authorizer).before),
        # After authentication, so that limits know whom to exempt; before authorization, which may be slow.
        limits(config),
        # Before dispatch: nobody learns from an answer what exists behind a refusal, and no body is decoded for it.
        Filter("authorization", before=Authorization(config.authorizer, config.metrics).before),
        Filter("dispatch", before=Dispatch(config.router, config.known_group).before),
    ]


def audit(auditor: Auditor | None) -> list[Filter]:
    """The filter that writes down what is asked and answered, if anything is to be."""
    if auditor is None:
        return []
    return [Filter("audit", before=auditor.before, after=auditor.after, aborted=auditor.aborted)]


def itself(ctx: RequestContext) -> None:
    """In the place of authentication, for requests the server makes to itself."""
    ctx.user = LOOPBACK


def limits(config: ChainConfig) -> Filter:
    """Priority and fairness where it is on, else the two limits."""
    if config.flow is not None:
        fair = PriorityAndFairness(*config.flow, config.request_timeout / 4, config.metrics)
        return Filter("priority-and-fairness", before=fair.before, after=fair.after)
    in_flight = MaxInFlight(config.max_requests_inflight, config.max_mutating_requests_inflight, config.metrics)
    return Filter("max-in-flight", before=in_flight.before)


def request_info() -> Callable[[RequestContext], Answer | None]:
    """The filter that parses path and query, with a memory of its own for repeated targets."""
    parse = InfoParser()

    def put_request_info(ctx: RequestContext) -> Answer | None:
        request = ctx.request
        try:
            info = parse(request.method, request.path, request.query)
        except ParseError as error:
            return refusal(error, request.target)
        ctx.info = info
        ctx.long_running = is_long_running(info)
        return None

    return put_request_info


def recovery(metrics: Metrics) -> Callable[[RequestContext, Exception], Answer]:
    """An APIError is an answer; everything else is a defect of ours: logged with its traceback, not told."""

    def caught(ctx: RequestContext, error: Exception) -> Answer:
        ctx.outcome = error
        request = ctx.request
        if isinstance(error, Overtime):
            # What reached no endpoint has words nobody has checked.
            verb, _, *where = key_of(ctx, 504)[:7] if ctx.matched else ("other", *[""] * 6)
            metrics.terminations.labels(verb, *where, COMPONENT, "504").inc()
            return overtime(ctx, error)
        if isinstance(error, APIError):
            return render_error(error, request)
        log.error("Request failed unexpectedly", error, method=request.method, uri=request.target, auditID=ctx.audit_id)
        return text(500, PANIC)

    return caught

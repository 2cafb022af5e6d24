"""/healthz, /livez and /readyz: named checks, a path for each, `exclude` and `verbose`, with the reference's texts.

Every check runs at every request, none hides the next. A client learns which check failed, never why: the reason goes
to the log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from fastapi_core.errors import go_quote
from fastapi_core.http.exchange import Answer, Header, Response
from fastapi_core.obs import logs
from fastapi_core.obs.catalog import Metrics
from fastapi_core.records import dataclass
from fastapi_core.request.status import page_not_found, text

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext

log = logs.get("health")

HEALTHZ, LIVEZ, READYZ = "healthz", "livez", "readyz"
ALL = (HEALTHZ, LIVEZ, READYZ)

Probe = Callable[[], "Awaitable[None] | None"]
"""A check: raises when the server is not healthy; may answer an awaitable."""


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    probe: Probe
    endpoints: tuple[str, ...] = ALL
    group: str = ""
    """Name under which `exclude` leaves out several checks at once."""
    last: bool = False


class Health:
    """The checks of one server, in the order in which they are listed."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._checks: list[Check] = []
        self._places: dict[str, int] = {}

    def arrange(self, names: Sequence[str]) -> None:
        """List these checks in this order, before all others."""
        self._places = {name: place for place, name in enumerate(names)}

    def add(self, check: Check) -> None:
        for endpoint in check.endpoints:
            if any(c.name == check.name for c in self.of(endpoint)):
                raise ValueError(f"health check {check.name} is registered twice")
        self._checks.append(check)

    def of(self, endpoint: str) -> list[Check]:
        """The checks of an endpoint as they are listed: arranged ones, in order of registration, those marked `last`."""
        places, behind = self._places, len(self._places)
        found = (c for c in self._checks if endpoint in c.endpoints)
        return sorted(found, key=lambda c: (c.last, places.get(c.name, behind)))

    def root(self, endpoint: str) -> Callable[[RequestContext], Answer | Awaitable[Answer]]:
        """The endpoint of `/healthz`, `/livez` or `/readyz`."""
        return partial(self._root, endpoint)

    def single(self, endpoint: str) -> Callable[[RequestContext], Answer | Awaitable[Answer]]:
        """The endpoint of `/healthz/<check>` and its like."""
        return partial(self._single, endpoint)

    def _root(self, endpoint: str, ctx: RequestContext) -> Answer | Awaitable[Answer]:
        excluded = {name.strip() for name in ctx.info.query.get("exclude", ()) if name.strip()}
        verbose = "verbose" in ctx.info.query
        checks = self.of(endpoint)
        skipped = {c.name for c in checks if c.name in excluded or c.group in excluded}
        results = self._run(endpoint, [c for c in checks if c.name not in skipped])
        if isinstance(results, dict):
            return _report(endpoint, checks, excluded, results, verbose)
        return self._root_later(endpoint, checks, excluded, results, verbose)

    async def _root_later(
        self, endpoint: str, checks: list[Check], excluded: set[str], results: Awaitable[dict[str, bool]], verbose: bool
    ) -> Answer:
        return _report(endpoint, checks, excluded, await results, verbose)

    def _single(self, endpoint: str, ctx: RequestContext) -> Answer | Awaitable[Answer]:
        name = ctx.info.path[len(endpoint) + 2 :]
        for check in self.of(endpoint):
            if check.name == name:
                return self._one(endpoint, check)
        return page_not_found()

    async def _one(self, endpoint: str, check: Check) -> Answer:
        try:
            result = check.probe()
            if result is not None:
                await result
        except Exception as error:
            self._note(endpoint, check, False)
            return text(500, f"internal server error: {error}")
        self._note(endpoint, check, True)
        return Response(200, list(_PLAIN), b"ok")

    def _run(self, endpoint: str, checks: Iterable[Check]) -> dict[str, bool] | Awaitable[dict[str, bool]]:
        """Check name -> healthy; an awaitable when at least one check has to wait."""
        results: dict[str, bool] = {}
        waiting: list[tuple[Check, Awaitable[None]]] = []
        for check in checks:
            try:
                pending = check.probe()
            except Exception as error:
                results[check.name] = self._failed(endpoint, check, error)
                continue
            if pending is None:
                results[check.name] = self._note(endpoint, check, True)
            else:
                waiting.append((check, pending))
        return self._collect(endpoint, results, waiting) if waiting else results

    async def _collect(
        self, endpoint: str, results: dict[str, bool], waiting: list[tuple[Check, Awaitable[None]]]
    ) -> dict[str, bool]:
        for check, pending in waiting:
            try:
                await pending
            except Exception as error:
                results[check.name] = self._failed(endpoint, check, error)
            else:
                results[check.name] = self._note(endpoint, check, True)
        return results

    def _failed(self, endpoint: str, check: Check, error: Exception) -> bool:
        log.info("Health check failed", endpoint=endpoint, check=check.name, reason=str(error))
        return self._note(endpoint, check, False)

    def _note(self, endpoint: str, check: Check, healthy: bool) -> bool:
        self._metrics.healthcheck.labels(check.name, endpoint).set(1.0 if healthy else 0.0)
        self._metrics.healthchecks.labels(check.name, endpoint, "success" if healthy else "error").inc()
        return healthy


_PLAIN: tuple[Header, ...] = (
    (b"Content-Type", b"text/plain; charset=utf-8"),
    (b"X-Content-Type-Options", b"nosniff"),
)


def _report(
    endpoint: str, checks: list[Check], excluded: set[str], results: dict[str, bool], verbose: bool
) -> Response:
    if not verbose and all(results.values()):
        return Response(200, list(_PLAIN), b"ok")
    lines = []
    used: set[str] = set()
    for check in checks:
        if check.name in results:
            healthy = results[check.name]
            lines.append(f"[+]{check.name} ok" if healthy else f"[-]{check.name} failed: reason withheld")
        elif check.name in excluded:
            lines.append(f"[+]{check.name} excluded: ok")
            used.add(check.name)
        else:
            lines.append(f"[+]{check.name} excluded with {check.group}: ok")
            used.add(check.group)
    unknown = sorted(excluded - used)
    if unknown:
        names = ", ".join(map(go_quote, unknown))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    body = "".join(line + "\n" for line in lines)
    if all(results.values()):
        return Response(200, list(_PLAIN), f"{body}{endpoint} check passed\n".encode())
    return text(500, f"{body}{endpoint} check failed")


class Progress:
    """A check that holds once something is done; `grace` seconds after its making it holds for liveness regardless."""

    def __init__(self, what: str, grace: float = 0.0) -> None:
        self.done = False
        self._what = what
        self._grace_until = monotonic() + grace

    def __call__(self) -> None:
        if not self.done:
            raise RuntimeError(f"{self._what} is not finished")

    def lenient(self) -> None:
        """The same check within the grace period of `/livez`."""
        if not self.done and monotonic() >= self._grace_until:
            self()

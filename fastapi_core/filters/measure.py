"""Request metrics: one dictionary look-up, a counter and a histogram per answer."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from fastapi_core.http.exchange import Answer, Stream, StreamWriter
from fastapi_core.obs.catalog import Metrics
from fastapi_core.obs.metrics import Counter, Histogram

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext

_VERBS = {
    "get": "GET", "list": "LIST", "watch": "WATCH", "create": "POST", "update": "PUT", "patch": "PATCH",
    "delete": "DELETE", "deletecollection": "DELETECOLLECTION", "proxy": "CONNECT",
}  # fmt: skip
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_CONNECT = frozenset({"attach", "exec", "portforward", "proxy"})
_READS = frozenset({"GET", "LIST"})
_HEALTH = ("/healthz", "/livez", "/readyz")
_APPLY = b"application/apply-patch"
COMPONENT = "apiserver"

#: verb, dry run, group, version, resource, subresource, scope, code
Key = tuple[str, str, str, str, str, str, str, int]


class RequestMetrics:
    """The innermost words of a request become labels only when it reached an endpoint (`ctx.matched`)."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        metrics.registry.collector(self._collect_sli)
        self._bound: dict[Key, tuple[Counter, Histogram, Histogram | None]] = {}

    def before(self, ctx: RequestContext) -> None:
        ctx.started = monotonic()

    def after(self, ctx: RequestContext, answer: Answer) -> None:
        if not ctx.matched:
            return
        key = key_of(ctx, answer.status)
        if isinstance(answer, Stream):
            answer.start = self._follow(key, answer.start)
            return
        count, duration, sizes = self._bound.get(key) or self._bind(key)
        count.value += 1
        duration.observe(monotonic() - ctx.started)
        if sizes is not None:
            body = answer.body
            sizes.observe(len(body) if isinstance(body, bytes) else sum(map(len, body)))

    def aborted(self, ctx: RequestContext) -> None:
        """The client went away while its request waited."""
        if ctx.matched:
            key = key_of(ctx, 0)
            self._metrics.aborts.labels(key[0], *key[2:7]).inc()

    def _follow(self, key: Key, start: Callable[[StreamWriter], None]) -> Callable[[StreamWriter], None]:
        """A stream counts as long-running from its head to its end, and as a request at its end."""
        verb, dry_run, *where, code = key
        running = self._metrics.longrunning.labels(verb, *map(str, where), COMPONENT)
        total = self._metrics.request_total.labels(verb, dry_run, *map(str, where), COMPONENT, str(code))

        def closed() -> None:
            running.dec()
            total.inc()

        def followed(writer: StreamWriter) -> None:
            running.inc()
            writer.on_close(closed)
            start(writer)

        return followed

    def _collect_sli(self) -> None:
        """The SLI histogram is the other one without dry runs and the finest buckets: no webhook is waited for."""
        sli = self._metrics.request_sli_duration
        sli.clear()
        for values, duration in self._metrics.request_duration.children.items():
            child = sli.labels(values[0], *values[2:])
            finer = len(duration.counts) - len(child.counts)
            child.counts[0] += sum(duration.counts[: finer + 1])
            for index in range(1, len(child.counts)):
                child.counts[index] += duration.counts[finer + index]
            child.total += duration.total

    def _bind(self, key: Key) -> tuple[Counter, Histogram, Histogram | None]:
        verb, dry_run, group, version, resource, subresource, scope, code = key
        m = self._metrics
        where = (group, version, resource, subresource, scope, COMPONENT)
        bound = self._bound[key] = (
            m.request_total.labels(verb, dry_run, *where, str(code)),
            m.request_duration.labels(verb, dry_run, *where),
            m.response_sizes.labels(verb, *where) if verb in _READS else None,
        )
        return bound


def key_of(ctx: RequestContext, code: int) -> Key:
    """The label values of one answered request."""
    info = ctx.info
    if not info.is_resource_request:
        method = ctx.request.method
        path = info.path if info.path in _HEALTH else ""
        return (method if method in _METHODS else "other", "", "", "", "", path, "", code)
    verb = info.verb
    label = _VERBS.get(verb, "other")
    dry_run = ""
    if info.subresource and info.subresource in _CONNECT:
        label = "CONNECT"
    elif label not in _READS and verb != "watch":
        if verb == "patch" and (ctx.request.header(b"content-type") or b"").startswith(_APPLY):
            label = "APPLY"
        if ctx.request.query:
            dry_run = "All" if "All" in info.query.get("dryRun", ()) else ""
    if info.name or verb == "create":
        scope = "resource"
    else:
        scope = "namespace" if info.namespace else "cluster"
    return (label, dry_run, info.api_group, info.api_version, info.resource, info.subresource, scope, code)

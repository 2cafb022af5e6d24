"""EventRateLimit: events are good to have, and not at the expense of everything else."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from fastapi_core.admission.chain import CREATE, UPDATE, Attributes, Plugin
from fastapi_core.admission.objects import is_core
from fastapi_core.errors import APIError
from fastapi_core.records import dataclass
from fastapi_core.registry.definition import ResourceDefinition

KINDS = ("Server", "Namespace", "User", "SourceAndObject")
#: Buckets kept of a limit, unless it says otherwise; the one not used for longest goes first.
BUCKETS = 4096


@dataclass(frozen=True, slots=True)
class Limit:
    """`qps` events a second and `burst` at once for each server, namespace, user or source."""

    kind: str
    qps: int
    burst: int
    buckets: int = BUCKETS


class _Buckets:
    def __init__(self, limit: Limit, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> bool:
        """One token of a bucket that fills up with time."""
        limit, now = self._limit, self._clock()
        tokens, since = self._known.pop(key, (float(limit.burst), now))
        tokens = min(float(limit.burst), tokens + (now - since) * limit.qps)
        enough = tokens >= 1
        self._known[key] = (tokens - 1 if enough else tokens, now)
        if len(self._known) > limit.buckets:
            self._known.popitem(last=False)
        return enough


class EventRateLimit(Plugin):
    name = "EventRateLimit"

    def __init__(self, limits: Sequence[Limit], clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = [(limit.kind, _Buckets(limit, clock)) for limit in limits]

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return operation in (CREATE, UPDATE) and is_core(definition, "events")

    def validate(self, attributes: Attributes) -> None:
        if attributes.dry_run:
            return
        refused = []
        for kind, buckets in self._limits:
            key = key_of(kind, attributes)
            if not buckets.take(key):
                refused.append(f"limit reached on type {kind} for key {key}")
        if refused:
            raise APIError("TooManyRequests", f"Too many requests: {','.join(refused)}")


def key_of(kind: str, attributes: Attributes) -> str:
    """Which of a limit's buckets an event takes from."""
    if kind == "Namespace":
        return attributes.namespace
    if kind == "User":
        return attributes.context.user.name
    if kind == "Server":
        return ""
    event = attributes.object or {}
    source, involved = event.get("source") or {}, event.get("involvedObject") or {}
    parts = [source.get("component"), source.get("host")]
    parts += [involved.get(member) for member in ("kind", "namespace", "name", "uid", "apiVersion")]
    return "".join(part or "" for part in parts)

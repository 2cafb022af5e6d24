"""The configuration in force: which requests are which flow, and how many seats each priority level has.

`digest` takes over a new configuration as a whole. Classifications are remembered under the `generation` they were made
in. Seats are divided anew whenever the configuration changes and every `PERIOD` seconds.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from time import monotonic

from fastapi_core.flow.allocation import Bounds, Claim, bounds, divide, half_up
from fastapi_core.flow.bootstrap import LEVELS, SCHEMAS
from fastapi_core.flow.estimate import Watches
from fastapi_core.flow.lanes import Lane
from fastapi_core.flow.queues import Clock, Later, Queue, QueueSet
from fastapi_core.flow.retry import RetryAfter
from fastapi_core.flow.rules import CATCH_ALL, EXEMPT, Digest, LevelSpec, SchemaSpec, level_spec, schema_spec
from fastapi_core.flow.sharding import deal, flow_hash
from fastapi_core.http.exchange import Header
from fastapi_core.obs import logs
from fastapi_core.obs.flow_catalog import FlowMetrics
from fastapi_core.obs.metrics import Registry
from fastapi_core.request.context import User

log = logs.get("flow")

#: Seconds between two adjustments of the limits to the demand.
PERIOD = 10.0
#: Part of the nominal limit that one request may take.
_WIDEST = 0.15


class Level:
    """A priority level and its requests. `limits` and `current` are seats."""

    def __init__(self, spec: LevelSpec, clock: Clock, later: Later) -> None:
        self.spec = spec
        self.queues = QueueSet(spec.name, clock, later)
        self.limits = Bounds(0, 0, 0)
        self.current = -1
        self.target = 0.0
        self.max_seats = 0
        """Seats one request may take; 0 where nothing queues, there only the general limits hold."""
        self.leaving = False
        """No configuration names it any more; it is removed once idle."""
        self.retry = RetryAfter()

    def configure(self, spec: LevelSpec) -> None:
        self.spec = spec
        self.queues.configure(exempt=spec.exempt, wanted=spec.queues, length=spec.length)


class Flow:
    """What requests of one flow have in common; `hand` is empty where nothing queues."""

    __slots__ = ("distinguisher", "hand", "headers", "lane", "level", "queues", "schema")

    def __init__(self, level: Level, schema: SchemaSpec, distinguisher: str, lane: Lane) -> None:
        self.level = level
        self.queues = level.queues
        self.schema = schema
        self.distinguisher = distinguisher
        self.lane = lane
        self.headers: tuple[Header, ...] = (
            (b"X-Kubernetes-Pf-Flowschema-Uid", schema.uid.encode()),
            (b"X-Kubernetes-Pf-Prioritylevel-Uid", level.spec.uid.encode()),
        )
        self.hand: tuple[Queue, ...] = ()
        spec = level.spec
        if spec.queues:
            cards = deal(flow_hash(schema.name, distinguisher), spec.queues, spec.hand) if spec.queues > 1 else (0,)
            self.hand = tuple(level.queues.queues[card] for card in cards)


class Control:
    """Flow control of one server with `total` seats. `clock` and `later` as in `QueueSet`."""

    def __init__(self, total: int, registry: Registry, *, clock: Clock = monotonic, later: Later | None = None) -> None:
        self.total = total
        self.generation = 0
        """Changes whenever an earlier classification might not hold any more."""
        self.clock = clock
        self.levels: dict[str, Level] = {}
        self.schemas: list[SchemaSpec] = []
        self.watches = Watches()
        self.on_change: Callable[[], None] | None = None
        self.metrics = FlowMetrics(registry)
        self._later: Later = later or _loop_later
        self._lanes: dict[tuple[str, str], Lane] = {}
        self._nominal = 0
        self._specs: list[LevelSpec] = []
        self._fallback: SchemaSpec
        registry.collector(self._collect)
        self.digest((), ())

    # Configuration

    def digest(self, levels: Iterable[LevelSpec], schemas: Iterable[SchemaSpec]) -> None:
        """Take over a configuration; what is mandatory and not there is imagined."""
        wanted = {spec.name: spec for spec in levels}
        for imagined in _MANDATORY_LEVELS:
            wanted.setdefault(imagined.name, imagined)
        self._specs = list(wanted.values())
        found = sorted((s for s in schemas if s.level in wanted), key=lambda s: s.order)
        names = {schema.name for schema in found}
        if EXEMPT not in names:
            found.insert(0, _EXEMPT_SCHEMA)
        if CATCH_ALL not in names:
            found.append(_CATCH_ALL_SCHEMA)
        self.schemas = found
        self._fallback = next(schema for schema in found if schema.name == CATCH_ALL)
        self._take_over(wanted)
        self.generation += 1

    def _take_over(self, wanted: dict[str, LevelSpec]) -> None:
        old, self.levels = self.levels, {}
        for name, spec in wanted.items():
            level = old.pop(name, None) or Level(spec, self.clock, self._later)
            level.configure(spec)
            level.leaving = False
            level.queues.on_idle = None
            self.levels[name] = level
        for name, level in old.items():
            if not level.queues.idle:
                # What is in its queues still gets its share, then the level goes.
                level.leaving = True
                level.queues.on_idle = self._reap
                self.levels[name] = level
        shares = sum(level.spec.shares for level in self.levels.values())
        self._nominal = 0
        for level in self.levels.values():
            spec = level.spec
            limits = level.limits = bounds(self.total, spec.shares, shares, spec.lendable, spec.borrowing)
            self._nominal += limits.nominal
            level.max_seats = 0
            if spec.queues:
                level.max_seats = max(1, min(math.ceil(limits.nominal * _WIDEST), limits.nominal // spec.hand))
            if level.current < 0:
                level.current = limits.nominal - (limits.nominal - limits.least) // 2
        self.adjust()

    def _reap(self) -> None:
        """A leaving level is empty: its seats go to the others."""
        self._take_over({spec.name: spec for spec in self._specs})
        self.generation += 1

    # Seats

    def adjust(self) -> None:
        """Divide the seats by what every level has asked for since the last time.

        Exempt levels take what they need; of the rest everybody keeps what he may and used, and the others share in
        proportion to their demand, between what they lend and what they may borrow.
        """
        claims: list[Claim] = []
        limited: list[Level] = []
        left = self._nominal
        for level in self.levels.values():
            demand, limits = level.queues.settle(), level.limits
            if level.spec.exempt:
                level.current = max(limits.least, demand.high)
                level.target = float(level.current)
                left -= level.current
                continue
            least = max(limits.least, min(limits.nominal, demand.high))
            level.target = max(float(least), demand.smoothed)
            limited.append(level)
            claims.append(Claim(level.target, float(least), float(limits.most)))
        fraction = 0.0
        lowest = sum(level.limits.least for level in limited)
        needed = sum(int(claim.least) for claim in claims)
        if left <= lowest:
            seats = [float(level.limits.least) for level in limited]
        elif left <= needed:
            part = (left - lowest) / (needed - lowest)
            seats = [
                level.limits.least + half_up((claim.least - level.limits.least) * part)
                for level, claim in zip(limited, claims, strict=True)
            ]
        else:
            try:
                # Of all seats, not of those the exempt leave: their use is counted, never waited for.
                seats, fraction = divide(self._nominal, claims)
            except ValueError as error:
                # Only a configuration nobody validated gets here; the limits stay what they were.
                log.warning("Seats cannot be divided anew", error=str(error))
                seats = [float(level.current) for level in limited]
        for level, number in zip(limited, seats, strict=True):
            # Never nothing while it has shares: with few seats in all, who comes first would wait for an adjustment.
            level.current = max(half_up(number), min(level.limits.nominal, 1))
        for level in tuple(self.levels.values()):
            level.queues.set_limit(level.current)
        self.metrics.fair_fraction.labels().set(fraction)

    # Classification

    def classify(self, user: User, digest: Digest) -> Flow:
        """The flow of a request: by the first schema that matches."""
        for schema in self.schemas:
            if schema.matches(user, digest):
                break
        else:
            schema = self._fallback
        level = self.levels[schema.level]
        distinguisher = schema.distinguisher(user, digest) if level.spec.queues > 1 else ""
        return Flow(level, schema, distinguisher, self._lane(level, schema))

    def _lane(self, level: Level, schema: SchemaSpec) -> Lane:
        key = (level.spec.name, schema.name)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(
                self.metrics, *key, limited=not level.spec.exempt, queued=level.spec.queues > 0
            )
        return lane

    # Metrics

    def _collect(self) -> None:
        for lane in self._lanes.values():
            lane.fold()
        m = self.metrics
        for family in (*m.level.values(), *m.lane.values(), m.nominal):
            family.clear()
        for name, level in self.levels.items():
            queues, limits, demand = level.queues, level.limits, level.queues.demand
            m.nominal.labels(name).set(limits.nominal)
            for gauge, value in (
                ("current_limit_seats", level.current),
                ("current_r", queues.progress),
                ("lower_limit_seats", limits.least),
                ("upper_limit_seats", limits.most),
                ("demand_seats_average", demand.average),
                ("demand_seats_high_watermark", demand.high),
                ("demand_seats_smoothed", demand.smoothed),
                ("demand_seats_stdev", demand.deviation),
                ("target_seats", level.target),
            ):
                m.level[gauge].labels(name).set(value)
            self._collect_requests(name, queues)

    def _collect_requests(self, name: str, queues: QueueSet) -> None:
        lane = self.metrics.lane
        for known, schema in self._lanes:
            if known == name:
                for family in lane.values():
                    family.labels(name, schema).set(0)
        for entry in queues.running:
            lane["current_executing_requests"].labels(name, entry.flow.schema.name).inc()
            lane["current_executing_seats"].labels(name, entry.flow.schema.name).inc(entry.estimate.width)
        for queue in queues.queues:
            for entry in queue.waiting:
                lane["current_inqueue_requests"].labels(name, entry.flow.schema.name).inc()
                lane["current_inqueue_seats"].labels(name, entry.flow.schema.name).inc(entry.estimate.width)


def _mandatory() -> tuple[tuple[LevelSpec, ...], SchemaSpec, SchemaSpec]:
    levels = [level_spec(level.tree) for level in LEVELS if level.mandatory]
    schemas = {s.tree["metadata"]["name"]: schema_spec(s.tree) for s in SCHEMAS if s.mandatory}
    return tuple(level for level in levels if level is not None), schemas[EXEMPT], schemas[CATCH_ALL]


_MANDATORY_LEVELS, _EXEMPT_SCHEMA, _CATCH_ALL_SCHEMA = _mandatory()


def _loop_later(seconds: float, call: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(seconds, call)

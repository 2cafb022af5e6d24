"""The metrics of priority and fairness, declared when it is on. `obs/catalog.py` has all others."""

from __future__ import annotations

from fastapi_core.obs.metrics import Counter, Family, Gauge, Histogram, Registry

_SECONDS = (0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30)
_LENGTHS = (0, 10, 25, 50, 100, 250, 500, 1000)
_PREFIX = "apiserver_flowcontrol_"
_LEVEL = ("priority_level",)
_LANE = ("priority_level", "flow_schema")

#: Gauges of a priority level: name after the prefix -> what it tells.
_LEVEL_GAUGES = {
    "current_limit_seats": "Seats a priority level may use at present.",
    "current_r": "Virtual time: seat-seconds each busy queue has been entitled to.",
    "lower_limit_seats": "Seats a priority level keeps when it lends all it may.",
    "upper_limit_seats": "Seats a priority level has when it borrows all it may.",
    "demand_seats_average": "Average of the seats asked for in the last period.",
    "demand_seats_high_watermark": "Most seats asked for at once in the last period.",
    "demand_seats_smoothed": "Seats asked for, smoothed over periods.",
    "demand_seats_stdev": "Standard deviation of the seats asked for in the last period.",
    "target_seats": "Seats a priority level was to get at the last adjustment if all could have theirs.",
}
#: Gauges of a flow schema at its priority level.
_LANE_GAUGES = {
    "current_executing_requests": ("Requests that run.", "BETA"),
    "current_executing_seats": ("Seats of requests that run.", "BETA"),
    "current_inqueue_requests": ("Requests that wait in queues.", "BETA"),
    "current_inqueue_seats": ("Seats that the requests in queues wait for.", "ALPHA"),
}


class FlowMetrics:
    """The families in one registry."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

        def counter(name: str, help: str, *labels: str, stability: str = "ALPHA") -> Family[Counter]:
            return registry.counter(_PREFIX + name, help, (*_LANE, *labels), stability=stability)

        def histogram(
            name: str, help: str, buckets: tuple[float, ...], *labels: str, stability: str = "ALPHA"
        ) -> Family[Histogram]:
            return registry.histogram(_PREFIX + name, help, (*_LANE, *labels), buckets=buckets, stability=stability)

        self.dispatched = counter("dispatched_requests_total", "Requests that got to run.", stability="BETA")
        self.rejected = counter("rejected_requests_total", "Requests refused, by reason.", "reason", stability="BETA")
        self.unaccommodated = counter(
            "request_dispatch_no_accommodation_total", "Times the next request needed more seats than were free."
        )
        self.waited = histogram(
            "request_wait_duration_seconds", "Seconds between arrival and decision.", _SECONDS, "execute",
            stability="BETA",
        )  # fmt: skip
        self.execution = histogram(
            "request_execution_seconds", "Seconds requests ran, of a watch its beginning.", _SECONDS, "type"
        )
        self.queue_length = histogram(
            "request_queue_length_after_enqueue", "Length of the queue a request was put into, with it.", _LENGTHS
        )
        self.watch_count = histogram(
            "watch_count_samples", "Watches that see what a write does.", (0, 1, 10, 100, 1000, 10000)
        )
        self.width = histogram("work_estimated_seats", "Seats requests take.", (1, 2, 4, 8, 16, 32, 64, 100))
        self.nominal = registry.gauge(
            _PREFIX + "nominal_limit_seats", "Seats of a priority level by its shares.", _LEVEL, stability="BETA"
        )
        self.fair_fraction = registry.gauge(
            _PREFIX + "seat_fair_frac", "Fraction of its target every level not held by a limit got."
        )
        self.level: dict[str, Family[Gauge]] = {
            name: registry.gauge(_PREFIX + name, help, _LEVEL) for name, help in _LEVEL_GAUGES.items()
        }
        self.lane: dict[str, Family[Gauge]] = {
            name: registry.gauge(_PREFIX + name, help, _LANE, stability=stability)
            for name, (help, stability) in _LANE_GAUGES.items()
        }
        self.inqueue = registry.gauge(
            "apiserver_current_inqueue_requests", "Requests that wait in queues, by kind.", ("request_kind",)
        )

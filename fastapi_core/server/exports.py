"""Storage and watch cache numbers for /metrics, read when somebody asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fastapi_core.obs import metrics as obs
from fastapi_core.obs.catalog import Metrics
from fastapi_core.registry.definition import ResourceDefinition
from fastapi_core.storage.sqlite.store import SqliteStorage

if TYPE_CHECKING:
    from fastapi_core.rest.scope import Scope
    from fastapi_core.storage.cacher.cacher import Cacher
    from fastapi_core.storage.interface import Storage


def export_storage_metrics(
    metrics: Metrics,
    storage: Storage,
    cacher: Cacher,
    definitions: tuple[ResourceDefinition, ...],
) -> None:
    """Register what fills the storage gauges at each collection."""
    by_prefix = {d.key_prefix: d for d in definitions if d.key_prefix}

    def collect() -> None:
        if isinstance(storage, SqliteStorage):
            statistics = storage.statistics()
            metrics.storage_size.labels("storage-cluster-0").set(statistics.database_bytes)
            batches = metrics.commit_batch.labels()
            batches.counts = list(statistics.batch_buckets)
            batches.total = statistics.writes
        for prefix, resource in cacher.statistics().items():
            definition = by_prefix.get(prefix)
            if definition is None:
                continue
            name = f"{definition.plural}.{definition.group}" if definition.group else definition.plural
            metrics.storage_objects.labels(name).set(resource.objects)
            metrics.resource_objects.labels(definition.group, definition.plural).set(resource.objects)

    metrics.registry.collector(collect)


def export_version_metrics(metrics: Metrics, version: Mapping[str, str]) -> None:
    """What runs here (`version` is the document of /version), and how many metrics there are of each kind."""
    names = {
        "git_version": "gitVersion", "git_commit": "gitCommit", "git_tree_state": "gitTreeState",
        "build_date": "buildDate", "go_version": "goVersion",
    }  # fmt: skip
    labels = (version[names.get(label, label)] for label in metrics.build_info.label_names)
    metrics.build_info.labels(*labels).set(1.0)
    registry = metrics.registry
    info = registry.gauge(
        "version_info", "Always 1; the labels are the versions of the component.",
        ("component", "binary", "emulation", "min_compat"),
    )  # fmt: skip
    emulation = f"{version['emulationMajor']}.{version['emulationMinor']}"
    oldest = f"{version['minCompatibilityMajor']}.{version['minCompatibilityMinor']}"
    info.labels("kube", f"{version['major']}.{version['minor']}", emulation, oldest).set(1.0)
    registered = registry.counter(
        "registered_metrics_total", "Metrics that exist, by stability.", ("stability_level", "deprecated_version"),
        stability="BETA",
    )  # fmt: skip
    disabled = registry.counter("disabled_metrics_total", "Metrics that a flag has disabled.", stability="BETA")
    registry.counter("hidden_metrics_total", "Metrics that are hidden.", stability="BETA")

    def collect() -> None:
        counts = Counter(family.stability for family in registry.families.values())
        for stability, count in counts.items():
            registered.labels(stability, "").set(count)
        disabled.labels().set(len(registry.hidden & registry.families.keys()))

    registry.collector(collect)


class WatchMetrics:
    """Counts the watch events sent, per resource; the children are bound once."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._bound: dict[Scope, tuple[obs.Counter, obs.Histogram]] = {}

    def __call__(self, scope: Scope, events: int, size: int) -> None:
        """`events` events of `size` bytes in all went to one watcher."""
        bound = self._bound.get(scope)
        if bound is None:
            definition = scope.definition
            labels = (definition.group, definition.version, definition.plural)
            bound = self._bound[scope] = (
                self._metrics.watch_events.labels(*labels),
                self._metrics.watch_event_sizes.labels(*labels),
            )
        counter, sizes = bound
        counter.inc(events)
        sizes.observe(size / events, events)

    def terminated(self, scope: Scope) -> None:
        """A watcher was closed because its client read too slowly."""
        self._metrics.terminated_watchers.labels(scope.definition.group, scope.definition.plural).inc()

"""Flow control over its objects: changes are in force at once, schemas are told whether their priority level exists."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from time import monotonic
from typing import TYPE_CHECKING

from fastapi_core.controlplane.flow_objects import LEVELS, SCHEMAS
from fastapi_core.controlplane.keeper import Keeper
from fastapi_core.errors import APIError
from fastapi_core.flow.control import PERIOD, Control
from fastapi_core.flow.estimate import Estimator
from fastapi_core.flow.rules import LevelSpec, SchemaSpec, level_spec, schema_spec
from fastapi_core.http.exchange import Answer, Response
from fastapi_core.later import later
from fastapi_core.obs import logs
from fastapi_core.registry.definition import Tree
from fastapi_core.registry.store import retrying

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.controlplane.resources import Resources
    from fastapi_core.obs.catalog import Metrics
    from fastapi_core.options.options import Options
    from fastapi_core.registry import lifecycle, ownership
    from fastapi_core.request.context import RequestContext
    from fastapi_core.request.routing import Route
    from fastapi_core.schema import normalize
    from fastapi_core.server.generic import GenericServer
    from fastapi_core.storage.cacher.changes import WatchEvent
    from fastapi_core.storage.cacher.watchers import Watcher
else:
    normalize = later("fastapi_core.schema.normalize")
    ownership = later("fastapi_core.registry.ownership")
    lifecycle = later("fastapi_core.registry.lifecycle")

log = logs.get("flow")

CONSUMER = "api-priority-and-fairness-config-consumer-v1"
#: Writes of one schema's status within a minute, before it is left alone for a while: servers may disagree about it.
_WRITES_A_MINUTE = 6
_LATER = 45.0


def flow_control(options: Options, resources: Resources, metrics: Metrics) -> FlowControl | None:
    """Flow control over the objects in the store; None when it is switched off."""
    if not options.flowcontrol.enable_priority_and_fairness:
        return None
    generic = options.generic
    total = generic.max_requests_inflight + generic.max_mutating_requests_inflight
    return FlowControl(Control(total, metrics.registry), resources)


class FlowControl:
    """The control of a server tied to its objects. The configuration found is in force once this is made."""

    def __init__(self, control: Control, resources: Resources) -> None:
        self.control = control
        self.estimator = Estimator(_sizes(resources), control.watches)
        self._levels = resources.stores[LEVELS]
        self._schemas = resources.stores[SCHEMAS]
        self._parsed: dict[str, tuple[CachedObject, LevelSpec | SchemaSpec | None]] = {}
        self._in_force: list[object] = []
        self._changed = asyncio.Event()
        self._watchers: list[Watcher] = []
        self._status: asyncio.Task[None] | None = None
        self._written: dict[str, deque[float]] = {}
        self._adjuster = Keeper("priority-and-fairness-seats", self._adjust, PERIOD)
        self.digest()

    def install(self, server: GenericServer) -> None:
        """Hooks and their ends."""
        server.add_hook("priority-and-fairness-config-consumer", self.consume)
        server.add_hook("priority-and-fairness-filter", self._adjuster.start)
        # The seats are divided until the last request is through.
        server.on_stop(self.stop, "flow control")

    # Configuration -> control

    async def consume(self) -> None:
        """Follow the objects from now on."""
        for store in (self._levels, self._schemas):
            watcher = store.cache.watch(since=store.cache.revision, deliver=self._follow)
            self._watchers.append(await watcher if isinstance(watcher, Awaitable) else watcher)
        self.digest()
        self._changed.set()
        self._status = asyncio.create_task(self._keep_status(), name="flow schema status")

    def _follow(self, events: list[WatchEvent]) -> None:
        self.digest()
        self._changed.set()

    def digest(self) -> None:
        """Put the objects of this moment in force, unless nothing that matters has changed."""
        old, self._parsed = self._parsed, {}
        levels: list[LevelSpec] = []
        schemas: list[SchemaSpec] = []
        for store in (self._levels, self._schemas):
            for obj in store.cache.list().objects:
                known = old.get(obj.key)
                if known is None or known[0] is not obj:
                    tree = obj.tree()
                    known = obj, level_spec(tree) if store is self._levels else schema_spec(tree)
                    if known[1] is None:
                        log.warning("Priority level ignored, its spec makes no sense", name=obj.name)
                self._parsed[obj.key] = known
                spec = known[1]
                if isinstance(spec, LevelSpec):
                    levels.append(spec)
                elif spec is not None:
                    schemas.append(spec)
        specs: list[object] = [*levels, *schemas]
        if specs != self._in_force:
            self._in_force = specs
            self.control.digest(levels, schemas)

    async def _adjust(self) -> None:
        self.control.adjust()

    async def stop(self) -> None:
        for watcher in self._watchers:
            watcher.stop()
        await self._adjuster.stop()
        if self._status is not None:
            self._status.cancel()
            await asyncio.wait([self._status])

    # Control -> status of the objects

    async def _keep_status(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._changed.wait()
            self._changed.clear()
            names = [o.name for o in self._schemas.cache.list().objects if self._condition(o.tree()) is not None]
            ready = [name for name in names if self._may_write(name)]
            results = await asyncio.gather(*(self._write_status(name) for name in ready), return_exceptions=True)
            failed = [str(result) for result in results if isinstance(result, Exception)]
            if failed:
                log.warning("Status of flow schemas will be written later", error=failed[0])
            if failed or len(ready) < len(names):
                loop.call_later(_LATER, self._changed.set)

    def _may_write(self, name: str) -> bool:
        now = monotonic()
        times = self._written.setdefault(name, deque(maxlen=_WRITES_A_MINUTE))
        if len(times) == _WRITES_A_MINUTE and now - times[0] < 60.0:
            return False
        times.append(now)
        return True

    def _condition(self, tree: Tree) -> Tree | None:
        """The condition a schema has to get; None when it is there."""
        level = ((tree.get("spec") or {}).get("priorityLevelConfiguration") or {}).get("name") or ""
        found = level in self.control.levels and not self.control.levels[level].leaving
        text = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}" '
        wanted = {
            "type": "Dangling",
            "status": "False" if found else "True",
            "lastTransitionTime": lifecycle.timestamp(),
            "reason": "Found" if found else "NotFound",
            "message": text + ("and it exists" if found else "but there is no such object"),
        }
        for condition in (tree.get("status") or {}).get("conditions") or ():
            if condition.get("type") == "Dangling" and all(
                condition.get(member) == wanted[member] for member in ("status", "reason", "message")
            ):
                return None
        return wanted

    async def _write_status(self, name: str) -> None:
        from fastapi_core.patch import managers
        from fastapi_core.patch.apply import Applier

        store = self._schemas
        definition = store.definition
        applier = Applier(ownership.tracker(definition, "status"))

        async def attempt(current: CachedObject) -> None:
            tree = current.tree()
            condition = self._condition(tree)
            if condition is None:
                return
            config = {
                "kind": definition.kind,
                "apiVersion": definition.group_version,
                "metadata": {"name": name},
                "status": {"conditions": [condition]},
            }
            applied = applier.apply(tree, config, CONSUMER, lifecycle.timestamp(), force=True)
            new = normalize.normalize(definition.type, applied.tree or tree).tree
            new["metadata"]["managedFields"] = managers.write(applied.managed)
            lifecycle.before_update(definition, new, current.tree(), definition.strategy.prepare_status)
            await store.update(current, new)

        try:
            await retrying(store, "", name, attempt)
        except APIError as error:
            if error.reason != "NotFound":
                raise


def _sizes(resources: Resources) -> Callable[[str, str], tuple[int, int] | None]:
    caches = {
        (definition.group, definition.plural): resources.stores[definition.key_prefix].cache
        for definition in resources.definitions
        if definition.key_prefix
    }

    def sizes(group: str, resource: str) -> tuple[int, int] | None:
        cache = caches.get((group, resource))
        if cache is None:
            return None
        statistics = cache.statistics()
        return statistics.objects, statistics.bytes

    return sizes


def debug_routes(control: Control) -> list[Route]:
    """The dumps, for whoever is authorised; no index lists them."""

    def plain(body: str) -> Answer:
        return Response(200, [(b"Content-Type", b"text/plain; charset=utf-8")], body.encode())

    def levels(ctx: RequestContext) -> Answer:
        from fastapi_core.flow import dump

        return plain(dump.priority_levels(control))

    def queues(ctx: RequestContext) -> Answer:
        from fastapi_core.flow import dump

        return plain(dump.queues(control))

    def requests(ctx: RequestContext) -> Answer:
        from fastapi_core.flow import dump

        return plain(dump.requests(control, details=bool(ctx.info.first("includeRequestDetails"))))

    prefix = "/debug/api_priority_and_fairness/"
    return [
        (prefix + "dump_priority_levels", {"*": levels}),
        (prefix + "dump_queues", {"*": queues}),
        (prefix + "dump_requests", {"*": requests}),
    ]

"""APIServices of the groups this server answers for itself: made at the start, and kept for custom resources.

Which objects are looked after says a label: `onstart` ones are made and corrected once, `true` ones always, others are
somebody's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fastapi_core.discovery import priorities
from fastapi_core.errors import APIError
from fastapi_core.later import later
from fastapi_core.obs import logs
from fastapi_core.storage.interface import StorageError

if TYPE_CHECKING:
    from fastapi_core.aggregation.directory import Directory
    from fastapi_core.registry import lifecycle
    from fastapi_core.registry.store import ResourceStore
    from fastapi_core.schema import normalize
    from fastapi_core.storage.cacher.changes import WatchEvent
    from fastapi_core.storage.cacher.watchers import Watcher
else:
    normalize = later("fastapi_core.schema.normalize")
    lifecycle = later("fastapi_core.registry.lifecycle")

log = logs.get("aggregation")

Tree = dict[str, Any]
OWN_GROUP = "apiregistration.k8s.io"
"""Has no APIService of its own."""
LABEL = "kube-aggregator.kubernetes.io/automanaged"
ON_START, ALWAYS = "onstart", "true"
CUSTOM_GROUP_PRIORITY, CUSTOM_VERSION_PRIORITY = 1000, 100
_RETRY = 1.0


class Registrations:
    """What has to be registered, and the worker that sees to it."""

    def __init__(self, store: ResourceStore, directory: Directory) -> None:
        self._store = store
        self._directory = directory
        self._wanted: dict[str, tuple[str, Tree]] = {}
        self._at_start: frozenset[str] = frozenset()
        self._once: set[str] = set()
        self._pending: set[str] = set()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._watcher: Watcher | None = None

    # What others call

    def register_local(
        self,
        group: str,
        version: str,
        group_priority: int = CUSTOM_GROUP_PRIORITY,
        version_priority: int = CUSTOM_VERSION_PRIORITY,
        *,
        mode: str = ALWAYS,
    ) -> None:
        """Keep an APIService for a group version that this server answers for; soon, and again when it is removed."""
        spec: Tree = {"version": version, "groupPriorityMinimum": group_priority, "versionPriority": version_priority}
        if group:
            spec = {"group": group, **spec}
        self._wanted[f"{version}.{group}"] = mode, spec
        self._ask(f"{version}.{group}")

    def withdraw_local(self, group: str, version: str) -> None:
        """The group version is no longer served: its APIService goes, if it is one that is looked after."""
        if self._wanted.pop(f"{version}.{group}", None) is not None:
            self._ask(f"{version}.{group}")

    def builtin(self, versions: Mapping[str, Iterable[str]]) -> None:
        """Register the built-in groups (group -> versions)."""
        for group, names in versions.items():
            priority = priorities.BUILTIN.get(group, priorities.DEFAULT)
            if group != OWN_GROUP:
                for version in names:
                    number = priority.versions.get(version, priority.other)
                    self.register_local(group, version, priority.group, number, mode=ON_START)

    def settle(self, group: str, served: set[str], before: set[str]) -> None:
        """The versions custom resources of a group are served in now, and those they were served in before."""
        for version in before - served:
            obj = self._store.cache.get(self._store.key("", f"{version}.{group}"))
            if obj is None or _mode(obj.tree()) == ALWAYS:
                self._directory.forget(group, version)
            self.withdraw_local(group, version)
        for version in served - before:
            self._directory.expect(group, version, CUSTOM_GROUP_PRIORITY, CUSTOM_VERSION_PRIORITY)
            self.register_local(group, version)

    # The worker

    async def start(self) -> None:
        """Make what is missing, then go on until `stop`."""
        cache = self._store.cache
        revision = cache.revision
        present = cache.list().objects
        self._at_start = frozenset(obj.name for obj in present if _mode(obj.tree()) == ON_START)
        self._pending.update(obj.name for obj in present if _mode(obj.tree()))
        watcher = cache.watch(since=revision, deliver=self._followed)
        self._watcher = await watcher if isinstance(watcher, Awaitable) else watcher
        await self._work()
        self._task = asyncio.create_task(self._run(), name="API service registration")

    async def stop(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def missing(self) -> list[str]:
        """Wanted ones that were never seen to."""
        return sorted(name for name in self._wanted if name in self._pending and name not in self._once)

    def _ask(self, name: str) -> None:
        self._pending.add(name)
        self._wake.set()

    def _followed(self, events: list[WatchEvent]) -> None:
        for event in events:
            name = event.change.object.name
            wanted = self._wanted.get(name)
            if (wanted is not None and wanted[0] == ALWAYS) or _mode(event.change.object.tree()) == ALWAYS:
                self._ask(name)

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if await self._work():
                asyncio.get_running_loop().call_later(_RETRY, self._wake.set)

    async def _work(self) -> bool:
        """See to everything that is pending; True when something is left for later."""
        names, self._pending = self._pending, set()
        results = await asyncio.gather(*(self._sync(name) for name in names), return_exceptions=True)
        for name, result in zip(names, results, strict=True):
            if isinstance(result, APIError | StorageError):
                self._pending.add(name)
                log.warning("Registration will be tried again", apiservice=name, error=str(result))
            elif isinstance(result, BaseException):
                raise result
        return bool(self._pending)

    async def _sync(self, name: str) -> None:
        wanted = self._wanted.get(name)
        obj = self._store.cache.get(self._store.key("", name))
        if obj is None:
            if wanted is not None and not (wanted[0] == ON_START and name in self._once):
                await self._create(name, *wanted)
                self._once.add(name)
            return
        tree = obj.tree()
        mode = _mode(tree)
        if not mode or (mode == ON_START and (name not in self._at_start or name in self._once)):
            self._once.add(name)
            return
        if wanted is None:
            self._once.add(name)
            await self._store.delete(obj)
            return
        spec = {**(tree.get("spec") or {})}
        self._once.add(name)
        new = {**tree, "spec": wanted[1], "metadata": {**tree["metadata"], "labels": _labels(tree, wanted[0])}}
        if spec != wanted[1] or new["metadata"]["labels"] != tree["metadata"].get("labels"):
            definition = self._store.definition
            full = normalize.normalize(definition.type, new).tree
            lifecycle.before_update(definition, full, tree, definition.strategy.prepare)
            await self._store.update(obj, full)

    async def _create(self, name: str, mode: str, spec: Tree) -> None:
        definition = self._store.definition
        tree: Tree = {
            "kind": definition.kind,
            "apiVersion": definition.group_version,
            "metadata": {"name": name, "labels": {LABEL: mode}},
            "spec": spec,
        }
        full = normalize.normalize(definition.type, tree).tree
        lifecycle.before_create(definition, full)
        try:
            await self._store.create(full)
        except APIError as error:
            if error.reason != "AlreadyExists":
                raise


def _mode(tree: Tree) -> str:
    mode = (tree["metadata"].get("labels") or {}).get(LABEL)
    return mode if mode in (ON_START, ALWAYS) else ""


def _labels(tree: Tree, mode: str) -> Mapping[str, str]:
    return {**(tree["metadata"].get("labels") or {}), LABEL: mode}

"""The APIService of every group version that custom resources are served in: clients see there who answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from fastapi_core import errors
from fastapi_core.obs import logs
from fastapi_core.registry import lifecycle
from fastapi_core.storage.interface import Code, StorageError

if TYPE_CHECKING:
    from fastapi_core.registry.store import ResourceStore

log = logs.get("customresources")
Tree = dict[str, Any]
LABEL = "kube-aggregator.kubernetes.io/automanaged"
PREFIX = "/registry/apiregistration.k8s.io/apiservices/"
RETRY_SECONDS = 1.0


class Registration:
    """Keeps the objects in step with what is served; only those that carry the label are touched."""

    def __init__(self, store: ResourceStore) -> None:
        self._store = store
        self._served: set[tuple[str, str]] = set()
        self._waiting: dict[tuple[str, str], None] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def settle(self, group: str, served: set[str], gone: set[str]) -> None:
        """The versions a group is served in now, and those it was served in before."""
        for version in gone - served:
            self._served.discard((group, version))
            self._waiting[(group, version)] = None
        for version in served:
            if (group, version) not in self._served:
                self._served.add((group, version))
                self._waiting[(group, version)] = None
        if self._waiting:
            self._wake.set()

    async def start(self) -> None:
        self._task = asyncio.create_task(self._work(), name="custom-resource-registration")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        self._sweep()
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                key = next(iter(self._waiting))
                del self._waiting[key]
                try:
                    await self._write(*key)
                except (StorageError, errors.APIError) as error:
                    log.warning("An APIService will be written again", group=key[0], error=str(error))
                    asyncio.get_running_loop().call_later(RETRY_SECONDS, self._again, key)

    def _again(self, key: tuple[str, str]) -> None:
        self._waiting[key] = None
        self._wake.set()

    def _sweep(self) -> None:
        """Objects of definitions that went while no server ran."""
        for obj in self._store.cache.list().objects:
            tree = obj.tree()
            spec: Tree = tree.get("spec") or {}
            key = (spec.get("group") or "", spec.get("version") or "")
            if _ours(tree) and key not in self._served:
                self._waiting[key] = None
                self._wake.set()

    async def _write(self, group: str, version: str) -> None:
        name = f"{version}.{group}"
        current = self._store.cache.get(self._store.key("", name))
        if (group, version) in self._served:
            if current is None:
                await self._store.create(service(group, version, lifecycle.timestamp()))
        elif current is not None and _ours(current.tree()):
            try:
                await self._store.delete(current)
            except StorageError as error:
                if error.code is not Code.KEY_NOT_FOUND:
                    raise


def _ours(tree: Tree) -> bool:
    """Made here: the label, no service behind it, and the priorities of custom resources."""
    spec: Tree = tree.get("spec") or {}
    labels = tree["metadata"].get("labels") or {}
    return labels.get(LABEL) == "true" and not spec.get("service") and spec.get("versionPriority") == 100


def service(group: str, version: str, now: str) -> Tree:
    """The object of a group version."""
    return {
        "kind": "APIService",
        "apiVersion": "apiregistration.k8s.io/v1",
        "metadata": {
            "name": f"{version}.{group}",
            "uid": lifecycle.new_uid(),
            "creationTimestamp": now,
            "labels": {LABEL: "true"},
        },
        "spec": {"group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": 100},
        "status": {
            "conditions": [
                {
                    "type": "Available",
                    "status": "True",
                    "lastTransitionTime": now,
                    "reason": "Local",
                    "message": "Local APIServices are always available",
                }
            ]
        },
    }

"""Follows the definitions: serves what they say from the commit on, and writes what their status should be.

Everything that requests see changes synchronously, in the listener of the commit. Writes (status, the end of a deleted
definition) are one task's, which takes definitions in the order in which they asked for attention.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from fastapi_core.crd import conditions
from fastapi_core.crd.definitions import FINALIZER, Definition, Names, read
from fastapi_core.obs import logs
from fastapi_core.registry import lifecycle
from fastapi_core.storage.cacher.changes import WatchEvent
from fastapi_core.storage.interface import Code, StorageError

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.registry.store import ResourceStore
    from fastapi_core.storage.cacher.watchers import Watcher

log = logs.get("customresources")
Tree = dict[str, Any]
RETRY_SECONDS = 1.0


class Server(Protocol):
    """Who serves requests for objects of definitions."""

    def serve(self, definition: Definition) -> None:
        """From now on in this state."""

    def drop(self, definition: Definition) -> None:
        """No longer."""

    def store(self, definition: Definition) -> ResourceStore | None:
        """The objects of a definition; None when they are somebody else's."""


class Definitions:
    """All definitions, by name and by group."""

    def __init__(self, store: ResourceStore, server: Server, *, sound_bundle: Callable[[Definition], bool]) -> None:
        self._store = store
        self._server = server
        self._sound_bundle = sound_bundle
        self.known: dict[str, Definition] = {}
        self._groups: dict[str, dict[str, Definition]] = {}
        self._waiting: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._watcher: Watcher | None = None
        self._emptied: dict[str, Watcher] = {}

    # Life

    def follow(self) -> None:
        """Serve what is stored, and everything that is committed from now on."""
        cache = self._store.cache
        listing = cache.list()
        for obj in listing.objects:
            self._observe(obj)
        watcher = cache.watch(since=listing.revision, deliver=self._deliver)
        assert not asyncio.iscoroutine(watcher)
        self._watcher = watcher  # type: ignore[assignment]

    async def start(self) -> None:
        """Begin to write."""
        self._task = asyncio.create_task(self._work(), name="custom-resource-definitions")

    async def stop(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()
        for watcher in self._emptied.values():
            watcher.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # Commits

    def _deliver(self, events: list[WatchEvent]) -> None:
        for event in events:
            try:
                if event.type == "DELETED":
                    self._gone(event.change.object.name)
                else:
                    self._observe(event.change.object)
            except Exception as error:
                # One definition that cannot be understood is no reason to stop following the others.
                log.error("A definition cannot be served", error, name=event.change.object.name)

    def _observe(self, obj: CachedObject) -> None:
        definition = read(obj)
        before = self.known.get(definition.name)
        if before is not None and before.uid != definition.uid:
            self._server.drop(before)
            before = None
        self.known[definition.name] = definition
        self._groups.setdefault(definition.group, {})[definition.name] = definition
        if definition.serving:
            self._server.serve(definition)
        elif before is not None and before.serving:
            self._server.drop(before)
        if definition.deleting or self._settled(definition) is not None:
            self.attend(definition.name)
        if before is not None and before.accepted != definition.accepted:
            self._review(definition.group)

    def _gone(self, name: str) -> None:
        definition = self.known.pop(name, None)
        if definition is None:
            return
        members = self._groups[definition.group]
        del members[name]
        if not members:
            del self._groups[definition.group]
        watcher = self._emptied.pop(name, None)
        if watcher is not None:
            watcher.stop()
        self._server.drop(definition)
        self._review(definition.group)

    def _review(self, group: str) -> None:
        """Names have become free: those who lack them ask again."""
        for name, definition in self._groups.get(group, {}).items():
            if not definition.holds("NamesAccepted"):
                self.attend(name)

    def attend(self, name: str) -> None:
        """Look after a definition soon."""
        self._waiting[name] = None
        self._wake.set()

    # Writing

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            while self._waiting:
                name = next(iter(self._waiting))
                del self._waiting[name]
                try:
                    await self._look_after(name)
                except StorageError as error:
                    if error.code not in (Code.CONFLICT, Code.KEY_NOT_FOUND):
                        self._later(name, error)
                    else:
                        # Somebody else has written: their commit brings it back here when it still needs to be.
                        await self._store.settle(error)
                        if name in self.known:
                            self.attend(name)
                except Exception as error:
                    self._later(name, error)
            self._wake.clear()

    def _later(self, name: str, error: Exception) -> None:
        log.warning("A definition will be looked after again", name=name, error=str(error))
        asyncio.get_running_loop().call_later(RETRY_SECONDS, self.attend, name)

    async def _look_after(self, name: str) -> None:
        definition = self.known.get(name)
        if definition is None:
            return
        if definition.deleting:
            if definition.finalizing:
                await self._finalize(definition)
            return
        wanted = self._settled(definition)
        if wanted is not None:
            await self._store.update(definition.source, wanted)

    def _settled(self, definition: Definition) -> Tree | None:
        return conditions.settled(
            definition,
            lambda: self._others(definition),
            lifecycle.timestamp(),
            sound_bundle=lambda: self._sound_bundle(definition),
        )

    def _others(self, definition: Definition) -> Iterable[Names]:
        for name, other in self._groups.get(definition.group, {}).items():
            if name != definition.name:
                yield other.accepted

    # Deletion

    async def _finalize(self, definition: Definition) -> None:
        """Delete the objects; the definition goes when the last of them is gone."""
        tree = definition.source.tree()
        now = lifecycle.timestamp()
        if not definition.serving and not definition.holds("NamesAccepted"):
            await self._finish(definition, conditions.terminating(tree, conditions.NEVER, now))
            return
        store = self._server.store(definition)
        if store is None:
            await self._finish(definition, conditions.terminating(tree, conditions.OVERLAPPING, now))
            return
        if (definition.conditions.get("Terminating") or {}).get("reason") == "InstanceDeletionPending":
            marked = conditions.terminating(tree, conditions.IN_PROGRESS, now)
            source = await self._store.update(definition.source, marked)
            definition, tree = read(source), source.tree()
        await delete_all(store)
        if store.cache.count():
            self._wait_until_empty(definition.name, store)
        if not store.cache.count():
            await self._finish(definition, conditions.terminating(tree, conditions.COMPLETED, now))

    def _wait_until_empty(self, name: str, store: ResourceStore) -> None:
        if name in self._emptied:
            return

        def deliver(events: list[WatchEvent]) -> None:
            if not store.cache.count():
                self.attend(name)

        watcher = store.cache.watch(since=store.cache.revision, deliver=deliver)
        self._emptied[name] = watcher  # type: ignore[assignment]

    async def _finish(self, definition: Definition, tree: Tree) -> None:
        metadata = dict(tree["metadata"])
        metadata["finalizers"] = [name for name in metadata.get("finalizers") or () if name != FINALIZER]
        tree = {**tree, "metadata": metadata}
        if lifecycle.to_be_removed(tree):
            await self._store.delete(definition.source)
        else:
            await self._store.update(definition.source, tree)


async def delete_all(store: ResourceStore) -> None:
    """Delete every object as a client would; those with finalizers stay, marked."""
    for obj in store.cache.list().objects:
        tree = obj.tree()
        plan = lifecycle.plan_deletion(store.definition, tree, grace=None, orphan=None, propagation="")
        try:
            if plan.changed:
                obj = await store.update(obj, plan.tree)
            if plan.remove:
                await store.delete(obj)
        except StorageError as error:
            if error.code is Code.CONFLICT:
                await store.settle(error)
                await delete_all(store)
                return
            if error.code is not Code.KEY_NOT_FOUND:
                raise

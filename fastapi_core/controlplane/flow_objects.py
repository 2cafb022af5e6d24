"""The flow schemas and priority levels every server has: made at the start, looked after while it runs.

They are there whether or not this server shares its seats by them: others of the same store may.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fastapi_core.errors import APIError
from fastapi_core.flow import bootstrap
from fastapi_core.later import later
from fastapi_core.obs import logs
from fastapi_core.registry.store import retrying
from fastapi_core.storage.interface import StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.flow.bootstrap import Bootstrap
    from fastapi_core.registry import lifecycle, ownership
    from fastapi_core.registry.store import ResourceStore
    from fastapi_core.rest import defaulting
    from fastapi_core.schema import normalize
else:
    normalize = later("fastapi_core.schema.normalize")
    defaulting = later("fastapi_core.rest.defaulting")
    ownership = later("fastapi_core.registry.ownership")
    lifecycle = later("fastapi_core.registry.lifecycle")

log = logs.get("flow")

PRODUCER = "api-priority-and-fairness-config-producer-v1"
LEVELS = "/registry/prioritylevelconfigurations/"
SCHEMAS = "/registry/flowschemas/"
#: How often they are looked after.
KEEP_SECONDS = 60.0


async def ensure(stores: Mapping[str, ResourceStore]) -> None:
    """Make the objects that are not there, bring those in line that follow, remove what other versions left.

    With all in place nothing is written.
    """
    wanted = [(stores[LEVELS], bootstrap.LEVELS), (stores[SCHEMAS], bootstrap.SCHEMAS)]
    await asyncio.gather(*(_ensure(store, one) for store, objects in wanted for one in objects))
    for store, objects in reversed(wanted):
        names = frozenset(one.tree["metadata"]["name"] for one in objects)
        for obj in store.cache.list().objects:
            if bootstrap.is_left_over(obj.tree(), names):
                await _remove(store, obj)


async def _ensure(store: ResourceStore, wanted: Bootstrap) -> None:
    definition = store.definition
    name = wanted.tree["metadata"]["name"]
    if store.cache.get(store.key("", name)) is None:
        tree = normalize.normalize(definition.type, wanted.tree).tree
        defaulting.apply_defaults(definition, tree)
        ownership.tracker(definition).update(None, tree, PRODUCER, lifecycle.timestamp())
        lifecycle.before_create(definition, tree)
        try:
            await store.create(tree)
        except APIError as error:
            if error.reason != "AlreadyExists":
                raise
        return

    async def attempt(current: CachedObject) -> None:
        old = current.tree()
        new = bootstrap.revised(old, wanted)
        if new is not None:
            new = normalize.normalize(definition.type, new).tree
            ownership.tracker(definition).update(old, new, PRODUCER, lifecycle.timestamp())
            lifecycle.before_update(definition, new, old, definition.strategy.prepare)
            await store.update(current, new)

    await retrying(store, "", name, attempt)


async def _remove(store: ResourceStore, obj: CachedObject) -> None:
    try:
        await store.delete(obj)
    except StorageError:
        # Somebody was faster; the next round looks again.
        return
    log.info("Removed an object no longer in use", kind=store.definition.kind, name=obj.name)

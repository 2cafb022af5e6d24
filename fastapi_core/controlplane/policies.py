"""Brings the roles and bindings of `authz/policies.py` into the store at start: what is complete costs no write."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from fastapi_core.authz import policies
from fastapi_core.errors import APIError
from fastapi_core.later import later
from fastapi_core.registry.store import retrying
from fastapi_core.storage.interface import StorageError

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.controlplane.resources import Resources
    from fastapi_core.registry import lifecycle
    from fastapi_core.registry.definition import Tree
    from fastapi_core.registry.store import ResourceStore
else:
    lifecycle = later("fastapi_core.registry.lifecycle")


async def bootstrap(resources: Resources) -> None:
    """Make and complete the policy objects."""
    work: list[Awaitable[None]] = []
    for plural, trees in policies.expected():
        store = resources.stores[f"/registry/{plural}/"]
        for tree in trees:
            metadata = tree["metadata"]
            present = store.cache.get(store.key(metadata.get("namespace", ""), metadata["name"]))
            if present is None:
                work.append(_make(store, tree))
            elif policies.corrected(present.tree(), tree) is not None:
                work.append(_correct(store, tree))
    # All at once, so that they share their commits.
    await asyncio.gather(*work)


async def _make(store: ResourceStore, tree: Tree) -> None:
    metadata = {**tree["metadata"], "uid": lifecycle.new_uid(), "creationTimestamp": lifecycle.timestamp()}
    try:
        await store.create({**tree, "metadata": metadata})
    except APIError as error:
        if error.reason != "AlreadyExists":
            raise


async def _correct(store: ResourceStore, tree: Tree) -> None:
    metadata = tree["metadata"]

    async def attempt(current: CachedObject) -> None:
        correction = policies.corrected(current.tree(), tree)
        if correction is None:
            return
        if not correction.anew:
            await store.update(current, correction.tree)
            return
        await store.delete(current)
        await _make(store, tree)

    try:
        await retrying(store, metadata.get("namespace", ""), metadata["name"], attempt)
    except APIError as error:
        if error.reason != "NotFound":
            raise
        # Somebody removed it meanwhile.
        await _make(store, tree)
    except StorageError as error:
        raise store.write_error(error, metadata["name"]) from error

"""The last step of a write: an object too large to store is tried once more without its managedFields."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi_core._ext.objects import CachedObject
from fastapi_core.errors import APIError
from fastapi_core.registry.definition import Tree
from fastapi_core.storage.interface import Code, StorageError


async def commit(
    write: Callable[[Tree], Awaitable[CachedObject]], tree: Tree, *, applied: bool = False
) -> CachedObject:
    """`write(tree)`; what an apply made keeps its managedFields or fails."""
    try:
        return await write(tree)
    except APIError as error:
        cause = error.__cause__
        too_large = isinstance(cause, StorageError) and cause.code is Code.TOO_LARGE
        metadata = tree["metadata"]
        if applied or not too_large or "managedFields" not in metadata:
            raise
    kept = {name: value for name, value in metadata.items() if name != "managedFields"}
    return await write({**tree, "metadata": kept})

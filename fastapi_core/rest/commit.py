"""The last step of a write: an object too large to store is tried once more without its managedFields."""

from __future__ import annotations

from fastapi_core.errors import APIError
from fastapi_core.registry.definition import Tree
from fastapi_core.storage.interface import Code, StorageError


def slimmed(error: APIError, tree: Tree, *, applied: bool) -> Tree:
    """`tree` without its managedFields when `error` says that it is too large with them; raises `error` otherwise.

    What an apply made (`applied`) keeps its managedFields or fails.
    """
    cause = error.__cause__
    too_large = isinstance(cause, StorageError) and cause.code is Code.TOO_LARGE
    metadata = tree["metadata"]
    if applied or not too_large or "managedFields" not in metadata:
        raise error
    return {**tree, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}

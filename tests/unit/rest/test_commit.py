"""Objects that are too large with their managedFields."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.errors import APIError
from fastapi_core.rest.commit import commit
from fastapi_core.storage.interface import Code, StorageError

TREE: dict[str, Any] = {"metadata": {"name": "n", "managedFields": [{}]}}


class Store:
    def __init__(self, code: Code) -> None:
        self.code = code
        self.written: list[Any] = []

    async def write(self, tree: Any) -> Any:
        self.written.append(tree)
        if "managedFields" in tree["metadata"]:
            raise APIError("", "failed", code=500) from StorageError(self.code, "key", 0)
        return tree


async def test_too_large_objects_lose_their_entries() -> None:
    store = Store(Code.TOO_LARGE)
    kept: Any = await commit(store.write, TREE)
    assert kept == {"metadata": {"name": "n"}}
    assert len(store.written) == 2
    assert "managedFields" in TREE["metadata"]


@pytest.mark.parametrize(("code", "applied"), [(Code.TOO_LARGE, True), (Code.UNAVAILABLE, False)])
async def test_other_failures_and_applies_fail(code: Code, applied: bool) -> None:
    store = Store(code)
    with pytest.raises(APIError):
        await commit(store.write, TREE, applied=applied)
    assert len(store.written) == 1

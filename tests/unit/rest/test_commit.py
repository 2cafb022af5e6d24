"""Objects that are too large with their managedFields."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.errors import APIError
from fastapi_core.rest.commit import slimmed
from fastapi_core.storage.interface import Code, StorageError

TREE: dict[str, Any] = {"metadata": {"name": "n", "managedFields": [{}]}}


def failure(code: Code) -> APIError:
    error = APIError("", "failed", code=500)
    error.__cause__ = StorageError(code, "key", 0)
    return error


def test_too_large_objects_lose_their_entries() -> None:
    assert slimmed(failure(Code.TOO_LARGE), TREE, applied=False) == {"metadata": {"name": "n"}}
    assert "managedFields" in TREE["metadata"]


@pytest.mark.parametrize(
    ("error", "applied", "tree"),
    [
        (failure(Code.TOO_LARGE), True, TREE),
        (failure(Code.UNAVAILABLE), False, TREE),
        (failure(Code.TOO_LARGE), False, {"metadata": {"name": "n"}}),
        (APIError("Invalid", "bad"), False, TREE),
    ],
)
def test_others_fail(error: APIError, applied: bool, tree: dict[str, Any]) -> None:
    with pytest.raises(APIError) as raised:
        slimmed(error, tree, applied=applied)
    assert raised.value is error

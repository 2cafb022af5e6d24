from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fastapi_core.patch.errors import PatchError
from fastapi_core.patch.jsonpatch import apply_json_patch, unknown_members
from fastapi_core.patch.merge import merge
from fastapi_core.patch.strategic import strategic
from fastapi_core.schema.tables import type_of


def nested(depth: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return {"metadata": {"labels": value}}


DEEP = nested(20_000)


@pytest.mark.parametrize(
    "run",
    [
        lambda: merge({}, DEEP),
        lambda: merge(DEEP, DEEP),
        lambda: strategic({}, DEEP, type_of("core/v1.Pod")),
        lambda: apply_json_patch(DEEP, [{"op": "test", "path": "", "value": nested(20_000)}]),
        lambda: apply_json_patch(DEEP, [{"op": "copy", "from": "/metadata", "path": "/b"}]),
    ],
)
def test_nesting_without_end_is_a_client_error(run: Callable[[], Any]) -> None:
    with pytest.raises(PatchError) as caught:
        run()
    assert caught.value.code in (400, 422)


def test_unknown_members_of_operations() -> None:
    body = [{"op": "add", "path": "/a", "value": 1}, {"Op": "add", "x": 1}, None, 1]
    assert unknown_members(body) == ['json patch unknown field "[1].Op"', 'json patch unknown field "[1].x"']
    assert unknown_members({"op": "add"}) == []

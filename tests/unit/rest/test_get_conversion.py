"""GET of an object that another server has to convert first."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fastapi_core._ext.objects import CachedObject
from fastapi_core.rest import get, render


class Scope:
    """Counts conversions that are begun and that are waited for: one that is not is a warning of Python's."""

    def __init__(self, obj: CachedObject) -> None:
        self.store = SimpleNamespace(
            fresh=lambda: None, key=lambda namespace, name: name, cache=SimpleNamespace(get=lambda key: obj)
        )
        self.begun = self.ended = 0

    def is_ready(self, objects: Sequence[CachedObject]) -> bool:
        return self.ended > 0

    def ready(self, objects: Sequence[CachedObject]) -> Awaitable[None] | None:
        self.begun += 1
        return self._convert()

    async def _convert(self) -> None:
        self.ended += 1

    async def readied(self, obj: CachedObject) -> CachedObject:
        pending = self.ready((obj,))
        if pending is not None:
            await pending
        return obj


async def test_a_conversion_is_begun_once(monkeypatch: pytest.MonkeyPatch) -> None:
    obj = CachedObject("a", "", "a", b'{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}', 1, 0)
    monkeypatch.setattr(render, "one", lambda ctx, scope, found: found)
    scope = Scope(obj)
    endpoint = get.getter(cast("Any", scope))
    ctx: Any = SimpleNamespace(
        request=SimpleNamespace(header=lambda name: None), info=SimpleNamespace(query="", namespace="", name="a")
    )
    pending = endpoint(ctx)
    assert isinstance(pending, Awaitable)
    assert cast("Any", await pending) is obj
    assert (scope.begun, scope.ended) == (1, 1)
    assert cast("Any", endpoint(ctx)) is obj
    assert scope.begun == 1

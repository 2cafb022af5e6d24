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

    converts = True

    def __init__(self, obj: CachedObject) -> None:
        self.store = SimpleNamespace(
            fresh=lambda: None, key=lambda namespace, name: name, cache=SimpleNamespace(get=lambda key: obj)
        )
        self.begun = self.ended = 0

    def ready(self, objects: Sequence[CachedObject]) -> Awaitable[None] | None:
        return None if self.ended else self.anew(objects[0])

    def anew(self, obj: CachedObject) -> Awaitable[None] | None:
        self.begun += 1
        return self._convert()

    async def _convert(self) -> None:
        self.ended += 1


async def test_a_consistent_read_has_the_object_converted_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    obj = CachedObject("a", "", "a", b'{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}', 1, 0)
    monkeypatch.setattr(render, "one", lambda ctx, scope, found, media: found)
    monkeypatch.setattr(render, "media_type", lambda ctx, scope: None)
    scope = Scope(obj)
    endpoint = get.getter(cast("Any", scope))
    ctx: Any = SimpleNamespace(info=SimpleNamespace(query="", namespace="", name="a"))
    for times in (1, 2):
        pending = endpoint(ctx)
        assert isinstance(pending, Awaitable)
        assert cast("Any", await pending) is obj
        assert (scope.begun, scope.ended) == (times, times)
    any_state: Any = SimpleNamespace(
        info=SimpleNamespace(query={"resourceVersion": ["0"]}, namespace="", name="a", first=lambda name: "0")
    )
    assert cast("Any", endpoint(any_state)) is obj
    assert scope.begun == 2

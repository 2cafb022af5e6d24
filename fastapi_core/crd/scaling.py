"""The Scale of a custom resource: replicas stand where the version says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi_core import errors
from fastapi_core.crd.definitions import Scale
from fastapi_core.crd.strategy import at, steps
from fastapi_core.rest.scale import scale_of

if TYPE_CHECKING:
    from fastapi_core.patch.scale import Paths

Tree = dict[str, Any]


class CustomScaling:
    """A `rest.scale.Scaling`."""

    def __init__(self, scale: Scale, paths: Paths) -> None:
        self.paths = paths
        self._scale = scale

    def check(self, parent: Tree) -> None:
        """500 for an object that has no replicas to show."""
        if at(parent, self._scale.spec) is None:
            raise errors.internal(f"the spec replicas field {errors.go_quote(self._scale.spec)} does not exist")

    def read(self, parent: Tree) -> Tree:
        scale = self._scale
        selector = at(parent, scale.selector) if scale.selector else None
        return scale_of(
            parent,
            _number(at(parent, scale.spec)),
            _number(at(parent, scale.status)),
            selector if isinstance(selector, str) else "",
        )

    def write(self, parent: Tree, replicas: int) -> Tree:
        *outer, last = steps(self._scale.spec)
        made = dict(parent)
        inner = made
        for step in outer:
            found = inner.get(step)
            inner[step] = dict(found) if isinstance(found, dict) else {}
            inner = inner[step]
        inner[last] = replicas
        return made


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0

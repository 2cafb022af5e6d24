"""The gate between a decoded object and the store: mutating plugins in order, then validating ones.

A plugin is any object with `admit` (may change the tree) and/or `validate`. Both return None, or an awaitable when
they have to ask somebody; a chain of plugins that answer at once costs no task. A refusal is an `APIError`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi_core.registry.definition import ResourceDefinition, Tree

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext


@dataclass(slots=True)
class Attributes:
    """What is being done: `operation` is CREATE, UPDATE, DELETE or CONNECT; `object` None on delete, `old` on create."""

    operation: str
    definition: ResourceDefinition
    subresource: str
    namespace: str
    name: str
    object: Tree | None
    old: Tree | None
    dry_run: bool
    context: RequestContext


Step = Callable[[Attributes], "Awaitable[None] | None"]


class Plugin:
    """A plugin that lets everything pass; subclasses override what they care about."""

    name = ""

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        return None

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        return None


class AdmissionChain:
    """All plugins in the reference's order."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self.plugins = tuple(plugins)
        self._mutating = tuple(p.admit for p in plugins if type(p).admit is not Plugin.admit)
        self._validating = tuple(p.validate for p in plugins if type(p).validate is not Plugin.validate)

    async def mutate(self, attributes: Attributes) -> None:
        await self._run(self._mutating, attributes)

    async def validate(self, attributes: Attributes) -> None:
        await self._run(self._validating, attributes)

    async def _run(self, steps: Sequence[Step], attributes: Attributes) -> None:
        for step in steps:
            pending = step(attributes)
            if pending is not None:
                await pending

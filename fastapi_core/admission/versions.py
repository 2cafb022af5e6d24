"""The versions of a resource, as far as admission goes: which there are, and objects of one in another.

Built-in kinds answer at once. What serves custom resources ties itself in as `Versions.custom`; its conversions may have to
ask a webhook and are awaited then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from typing import Protocol

from fastapi_core.admission.matching import equivalents
from fastapi_core.registry.conversion import converter
from fastapi_core.registry.definition import ResourceDefinition, Tree


class CustomVersions(Protocol):
    """What the versions of a custom resource know of each other."""

    def equivalents(self, definition: ResourceDefinition, subresource: str) -> Sequence[ResourceDefinition]:
        """All served versions of a resource that have the subresource."""

    def convert(self, tree: Tree, source: ResourceDefinition, target: ResourceDefinition) -> Tree | Awaitable[Tree]:
        """The object, which is left alone, in another version. APIError when that fails."""


class Versions:
    """Of all resources of a server."""

    def __init__(self, definitions: Iterable[ResourceDefinition]) -> None:
        self.custom: CustomVersions | None = None
        self._builtin = equivalents(definitions)

    def equivalents(self, definition: ResourceDefinition, subresource: str) -> Sequence[ResourceDefinition]:
        if definition.custom:
            return self.custom.equivalents(definition, subresource) if self.custom is not None else ()
        return self._builtin(definition, subresource)

    def convert(self, tree: Tree, source: ResourceDefinition, target: ResourceDefinition) -> Tree | Awaitable[Tree]:
        if source.custom and self.custom is not None:
            return self.custom.convert(tree, source, target)
        change = converter(source, target)
        return tree if change is None else change(tree)

"""Objects of one version of a resource in another one.

Built-in kinds answer at once. What serves custom resources ties itself in as `Conversions.custom`; it may have to ask a
webhook and is awaited then.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

from fastapi_core.later import later
from fastapi_core.registry.definition import ResourceDefinition, Tree

if TYPE_CHECKING:
    from fastapi_core.admission.policies import versions
else:
    versions = later("fastapi_core.admission.policies.versions")


class CustomConversion(Protocol):
    """Conversion of custom resources."""

    def __call__(self, tree: Tree, source: ResourceDefinition, target: ResourceDefinition) -> Tree | Awaitable[Tree]:
        """The object, which is left alone, in another version. APIError when that fails."""


class Conversions:
    """Of all resources of a server."""

    def __init__(self) -> None:
        self.custom: CustomConversion | None = None

    def convert(self, tree: Tree, source: ResourceDefinition, target: ResourceDefinition) -> Tree | Awaitable[Tree]:
        if source.custom and self.custom is not None:
            return self.custom(tree, source, target)
        return versions.converted(tree, source, target) or tree

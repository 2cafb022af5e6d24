"""Defaults of a decoded object: those the type tables state, then the kind's own conditional ones."""

from __future__ import annotations

from fastapi_core.apis import defaults as kind_defaults
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.schema import defaults as type_defaults


def apply_defaults(definition: ResourceDefinition, tree: Tree, known: Tree | None = None) -> None:
    """Fill in, in place, what the client left out; `known` is the object before, for the parts they share."""
    if definition.form is not None:
        definition.form.default(tree)
        return
    type_defaults.apply(definition.type, tree, known)
    kind_defaults.apply_defaults(definition, tree, known)

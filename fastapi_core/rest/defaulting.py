"""Defaults of a decoded object: those the type tables state, then the kind's own conditional ones."""

from __future__ import annotations

from fastapi_core._ext.defaulting import Walk
from fastapi_core.apis import defaults as kind_defaults
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.schema import defaults as type_defaults
from fastapi_core.schema.types import Type

_walks: dict[Type, tuple[Walk, ...]] = {}


def apply_defaults(definition: ResourceDefinition, tree: Tree, known: Tree | None = None) -> None:
    """Fill in, in place, what the client left out; `known` is the object before, for the parts they share."""
    if definition.form is not None:
        definition.form.default(tree)
        return
    type_ = definition.type
    walks = _walks.get(type_)
    if walks is None:
        both = (type_defaults.walk_of(type_), kind_defaults.walk_of(type_))
        walks = _walks[type_] = tuple(walk for walk in both if not walk.idle)
    for walk in walks:
        walk.run(tree, known)

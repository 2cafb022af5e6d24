"""Applies the defaults of `defaulting/` to whole objects.

The rules of a kind's types are compiled once into a tree that holds only the members leading to a rule, so a walk
touches nothing else. It expects a normalised tree to which the defaults OpenAPI states have been applied, and leaves
new members at the end of their object: encoding puts them in order.
"""

from __future__ import annotations

from fastapi_core._ext.defaulting import Walk
from fastapi_core.apis.defaulting import core, groups
from fastapi_core.apis.defaulting.rules import Rule, Tree
from fastapi_core.registry.definition import ResourceDefinition
from fastapi_core.schema.defaults import CARDS
from fastapi_core.schema.types import Field, Type

RULES: dict[str, tuple[Rule, ...]] = {**core.RULES, **groups.RULES}


def _own_rules(type_: Type) -> tuple[Rule, ...]:
    """The type's rules and those of the types inlined in it."""
    rules = RULES.get(type_.ref, ())
    for field in type_.declared:
        if field.inline and field.type is not None:
            rules += _own_rules(field.type)
    return rules


#: Members whose types' own defaults do not reach them.
_PLAIN = {"storage.k8s.io/v1.VolumeAttachmentSource": "inlineVolumeSpec"}
_walks: dict[str, Walk] = {}


def walk_of(type_: Type) -> Walk:
    """The compiled defaults of a kind."""
    walk = _walks.get(type_.ref)
    if walk is None:
        found: dict[str, Type] = {}
        _collect(type_, found)
        useful = _useful(found)
        walks = {ref: Walk() for ref in found}
        for ref, known in found.items():
            members = {
                name: (CARDS[field.card], walks[field.type.ref])
                for name, field in _members(known)
                if field.type is not None and field.type.ref in useful and name != _PLAIN.get(ref)
            }
            walks[ref].define(_own_rules(known), members)
        walk = _walks[type_.ref] = walks[type_.ref]
    return walk


def _members(type_: Type) -> list[tuple[str, Field]]:
    """Members that are structs of their own."""
    if type_.json:
        return []
    return [(name, field) for name, field in type_.fields.items() if field.type is not None and not field.type.json]


def _collect(type_: Type, found: dict[str, Type]) -> None:
    """The type and all below it (types refer to themselves)."""
    if type_.ref not in found:
        found[type_.ref] = type_
        for _, field in _members(type_):
            assert field.type is not None
            _collect(field.type, found)


def _useful(found: dict[str, Type]) -> set[str]:
    """The types that have rules, or lead to one that has."""
    useful = {ref for ref, type_ in found.items() if _own_rules(type_)}
    while True:
        more = {
            ref
            for ref, type_ in found.items()
            if ref not in useful
            and any(field.type is not None and field.type.ref in useful for _, field in _members(type_))
        }
        if not more:
            return useful
        useful |= more


def apply_defaults(definition: ResourceDefinition, tree: Tree) -> None:
    """Complete an object of the definition's version in place; custom resources have no defaults here."""
    if not definition.custom:
        walk_of(definition.type).run(tree)

"""Applies the defaults of `defaulting/` to whole objects.

The rules of a kind's types are compiled once into a tree that holds only the members leading to a rule, so a walk
touches nothing else. It expects a normalised tree to which the defaults OpenAPI states have been applied, and leaves
new members at the end of their object: encoding puts them in order.
"""

from __future__ import annotations

from fastapi_core.apis.defaulting import core, groups
from fastapi_core.apis.defaulting.rules import Rule, Tree
from fastapi_core.registry.definition import ResourceDefinition
from fastapi_core.schema.types import Type

RULES: dict[str, tuple[Rule, ...]] = {**core.RULES, **groups.RULES}


_SINGLE, _LIST, _MAP = range(3)
_SHAPES = {"": _SINGLE, "list": _LIST, "map": _MAP}


class Plan:
    """The rules of one type, and the plans of those of its members that have any below them."""

    __slots__ = ("members", "rules")

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self.members: dict[str, tuple[int, Plan]] = {}

    def run(self, tree: Tree) -> None:
        """Complete the object: its own rules first, then those of its members."""
        for rule in self.rules:
            rule(tree)
        for name, (shape, plan) in self.members.items():
            value = tree.get(name)
            if not value:
                if value is not None and shape == _SINGLE:
                    plan.run(value)
            elif shape == _SINGLE:
                plan.run(value)
            elif shape == _LIST:
                run = plan.run
                for item in value:
                    run(item)
            else:
                for item in value.values():
                    plan.run(item)


def _own_rules(type_: Type) -> tuple[Rule, ...]:
    """The type's rules and those of the types inlined in it."""
    rules = RULES.get(type_.ref, ())
    for field in type_.declared:
        if field.inline and field.type is not None:
            rules += _own_rules(field.type)
    return rules


_plans: dict[str, Plan] = {}


def _compile(type_: Type) -> Plan:
    """The plan of a type, members without rules included (types refer to themselves, so these go in `_prune`)."""
    plan = _plans.get(type_.ref)
    if plan is None:
        plan = _plans[type_.ref] = Plan(_own_rules(type_))
        if not type_.json:
            for name, field in type_.fields.items():
                if field.type is not None and not field.type.json:
                    plan.members[name] = (_SHAPES[field.card], _compile(field.type))
    return plan


def _useful(plan: Plan, seen: set[int]) -> bool:
    """Whether a rule can be reached from here."""
    if plan.rules:
        return True
    seen.add(id(plan))
    return any(_useful(child, seen) for _, child in plan.members.values() if id(child) not in seen)


def _prune(plan: Plan, done: set[int]) -> None:
    """Drop the members below which there is no rule."""
    done.add(id(plan))
    plan.members = {name: entry for name, entry in plan.members.items() if _useful(entry[1], set())}
    for _, child in plan.members.values():
        if id(child) not in done:
            _prune(child, done)


_ready: dict[str, Plan] = {}


def plan_of(type_: Type) -> Plan:
    """The compiled defaults of a kind."""
    plan = _ready.get(type_.ref)
    if plan is None:
        plan = _compile(type_)
        _prune(plan, set())
        _ready[type_.ref] = plan
    return plan


def apply_defaults(definition: ResourceDefinition, tree: Tree) -> None:
    """Complete an object of the definition's version in place; custom resources have no defaults here."""
    if not definition.custom:
        plan_of(definition.type).run(tree)

"""Selectable fields: which names a resource accepts, and the values an object has for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastapi_core.registry.definition import ResourceDefinition, Tree

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject

#: (plural, field) -> text of an absent member that is not a string.
_ZERO = {
    ("pods", "spec.hostNetwork"): "false",
    ("nodes", "spec.unschedulable"): "false",
    ("replicationcontrollers", "status.replicas"): "0",
    ("jobs", "status.successful"): "0",
}
#: Accepted names for which the reference never has a value.
_BLANK = {("pods", "status.podIPs")}


def accepts(definition: ResourceDefinition, field: str) -> bool:
    """Whether a field selector may name the field.

    metadata.namespace is refused for cluster-scoped resources that declare fields of their own.
    """
    if field == "metadata.name":
        return True
    if field == "metadata.namespace":
        return definition.namespaced or not definition.selectable_fields
    return field in definition.selectable_fields


def text(value: Any, zero: str = "") -> str:
    """A member as field selectors compare it."""
    if value is None:
        return zero
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def member(tree: Any, path: tuple[str, ...]) -> Any:
    """The value at a path, None when a step is missing; steps into lists are positions."""
    for step in path:
        if isinstance(tree, dict):
            tree = tree.get(step)
        elif isinstance(tree, list) and step.isdigit() and int(step) < len(tree):
            tree = tree[int(step)]
        else:
            return None
    return tree


def values(definition: ResourceDefinition, tree: Tree) -> dict[str, str]:
    """Field -> text of every selectable field of an object in its storage version."""
    out = {}
    for field, path in definition.selectable_fields.items():
        key = (definition.plural, field)
        zero = "" if definition.custom else _ZERO.get(key, "")
        out[field] = "" if key in _BLANK else text(member(tree, path), zero)
    if definition.plural == "events" and "source" in out and not out["source"]:
        out["source"] = out["reportingComponent"]
    return out


def extractor(*definitions: ResourceDefinition) -> Callable[[CachedObject], dict[str, str]]:
    """The function that reads the selectable fields of cached objects.

    Give it every definition that shares the objects (both event resources), so that one answer serves them all.
    """

    def extract(obj: CachedObject) -> dict[str, str]:
        tree = obj.tree()
        out: dict[str, str] = {"metadata.name": obj.name, "metadata.namespace": obj.namespace}
        for definition in definitions:
            out |= values(definition, tree)
        return out

    return extract

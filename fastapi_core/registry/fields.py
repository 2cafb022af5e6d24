"""Selectable fields: the values a field selector may ask for, taken out of an object once and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi_core._ext.objects import CachedObject
from fastapi_core.registry.conversion import Convert
from fastapi_core.registry.definition import ResourceDefinition


def extractor(definition: ResourceDefinition, convert: Convert | None) -> Callable[[CachedObject], dict[str, str]]:
    """A function from a cached object to its selectable fields, as strings."""
    paths = tuple(definition.selectable_fields.items())

    def extract(obj: CachedObject) -> dict[str, str]:
        fields = {"metadata.name": obj.name, "metadata.namespace": obj.namespace}
        if paths:
            tree = obj.tree()
            if convert is not None:
                tree = convert(tree)
            for name, path in paths:
                fields[name] = text_at(tree, path)
        return fields

    return extract


def text_at(tree: Any, path: tuple[str, ...]) -> str:
    """The value at a path as a field selector compares it; empty when absent."""
    for part in path:
        if isinstance(tree, list):
            tree = tree[int(part)] if part.isdigit() and int(part) < len(tree) else None
        elif isinstance(tree, dict):
            tree = tree.get(part)
        else:
            return ""
    if tree is None:
        return ""
    if isinstance(tree, bool):
        return "true" if tree else "false"
    return str(tree)

"""Selectable fields: the values a field selector may ask for, taken out of an object once and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi_core._ext.objects import CachedObject
from fastapi_core.registry.conversion import Convert
from fastapi_core.registry.definition import ResourceDefinition
from fastapi_core.schema.types import Type


def extractor(definition: ResourceDefinition, convert: Convert | None) -> Callable[[CachedObject], dict[str, str]]:
    """A function from a cached object to its selectable fields, as strings.

    An absent number or flag is selected by its zero value. Types are looked at on first use.
    """
    fields: list[tuple[str, tuple[str, ...], str]] = []

    def prepare() -> None:
        for name, path in definition.selectable_fields.items():
            fields.append((name, path, _zero(definition.type, path)))

    def extract(obj: CachedObject) -> dict[str, str]:
        values = {"metadata.name": obj.name, "metadata.namespace": obj.namespace}
        if definition.selectable_fields:
            if not fields:
                prepare()
            tree = obj.tree()
            if convert is not None:
                tree = convert(tree)
            for name, path, zero in fields:
                values[name] = text_at(tree, path) or zero
            if "source" in values and not values["source"]:
                # An event written by the newer API names its source here.
                values["source"] = values.get("reportingComponent", "")
        return values

    return extract


def _zero(type_: Type, path: tuple[str, ...]) -> str:
    """How the zero value of a member prints: empty for texts."""
    scalar = ""
    current: Type | None = type_
    for part in path:
        field = current.fields.get(part) if current is not None else None
        if field is None:
            return ""
        scalar, current = field.scalar, field.type
    return {"int32": "0", "int64": "0", "bool": "false"}.get(scalar, "")


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

"""Objects inside of objects: they say what they are, and their metadata is valid."""

from __future__ import annotations

from typing import Any

from fastapi_core.errors import FieldError
from fastapi_core.meta import names
from fastapi_core.registry import metadata
from fastapi_core.schema.errors import TypeMismatch
from fastapi_core.schema.normalize import normalize
from fastapi_core.schema.tables import type_of
from fastapi_core.structural.coercion import children, join
from fastapi_core.structural.nodes import Json, Node, shown

_MIXED = "may have mixed case, but should otherwise match: "


def validate(value: Any, node: Node, path: str = "", *, embedded: bool | None = None) -> list[FieldError]:
    """The errors of all objects in a value; `embedded`: the value itself is one (by default when its schema says so)."""
    here = node.embedded if embedded is None else embedded
    if not (here or node.has_embedded):
        return []
    errors: list[FieldError] = []
    if type(value) is dict:
        if here:
            errors += resource(value, path)
        for part, inner, member in children(value, node):
            errors += validate(inner, member, join(path, part))
    elif type(value) is list and node.items is not None:
        for index, item in enumerate(value):
            errors += validate(item, node.items, f"{path}[{index}]")
    return errors


def resource(tree: Json, path: str = "") -> list[FieldError]:
    """Those of one object."""
    errors = [FieldError("Required value", join(path, name)) for name in ("apiVersion", "kind") if name not in tree]
    if "apiVersion" in tree:
        errors += _text(tree["apiVersion"], join(path, "apiVersion"), _group_version)
    if "kind" in tree:
        errors += _text(tree["kind"], join(path, "kind"), _kind)
    if "metadata" in tree:
        errors += _metadata(tree["metadata"], join(path, "metadata"))
    return errors


def _text(value: Any, path: str, check: Any) -> list[FieldError]:
    if type(value) is not str:
        return [FieldError("Invalid value", path, "must be a string", shown(value))]
    if not value:
        return [FieldError("Invalid value", path, "must not be empty", value)]
    detail = check(value)
    return [FieldError("Invalid value", path, detail, value)] if detail else []


def _group_version(value: str) -> str:
    return f"unexpected GroupVersion string: {value}" if value.count("/") > 1 else ""


def _kind(value: str) -> str:
    found = names.dns1035_label(value.lower())
    return _MIXED + ",".join(found) if found else ""


def _metadata(value: Any, path: str) -> list[FieldError]:
    try:
        made = normalize(type_of("meta/v1.ObjectMeta"), value).tree
    except TypeMismatch as error:
        return [FieldError("Invalid value", path, str(error), shown(value))]
    return [
        FieldError(error.type, path + error.field.removeprefix("metadata"), error.detail, error.value)
        for error in metadata.validate_embedded(made)
    ]

"""Slow, obvious oracle of `fastapi_core._ext.selector`."""

from __future__ import annotations

import re
from collections.abc import Mapping


def label_holds(key: str, operator: str, values: tuple[str, ...], labels: Mapping[str, str]) -> bool:
    value = labels.get(key)
    if operator == "exists":
        return value is not None
    if operator == "!":
        return value is None
    if operator == "in":
        return value is not None and value in values
    if operator == "notin":
        return value is None or value not in values
    if value is None or not re.fullmatch(r"[+-]?[0-9]+", value) or not -(2**63) <= int(value) < 2**63:
        return False
    return int(value) > int(values[0]) if operator == "gt" else int(value) < int(values[0])


def field_holds(field: str, operator: str, value: str, fields: Mapping[str, str]) -> bool:
    return (fields.get(field, "") == value) == (operator == "=")


def matches(
    labels: list[tuple[str, str, tuple[str, ...]]],
    fields: list[tuple[str, str, str]],
    object_labels: Mapping[str, str],
    object_fields: Mapping[str, str],
) -> bool:
    return all(label_holds(*requirement, object_labels) for requirement in labels) and all(
        field_holds(*requirement, object_fields) for requirement in fields
    )

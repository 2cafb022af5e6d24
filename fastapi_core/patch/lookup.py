"""Patch strategy and merge key of a member, from the type tables."""

from __future__ import annotations

from typing import TypeAlias

from fastapi_core.patch.errors import PatchError
from fastapi_core.schema.types import Type


class MapOf:
    """The values of a map member: every key has the same type and no strategy."""

    __slots__ = ("value",)

    def __init__(self, value: Type | None) -> None:
        self.value = value


Schema: TypeAlias = Type | MapOf | None
"""What the members of an object look like; None for values of unknown shape."""


def lookup(schema: Schema, key: str) -> tuple[Schema, str, str]:
    """Schema of the member's own members (or of a list's items), its strategy besides `retainKeys`, its merge key.

    Raises PatchError(internal) for a member the type does not have.
    """
    if schema is None:
        return None, "", ""
    if isinstance(schema, MapOf):
        return schema.value, "", ""
    field = schema.fields.get(key)
    if field is None:
        raise PatchError("internal", f'unable to find api field in struct {schema.name} for the json field "{key}"')
    inner = MapOf(field.type) if field.card == "map" else field.type
    strategy = next((name for name in field.patch_strategy if name != "retainKeys"), "")
    return inner, strategy, field.merge_key

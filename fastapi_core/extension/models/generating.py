"""How pydantic is asked for schemas: durations in Go's form, and defaults that factories make.

Pydantic is there already when this is used: the author's model comes from it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any

from fastapi_core.extension.models.base import LoadError, Tree
from fastapi_core.extension.models.values import DURATION, DURATION_SCHEMA, duration_of

Spans = Callable[[Any, Callable[[Any], Any]], Any]
"""A value with each duration in it put through a function."""


@cache
def generator() -> Any:
    """The class that makes JSON schemas of pydantic's."""
    base: Any = importlib.import_module("pydantic.json_schema").GenerateJsonSchema

    def timedelta_schema(self: Any, schema: Any) -> Tree:
        return dict(DURATION_SCHEMA)

    def default_schema(self: Any, schema: Any) -> Tree:
        factory = schema.get("default_factory")
        if factory is not None and not schema.get("default_factory_takes_data"):
            made = factory()
            # What differs each time (the time, a number by chance) is no default that a schema could state.
            if made == factory() and made not in (None, "", [], {}, (), set()):
                rest = {key: value for key, value in schema.items() if key != "default_factory"}
                found: Tree = base.default_schema(self, {**rest, "default": made})
                return found
        own: Tree = base.default_schema(self, schema)
        return own

    return type("Schemas", (base,), {"timedelta_schema": timedelta_schema, "default_schema": default_schema})


def spans_of(schema: Tree) -> Spans | None:
    """What goes through the durations of a value of this schema; None when there are none."""
    if schema.get("pattern") == DURATION:
        return lambda value, change: None if value is None else change(value)
    found = {name: spans_of(member) for name, member in (schema.get("properties") or {}).items()}
    members = {name: inner for name, inner in found.items() if inner is not None}
    item = spans_of(schema["items"]) if isinstance(schema.get("items"), dict) else None
    more = schema.get("additionalProperties")
    other = spans_of(more) if isinstance(more, dict) else None
    if not members and item is None and other is None:
        return None

    def walk(value: Any, change: Callable[[Any], Any]) -> Any:
        if isinstance(value, list):
            return value if item is None else [_at(item, one, change, number) for number, one in enumerate(value)]
        if not isinstance(value, dict):
            return value
        made = {}
        for name, one in value.items():
            inner = members.get(name, other)
            made[name] = one if inner is None else _at(inner, one, change, name)
        return made

    return walk


def _at(inner: Spans, value: Any, change: Callable[[Any], Any], step: str | int) -> Any:
    try:
        return inner(value, change)
    except ValueError as error:
        raise LoadError.of(error, value, step) from error


@cache
def _iso() -> Any:
    return importlib.import_module("pydantic").TypeAdapter(timedelta)


def go_form(value: str | float) -> str:
    """Pydantic's form of a duration (`PT1M`, or seconds) as Go's, which stays as it is."""
    if isinstance(value, str) and not value.lstrip("+-").startswith("P"):
        return value
    return duration_of(_iso().validate_python(value))

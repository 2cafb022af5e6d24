"""Query and path parameters of operations."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from fastapi_core.schema.tables import type_of


class Parameter(NamedTuple):
    """One parameter; `place` is query or path, path parameters are required."""

    name: str
    place: str = "query"
    type: str = "string"


def _named(names: str, type: str = "string") -> tuple[Parameter, ...]:
    return tuple(Parameter(name, type=type) for name in names.split())


PRETTY = Parameter("pretty")
_SELECTION = (
    *_named("continue fieldSelector labelSelector resourceVersion resourceVersionMatch shardSelector"),
    *_named("limit timeoutSeconds", "integer"),
    *_named("sendInitialEvents", "boolean"),
)
LIST = (*_SELECTION, *_named("allowWatchBookmarks watch", "boolean"))
CUSTOM_GET = _named("resourceVersion")
WRITE = _named("dryRun fieldManager fieldValidation")
PATCH = (*WRITE, *_named("force", "boolean"))
DELETE = (
    *_named("dryRun propagationPolicy"),
    *_named("gracePeriodSeconds", "integer"),
    *_named("ignoreStoreReadErrorWithClusterBreakingPotential orphanDependents", "boolean"),
)
DELETE_COLLECTION = (*DELETE, *_SELECTION)

_TYPES = {"string": "string", "bool": "boolean", "int32": "integer", "int64": "integer"}


def in_path(name: str) -> Parameter:
    return Parameter(name, "path")


@cache
def options(ref: str) -> tuple[Parameter, ...]:
    """Query parameters of a connect or log request: the scalar members of its options type."""
    fields = type_of(ref).fields
    return tuple(Parameter(name, type=_TYPES[field.scalar]) for name, field in fields.items() if field.scalar)

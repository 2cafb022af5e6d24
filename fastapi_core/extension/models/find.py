"""From what an author declares a kind with to its model."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from typing import Any

from fastapi_core.extension.models.base import Model, ModelError, Tree, whole
from fastapi_core.schema.types import Type
from fastapi_core.structural.structure import obstacle


def model_of(source: Any, kind: str = "") -> Model[Any]:
    """The model of a dataclass, a pydantic model, a type table or an OpenAPI schema; `kind` by default its name.

    Raises ModelError for what is none of them or says more than a structural schema can.
    """
    if isinstance(source, Type):
        from fastapi_core.extension.models.tables import schema_of

        return replace(_of_trees(schema_of(source), kind or source.ref.rpartition(".")[2]), table=True)
    if isinstance(source, Mapping):
        return _of_trees(dict(source), kind)
    if isinstance(source, type) and is_dataclass(source):
        from fastapi_core.extension.models.dataclasses import model

        return model(source, kind)
    if isinstance(source, type) and hasattr(source, "model_json_schema"):
        from fastapi_core.extension.models.pydantic import model as pydantic_model

        return pydantic_model(source, kind)
    raise ModelError(f"{source!r} is neither a dataclass nor a pydantic model, an OpenAPI schema or a type table")


def _of_trees(schema: Tree, kind: str) -> Model[Tree]:
    """Objects stay plain trees."""
    if not kind:
        raise ModelError("a schema has no name, give the kind: kind='Widget'")
    problem = obstacle(schema)
    if problem:
        raise ModelError(f"the schema of {kind}: {problem}")
    return Model(kind, whole(schema), copy.deepcopy, copy.deepcopy, plain=True)

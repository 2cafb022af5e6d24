"""Models: how an author declares a kind, as a schema and as objects.

A dataclass, a pydantic model, an OpenAPI schema or a type table becomes a `Model`: the schema that everything rests on
(validation, pruning, defaults, OpenAPI, field ownership) and the way between object trees and the author's objects.
"""

from __future__ import annotations

from fastapi_core.extension.models.base import Model, ModelError
from fastapi_core.extension.models.find import model_of

__all__ = ["Model", "ModelError", "model_of"]

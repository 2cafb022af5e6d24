"""Structural schemas: what the schema of one version of a custom resource does to objects.

`compiled` makes a `Schema` (prune, coerce, default, validate); `problems` tells what is wrong with the schema of a
definition. Nothing here knows of a server; definitions' validation (`apis/validation`) and the custom resources
themselves (`crd/`) both stand on it.

The walks of one schema are closures and tables made where an object first reaches (`nodes.Node`). A valid object is
recognised by a fast walk that only says yes or no (`checks`); only when that says no does the exact walk (`strict`)
find out what to tell the client, with the reference's texts, order and quirks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi_core.structural.schema import Coerced, Schema, compiled

if TYPE_CHECKING:
    from fastapi_core.structural.definition import problems

__all__ = ["Coerced", "Schema", "compiled", "problems"]


def __getattr__(name: str) -> object:
    """The validation of schemas is loaded with the first definition, not with the first object."""
    if name == "problems":
        from fastapi_core.structural.definition import problems

        return problems
    raise AttributeError(name)

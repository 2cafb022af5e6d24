"""Table printers: how each kind's objects become rows for `kubectl get`.

`printer(definition)` gives the printer of a resource; kinds without one of their own print name and creation time.
Rows are read from the object in its storage version. The kinds' columns are loaded with the first table.
"""

from __future__ import annotations

from functools import cache

from fastapi_core.registry.definition import ResourceDefinition
from fastapi_core.registry.printers.engine import (
    Age,
    Cell,
    Column,
    Printer,
    Row,
    age_text,
    compile_row,
    inner_metadata,
    partial_head,
    partial_metadata,
)


@cache
def kind_printer(kind: str) -> Printer:
    """The printer of a built-in kind (also of answers that are no resources: Status, Scale)."""
    from fastapi_core.registry.printers.cells import CREATED, NAME
    from fastapi_core.registry.printers.tables import ROWS, TABLES

    return Printer(TABLES.get(kind, (NAME, CREATED)), ROWS.get(kind))


@cache
def custom_printer() -> Printer:
    """The printer of custom resources whose version declares no columns."""
    from fastapi_core.registry.printers.cells import CUSTOM_AGE, NAME

    return Printer((NAME, CUSTOM_AGE))


def printer(definition: ResourceDefinition) -> Printer:
    """The printer of a resource's objects; the same one for every version of a kind."""
    return custom_printer() if definition.custom else kind_printer(definition.kind)


__all__ = [
    "Age",
    "Cell",
    "Column",
    "Printer",
    "Row",
    "age_text",
    "compile_row",
    "custom_printer",
    "inner_metadata",
    "kind_printer",
    "partial_head",
    "partial_metadata",
    "printer",
]

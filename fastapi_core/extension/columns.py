"""Columns of `kubectl get`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from fastapi_core.records import dataclass

if TYPE_CHECKING:
    from fastapi_core.registry.printers import Printer, engine

ColumnType = Literal["string", "integer", "number", "boolean", "date"]
Cell = str | int | float | bool | datetime | None


@dataclass(frozen=True, slots=True)
class Column:
    """One column behind NAME. `value` is a JSONPath (`.spec.engine`) or a function of the object.

    `date` columns show the age of a time; `priority` above 0 is for `-o wide` only. A kind that declares no columns
    shows its age (nothing where no time is known), one that declares some shows just those: add `AGE` where it is wanted.
    """

    name: str
    value: str | Callable[[Any], Cell]
    type: ColumnType = "string"
    format: str = ""
    priority: int = 0
    description: str = ""


AGE = Column("Age", ".metadata.creationTimestamp", "date")


def printer(columns: Sequence[Column], load: Callable[[dict[str, Any]], Any], *, computed: bool) -> Printer:
    """What makes the rows; `load` gives functions the author's object. What is computed need not have been created."""
    from fastapi_core.registry.printers import Printer, custom_printer
    from fastapi_core.registry.printers.cells import NAME

    if not columns and not computed:
        return custom_printer()
    columns = columns or (AGE,)
    return Printer((NAME, *(_engine_column(column, load) for column in columns)))


def _engine_column(column: Column, load: Callable[[dict[str, Any]], Any]) -> engine.Column:
    from fastapi_core.crd.columns import column as column_of
    from fastapi_core.crd.definitions import PrinterColumn
    from fastapi_core.registry.printers import engine

    value = column.value
    if isinstance(value, str):
        return column_of(
            PrinterColumn(column.name, column.type, value, column.format, column.description, column.priority)
        )

    def cell(tree: dict[str, Any]) -> engine.Cell:
        found = value(load(tree))
        return engine.Age(found.timestamp()) if isinstance(found, datetime) else found

    return engine.Column(column.name, cell, column.type, column.format, column.priority, column.description)

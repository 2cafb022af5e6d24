"""Tables of custom resources: Name and what a version declares, or Name and Age."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any

from fastapi_core import errors
from fastapi_core.codec import json as json_codec
from fastapi_core.crd import jsonpath
from fastapi_core.crd.definitions import PrinterColumn
from fastapi_core.registry.printers import Printer, custom_printer
from fastapi_core.registry.printers.cells import NAME
from fastapi_core.registry.printers.engine import Age, Cell, Column

Tree = dict[str, Any]
_DESCRIPTION = "Custom resource definition column (in JSONPath format): "
_NOTHING = object()


@lru_cache(maxsize=256)
def printer(columns: tuple[PrinterColumn, ...]) -> Printer:
    """The printer of a version; equal columns share one, under which rows are remembered."""
    if not columns:
        return custom_printer()
    return Printer((NAME, *map(column, columns)))


def column(column: PrinterColumn) -> Column:
    """A declared column as printers know it."""
    description = column.description or _DESCRIPTION + column.path
    return Column(column.name, _reader(column), column.type, column.format, column.priority, description)


def _reader(column: PrinterColumn) -> Callable[[Tree], Cell]:
    try:
        steps = jsonpath.parse(column.path)
    except jsonpath.PathError:
        return lambda tree: None
    convert = _CELLS.get(column.type, _nothing)

    def cell(tree: Tree) -> Cell:
        value = next(jsonpath.find(steps, tree), _NOTHING)
        return None if value is _NOTHING else convert(value)

    return cell


def _nothing(value: Any) -> Cell:
    return None


def _text(value: Any) -> Cell:
    if isinstance(value, str):
        return value
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return errors.go_float(value)
    return str(value) if isinstance(value, int) else json_codec.encode(value).decode()


def _integer(value: Any) -> Cell:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value)


def _number(value: Any) -> Cell:
    return None if isinstance(value, bool) or not isinstance(value, int | float) else value


def _boolean(value: Any) -> Cell:
    return value if isinstance(value, bool) else None


def _date(value: Any) -> Cell:
    if not isinstance(value, str):
        return None
    try:
        stamp = datetime.fromisoformat(value)
    except ValueError:
        return "<invalid>"
    if "T" not in value or stamp.tzinfo is None:
        return "<invalid>"
    return Age(stamp.timestamp())


_CELLS: dict[str, Callable[[Any], Cell]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}

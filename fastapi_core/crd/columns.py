"""Tables of custom resources: Name and what a version declares, or Name and Age."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from fastapi_core import errors
from fastapi_core.codec import json as json_codec
from fastapi_core.crd import jsonpath
from fastapi_core.crd.definitions import PrinterColumn
from fastapi_core.meta import time
from fastapi_core.registry.printers import Printer, custom_printer
from fastapi_core.registry.printers.cells import NAME
from fastapi_core.registry.printers.engine import Age, Cell, Column

Tree = dict[str, Any]
_DESCRIPTION = "Custom resource definition column (in JSONPath format): "
_INTEGERS = range(-(2**63), 2**63)


@lru_cache(maxsize=256)
def printer(columns: tuple[PrinterColumn, ...]) -> Printer:
    """The printer of a version; equal columns share one, under which rows are remembered."""
    if not columns:
        return custom_printer()
    return Printer((NAME, *map(column, _readable(columns))))


def _readable(columns: tuple[PrinterColumn, ...]) -> Iterator[PrinterColumn]:
    """Columns end before the first whose path cannot be read."""
    for column in columns:
        try:
            jsonpath.parse(column.path)
        except jsonpath.PathError:
            return
        yield column


def column(column: PrinterColumn) -> Column:
    """A declared column as printers know it."""
    description = column.description or _DESCRIPTION + column.path
    return Column(column.name, _reader(column), column.type, column.format, column.priority, description)


def _reader(column: PrinterColumn) -> Callable[[Tree], Cell]:
    steps = jsonpath.parse(column.path)
    convert = _CELLS.get(column.type, _nothing)

    def cell(tree: Tree) -> Cell:
        found = jsonpath.find(steps, tree)
        return convert(found[0]) if found else None

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
    whole = int(value) if isinstance(value, int) or math.isfinite(value) else _INTEGERS[0]
    return whole if whole in _INTEGERS else _INTEGERS[0]


def _number(value: Any) -> Cell:
    return None if isinstance(value, bool) or not isinstance(value, int | float) else value


def _boolean(value: Any) -> Cell:
    return value if isinstance(value, bool) else None


def _date(value: Any) -> Cell:
    if not isinstance(value, str):
        return None
    if not value:
        return "<unknown>"
    try:
        return Age(time.parse(value).timestamp())
    except ValueError:
        return "<invalid>"


_CELLS: dict[str, Callable[[Any], Cell]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}

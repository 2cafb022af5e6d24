"""Cells of printer columns by type."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.crd.columns import printer
from fastapi_core.crd.definitions import PrinterColumn
from fastapi_core.registry.printers import custom_printer
from fastapi_core.registry.printers.engine import Age


@pytest.mark.parametrize(
    ("kind", "value", "cell"),
    [
        ("string", "x", "x"),
        ("string", 1, "1"),
        ("string", 1e-7, "1e-07"),
        ("string", True, "true"),
        ("string", None, "<no value>"),
        ("string", {"a": [1]}, '{"a":[1]}'),
        ("string", [1, "a", None], '[1,"a",null]'),
        ("integer", 5, 5),
        ("integer", 2.7, 2),
        ("integer", "5", None),
        ("integer", True, None),
        ("number", 1.5, 1.5),
        ("number", 3, 3),
        ("number", "3", None),
        ("boolean", False, False),
        ("boolean", 0, None),
        ("date", "soon", "<invalid>"),
        ("date", "2020-01-01", "<invalid>"),
        ("date", 5, None),
        ("date", "1970-01-01T00:01:00Z", Age(60.0)),
    ],
)
def test_cells(kind: str, value: Any, cell: Any) -> None:
    made = printer((PrinterColumn("C", kind, ".spec.x"),))
    cells = made.cells({"metadata": {"name": "n"}, "spec": {"x": value}})
    assert cells == ["n", cell]
    assert type(cells[1]) is type(cell)


def test_absent_values_are_null_and_columns_end_before_a_broken_path() -> None:
    made = printer((PrinterColumn("A", "string", ".spec.x"), PrinterColumn("B", "string", ".spec[")))
    assert made.cells({"metadata": {"name": "n"}}) == ["n", None]


def test_descriptions() -> None:
    own, other = printer(
        (
            PrinterColumn("A", "string", ".a", description="of its own"),
            PrinterColumn("B", "integer", ".b", "int32", "", 1),
        )
    ).columns[1:]
    assert own.description == "of its own"
    assert other.definition() == {
        "name": "B",
        "type": "integer",
        "format": "int32",
        "description": "Custom resource definition column (in JSONPath format): .b",
        "priority": 1,
    }


def test_without_columns_there_are_name_and_age() -> None:
    assert printer(()) is custom_printer()


def test_numbers_that_are_no_integers_and_dates_that_are_none() -> None:
    made = printer((PrinterColumn("A", "integer", ".n"), PrinterColumn("B", "date", ".d")))
    assert made.cells({"metadata": {"name": "n"}, "n": 1e21, "d": ""}) == ["n", -(2**63), "<unknown>"]
    assert made.cells({"metadata": {"name": "n"}, "n": -2.9, "d": "2020-01-02T03:04Z"}) == ["n", -2, "<invalid>"]

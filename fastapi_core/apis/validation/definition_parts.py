"""What versions of definitions hold: schema, subresources, columns, selectable fields.

The reference keeps what is the same in all versions once, outside of them, and judges it there: `divide` does the same.
"""

from __future__ import annotations

from typing import Any, Final

from fastapi_core import structural
from fastapi_core.apis.validation.rules import Report, Tree
from fastapi_core.structural.fieldpath import PathError, follow

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SIMPLE: Final = "must be a simple json path starting with ."
#: Member of a version -> where its common value stands.
_SHARED: Final = (
    ("schema", "validation"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
)
_NO_SCHEMA: Final = "may only be set when `version.schema.openAPIV3Schema` is not included"
_NO_COMMON_SCHEMA: Final = "may only be set when validations.schema is included"


def divide(versions: list[Tree]) -> tuple[Tree, list[Tree]]:
    """What all versions have in common, by its shared names, and the versions without that."""
    common: Tree = {}
    rest = [dict(version) for version in versions]
    for member, shared in _SHARED if versions else ():
        values = [version.get(member) for version in versions]
        if all(_same(value, values[0]) for value in values[1:]):
            common[shared] = values[0]
            for version in rest:
                version.pop(member, None)
    return common, rest


def _same(left: Any, right: Any) -> bool:
    """An empty list is no list."""
    return bool(left == right) or (left in (None, []) and right in (None, []))


def _has_status(subresources: Tree | None) -> bool:
    return subresources is not None and subresources.get("status") is not None


def version_parts(version: Tree, common: Tree, rest: list[Tree], path: str, report: Report) -> None:
    """What one version has of its own."""
    subresources = version.get("subresources")
    own = any(each.get("subresources") is not None for each in rest)
    status = _has_status(subresources if own else common.get("subresources"))
    holder = version.get("schema")
    _schema(holder, status, path + ".schema", report)
    _others(subresources, version.get("additionalPrinterColumns"), path, report)
    fields = version.get("selectableFields") or []
    found = (holder or {}).get("openAPIV3Schema")
    if fields and found is None:
        report.invalid(path + ".selectableFields", "", _NO_SCHEMA)
    elif fields:
        _selectable(fields, found or {}, path + ".selectableFields", report)


def common_parts(common: Tree, rest: list[Tree], path: str, report: Report) -> None:
    """What all versions share."""
    subresources, holder = common.get("subresources"), common.get("validation")
    status = _has_status(subresources) or any(_has_status(version.get("subresources")) for version in rest)
    _schema(holder, status, path + ".validation", report)
    _others(subresources, common.get("additionalPrinterColumns"), path, report)
    fields = common.get("selectableFields") or []
    if fields and holder is None:
        report.invalid(path + ".selectableFields", "", _NO_COMMON_SCHEMA)
    elif fields:
        _selectable(fields, (holder or {}).get("openAPIV3Schema") or {}, path + ".selectableFields", report)


def _schema(holder: Tree | None, status: bool, path: str, report: Report) -> None:
    found = (holder or {}).get("openAPIV3Schema")
    if found is None:
        return
    old = _old_schemas(report)
    at = f"{path}.openAPIV3Schema"[1:]
    report.extend(structural.problems(found, at, status=status, old=old, unchanged=found in old))


def _others(subresources: Tree | None, columns: list[Tree] | None, path: str, report: Report) -> None:
    if subresources is not None and subresources.get("scale") is not None:
        _scale(subresources["scale"], path + ".subresources.scale", report)
    for index, column in enumerate(columns or ()):
        _column(column, f"{path}.additionalPrinterColumns[{index}]", report)


def _old_schemas(report: Report) -> list[Tree]:
    """The schemas of the definition that is updated."""
    versions = ((report.old or {}).get("spec") or {}).get("versions") or ()
    found = ((version.get("schema") or {}).get("openAPIV3Schema") for version in versions)
    return [schema for schema in found if schema is not None]


def _scale(scale: Tree, path: str, report: Report) -> None:
    for member, roots, needed in (
        ("specReplicasPath", ("spec",), True),
        ("statusReplicasPath", ("status",), True),
        ("labelSelectorPath", ("spec", "status"), False),
    ):
        value, at = scale.get(member) or "", f"{path}.{member}"
        if not value:
            if needed:
                report.required(at)
        elif not value.startswith("."):
            report.invalid(at, value, _SIMPLE)
        elif not value.startswith(tuple(f".{root}." for root in roots)):
            under = f"under .{roots[0]}" if needed else "under either .spec or .status"
            report.invalid(at, value, f"should be a json path {under}")


def _column(column: Tree, path: str, report: Report) -> None:
    name, kind, form, place = (column.get(member) or "" for member in ("name", "type", "format", "jsonPath"))
    if not name:
        report.required(path + ".name")
    text = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        report.required(path + ".type", text)
    elif kind not in _COLUMN_TYPES:
        report.invalid(path + ".type", kind, text)
    if form and form not in _COLUMN_FORMATS:
        report.invalid(path + ".format", form, f"must be one of {','.join(_COLUMN_FORMATS)}")
    if not place:
        report.required(path + ".JSONPath")
    elif not place.startswith("."):
        report.invalid(path + ".JSONPath", place, _SIMPLE)


_MOST_SELECTABLE: Final = 8
_SELECTABLE: Final = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)


def _selectable(fields: list[Tree], schema: Tree, path: str, report: Report) -> None:
    seen: set[str] = set()
    for index, field in enumerate(fields):
        at = f"{path}[{index}].jsonPath"
        place = field.get("jsonPath") or ""
        if not place:
            report.required(at)
            continue
        try:
            found = follow(place, schema, brackets=False)
        except PathError as error:
            report.invalid(at, place, f"is an invalid path: {error}")
            continue
        if found.path.split(".")[0] == "metadata":
            report.invalid(at, place, "must not point to fields in metadata")
        if found.schema.get("type") not in ("string", "boolean", "integer"):
            report.invalid(at, place, _SELECTABLE)
        if found.path in seen:
            report.duplicate(at, place)
        seen.add(found.path)
    if len(seen) > _MOST_SELECTABLE:
        report.too_many(path, len(seen), _MOST_SELECTABLE)

"""What is wrong with a declaration, said where it is made: schemas, paths into them, handlers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from fastapi_core.errors import FieldError
from fastapi_core.extension.models import Model, ModelError

if TYPE_CHECKING:
    from fastapi_core.crd.definitions import Scale
    from fastapi_core.extension.columns import Column

Tree = dict[str, Any]

COLUMN_TYPES: Final = ("string", "integer", "number", "boolean", "date")
_NUMBERS: Final = ("integer", "number")
#: What keywords are for.
_TYPES: Final = {
    "minimum": _NUMBERS,
    "maximum": _NUMBERS,
    "minLength": ("string",),
    "maxLength": ("string",),
    "pattern": ("string",),
    "minItems": ("array",),
    "maxItems": ("array",),
    "maxProperties": ("object",),
    "x-kubernetes-list-type": ("array",),
    "x-kubernetes-list-map-keys": ("array",),
}
_VERSION: Final = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
#: The members a path begins with, before anything that only a document can tell.
_MEMBERS: Final = re.compile(r"(?:\.[A-Za-z_$][\w$-]*)+")
_KNOWN: Final = frozenset({"metadata", "apiVersion", "kind"})


def version_problem(version: str) -> str:
    """Empty for a version as clients sort them."""
    return "" if _VERSION.fullmatch(version) else f"{version!r} is no version, they are called v1, v1beta2, v2alpha1"


def check_schema(model: Model[Any]) -> None:
    """ModelError for keywords that make no sense, expressions and patterns that do not compile, bad defaults."""
    if model.table:
        return
    for path, inner in _walk(model.schema, model.kind):
        kind = inner.get("type")
        for keyword, kinds in _TYPES.items():
            if kind and keyword in inner and kind not in kinds:
                raise ModelError(f"{path}: {keyword} is for {' and '.join(kinds)}, this is of type {kind}")
    from fastapi_core.structural.definition import problems

    # How much expressions may cost at most is a rule for definitions that anybody sends.
    found = [e for e in problems(model.schema, "") if not (e.type == "Forbidden" and "cost" in e.detail)]
    if found:
        raise ModelError("; ".join(f"{_place(model.kind, error)}: {_said(error)}" for error in found[:5]))


def _said(error: FieldError) -> str:
    """What is wrong, with the value where that is a short one."""
    return error.body() if isinstance(error.value, str | int | float | bool) or not error.detail else error.detail


def _place(kind: str, error: FieldError) -> str:
    """`.properties[spec].properties[size].default` as `Database.spec.size.default`."""
    path = re.sub(r"\.?properties\[([^\]]*)\]", r".\1", error.field).replace(".x-kubernetes-validations", ".rules")
    if error.detail.startswith("rule compile error"):
        # A default is judged by the rules beside it.
        path = path.removesuffix(".default") + ".rules"
    return kind + (path if path.startswith((".", "[")) else f".{path}" if path else "")


def _walk(schema: Tree, path: str) -> Iterator[tuple[str, Tree]]:
    yield path, schema
    for name, member in (schema.get("properties") or {}).items():
        yield from _walk(member, f"{path}.{name}")
    for keyword, mark in (("items", "[]"), ("additionalProperties", "{}")):
        inner = schema.get(keyword)
        if isinstance(inner, dict):
            yield from _walk(inner, path + mark)


def reached(schema: Tree, path: str, what: str) -> Tree:
    """The schema at the plain members of a path; empty where it says nothing. ModelError when there is no such member."""
    plain = _MEMBERS.match(path)
    if plain is None:
        raise ModelError(f"{what}: {path!r} is no path, they are like .spec.size")
    steps = plain.group()[1:].split(".")
    for number, name in enumerate(steps):
        if number == 0 and name in _KNOWN:
            return {}
        properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
        if name in properties:
            schema = properties[name]
        elif isinstance(more, dict):
            schema = more
        elif schema.get("type") == "object" and properties and not schema.get("x-kubernetes-preserve-unknown-fields"):
            at = ".".join(steps[:number]) or "the object"
            raise ModelError(f"{what}: {path!r} leads nowhere, {at} has no member {name!r} but {', '.join(properties)}")
        elif schema.get("type") in ("string", "boolean", "integer", "number"):
            raise ModelError(f"{what}: {path!r} leads nowhere, {'.'.join(steps[:number])} is a {schema['type']}")
        else:
            return {}
    return schema if plain.end() == len(path) else {}


def check_columns(model: Model[Any], columns: Sequence[Column]) -> None:
    """ModelError for columns that would show nothing."""
    for column in columns:
        what = f"{model.kind}: column {column.name!r}"
        if column.type not in COLUMN_TYPES:
            raise ModelError(f"{what}: the types are {', '.join(COLUMN_TYPES)}, not {column.type!r}")
        if isinstance(column.value, str):
            from fastapi_core.crd import jsonpath

            try:
                jsonpath.parse(column.value)
            except jsonpath.PathError as error:
                raise ModelError(f"{what}: {column.value!r} is no JSONPath: {error}") from None
            path = column.value.strip()
            reached(model.schema, path[1:-1].strip() if path.startswith("{") else path, what)
        elif not callable(column.value):
            raise ModelError(f"{what}: the value is a JSONPath or a function, not {column.value!r}")


def check_selectable(model: Model[Any], paths: Sequence[str]) -> None:
    """ModelError for fields that nobody could select by."""
    for path in paths:
        what = f"{model.kind}: selectable"
        if not path.startswith("."):
            raise ModelError(f"{what} fields are paths like .spec.engine, not {path!r}")
        found = reached(model.schema, path, what)
        if found.get("type") in ("object", "array", "number"):
            raise ModelError(
                f"{what}: {path!r} is of type {found['type']}, selectable are texts, whole numbers, booleans"
            )


def check_scale(model: Model[Any], scale: Scale | None) -> None:
    """ModelError for replicas that are nowhere."""
    if scale is None:
        return
    for path, kind in ((scale.spec, "integer"), (scale.status, "integer"), (scale.selector, "string")):
        found = reached(model.schema, path, f"{model.kind}: scale") if path else {}
        if found.get("type", kind) != kind:
            raise ModelError(f"{model.kind}: scale: {path!r} is of type {found['type']}, not {kind}")


def check_handler(handler: Callable[..., Any], where: str, *arguments: str, taken: object = None) -> None:
    """ModelError for a function that cannot be called with these, or for a second one."""
    name = getattr(handler, "__qualname__", repr(handler))
    if taken is not None:
        raise ModelError(
            f"{where} has a handler already, {getattr(taken, '__qualname__', taken)}: {name} would replace it"
        )
    if not callable(handler):
        raise ModelError(f"{where}: {name} is no function")
    try:
        signature = inspect.signature(handler)
    except ValueError:
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise ModelError(f"{where}: {name} is called with ({', '.join(arguments)}): {error}") from None

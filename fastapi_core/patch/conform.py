"""Whether an applied configuration fits its shape, said in the reference's words."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core._ext.fieldset import ItemError, Shape, conforms
from fastapi_core.codec import json as json_codec
from fastapi_core.patch import fieldset
from fastapi_core.patch.errors import go_format, go_type
from fastapi_core.patch.shapes import DEDUCED, Kind

Problem = tuple[str, str]
"""Path and what is wrong there."""

_EXPECTED: Final = {"string": "string", "number": "numeric (int or float)", "boolean": "boolean", "any": "any scalar"}
_CLASSES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "any": (str, int, float, bool),
    "object": (dict,),
    "list": (list,),
}


def problems(shape: Shape, tree: dict[str, Any]) -> list[Problem]:
    """Everything that does not fit: unknown members, values of another kind, repeated or unidentifiable items."""
    return [] if conforms(shape, tree) else named_problems(shape, tree)


def named_problems(shape: Shape, tree: dict[str, Any]) -> list[Problem]:
    """The same for an object that is known not to fit."""
    found: list[Problem] = []
    _object(shape, tree, "", found)
    return found


def text(found: list[Problem]) -> str:
    """One line, or a list under `errors:` when there are several."""
    lines = [f"{path}: {what}" if path else what for path, what in found]
    return lines[0] if len(lines) == 1 else "\n".join(["errors:", *(f"  {line}" for line in lines)])


def _value(shape: Shape, value: Any, path: str, found: list[Problem]) -> None:
    kind = shape.kind
    if value is None or kind is Kind.DEDUCED:
        return
    if kind is Kind.LEAF:
        _leaf(shape, value, path, found)
    elif kind is Kind.OBJECT:
        if value.__class__ is dict:
            _object(shape, value, path, found)
        else:
            found.append((path, f"expected map, got {_held(value)}"))
    elif value.__class__ is list:
        _list(shape, value, path, found)
    else:
        found.append((path, f"expected list, got {_held(value)}"))


def _leaf(shape: Shape, value: Any, path: str, found: list[Problem]) -> None:
    classes = _CLASSES.get(shape.scalar)
    if classes is None:
        return
    if value.__class__ in classes:
        _content(shape.item, value, path, found)
        return
    if shape.scalar in ("object", "list"):
        what = "map" if shape.scalar == "object" else "list"
        found.append((path, f"expected {what}, got {_held(value)}"))
    elif shape.scalar == "string":
        found.append((path, f"expected string, got &value.valueUnstructured{{Value:{_go(value)}}}"))
    elif shape.scalar == "boolean":
        found.append((path, f"expected boolean, got {_held(value)}"))
    else:
        found.append((path, f"expected {_EXPECTED[shape.scalar]}, got {go_type(value)}"))


def _content(inner: Shape | None, value: Any, path: str, found: list[Problem]) -> None:
    """What is in an object or list that is owned as a whole."""
    if inner is None:
        return
    if value.__class__ is dict:
        _object(inner, value, path, found)
    else:
        for index, item in enumerate(value):
            _value(inner, item, f"{path}[{index}]", found)


def _object(shape: Shape, value: dict[str, Any], path: str, found: list[Problem]) -> None:
    members, rest = shape.members, shape.rest
    if shape.kind is Kind.DEDUCED:
        rest = DEDUCED
    for name in sorted(value):
        member = members.get(name)
        inner = member.shape if member is not None else rest
        if inner is None:
            found.append((f"{path}.{name}", "field not declared in schema"))
            return
        _value(inner, value[name], f"{path}.{name}", found)


def _list(shape: Shape, value: list[Any], path: str, found: list[Problem]) -> None:
    seen: set[str] = set()
    for index, item in enumerate(value):
        try:
            element = shape.element(item)
        except ItemError as error:
            found.append((path, f"element {index}: {error}"))
            return
        shown = fieldset.shown(element)
        if element in seen:
            found.append((path, f"duplicate entries for key {shown}"))
        seen.add(element)
        _value(shape.item, item, path + shown, found)


def _held(value: Any) -> str:
    """A value as Go prints the struct that holds it."""
    return f"&{{{go_format(value)}}}"


def _go(value: Any) -> str:
    return json_codec.encode(value).decode()

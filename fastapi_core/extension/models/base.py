"""What every way to declare a kind comes down to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from fastapi_core.records import dataclass

T = TypeVar("T")
Tree = dict[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
ANYTHING: Tree = {PRESERVE: True}


class ModelError(TypeError):
    """A class that cannot be a kind; the text names the field and the way out."""


@dataclass(frozen=True, slots=True)
class Model(Generic[T]):
    """A kind as a schema, and its objects as the author sees them.

    `schema` is the structural OpenAPI schema of the whole object. `load` makes the author's object of a tree that has
    come through the schema; `dump` the tree of one, without apiVersion and kind.
    """

    kind: str
    schema: Tree
    load: Callable[[Tree], T]
    dump: Callable[[T], Tree]


def whole(schema: Tree) -> Tree:
    """The schema of an object with what every object has."""
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        **{name: member for name, member in (schema.get("properties") or {}).items() if name not in _COMMON},
    }
    made = {**schema, "type": "object", "properties": properties}
    required = [name for name in schema.get("required") or () if name not in _COMMON]
    made.pop("required", None)
    if required:
        made["required"] = required
    return made


_COMMON = frozenset({"apiVersion", "kind", "metadata"})


def changed(tree: Tree, before: Tree, after: Tree) -> Tree:
    """`tree` with what differs from `before` to `after`: members that no model knows stay as they are."""
    made = dict(tree)
    for name in before.keys() - after.keys():
        made.pop(name, None)
    for name, value in after.items():
        old = before.get(name, _ABSENT)
        if old is _ABSENT or old != value:
            inner = made.get(name)
            if isinstance(inner, dict) and isinstance(old, dict) and isinstance(value, dict):
                made[name] = changed(inner, old, value)
            else:
                made[name] = value
    return made


_ABSENT: Any = object()

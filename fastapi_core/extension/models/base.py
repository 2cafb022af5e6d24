"""What every way to declare a kind comes down to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from fastapi_core.errors import OMITTED, FieldError
from fastapi_core.records import dataclass

T = TypeVar("T")
Tree = dict[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
ANYTHING: Tree = {PRESERVE: True}
NOWHERE = "<nil>"


class ModelError(TypeError):
    """A class that cannot be a kind; the text names the field and the way out."""


class LoadError(ValueError):
    """A client's data that the author's class does not take, as errors of its fields."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = list(errors)

    @classmethod
    def of(cls, error: Exception, value: Any, *steps: str | int) -> LoadError:
        """An error that was raised over the value at `steps`, or further inside."""
        if isinstance(error, LoadError):
            return cls([replace(inner, field=path_of(steps, inner.field)) for inner in error.errors])
        text = str(error) or type(error).__name__
        return cls([FieldError("Invalid value", path_of(steps), text, value)])


def path_of(steps: Iterable[str | int], inside: str = NOWHERE) -> str:
    """`spec.users[0]` with what stands behind it; the whole object is `<nil>`."""
    path = ""
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    if inside != NOWHERE:
        path += inside if inside.startswith("[") else f".{inside}"
    return path.removeprefix(".") or NOWHERE


@dataclass(frozen=True, slots=True)
class Model(Generic[T]):
    """A kind as a schema, and its objects as the author sees them.

    `schema` is the structural OpenAPI schema of the whole object. `load` makes the author's object of a tree that has
    come through the schema; `dump` the tree of one, without apiVersion and kind. `plain`: objects are trees, which
    `load` only copies. `table`: the schema is that of a type table.
    """

    kind: str
    schema: Tree
    load: Callable[[Tree], T]
    dump: Callable[[T], Tree]
    plain: bool = False
    table: bool = False

    def read(self, tree: Tree) -> T:
        """The object of what a client has sent. Raises LoadError, whatever the class makes of it."""
        try:
            return self.load(tree)
        except Exception as error:
            raise LoadError.of(error, OMITTED) from error


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

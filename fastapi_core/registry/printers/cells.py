"""Small cell readers from which the columns of most kinds are declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fastapi_core.registry.printers.engine import Age, Cell, Column, Tree, epoch, since

Reader = Callable[[Tree], Cell]

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"

# These two descriptions are part of recorded tables, which other answers are compared with; the rest stay empty.
NAME_TEXT = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
    "client to request the generation of an appropriate name automatically. Name is primarily intended for creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
CREATED_TEXT = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed "
    "to be set in happens-before order across separate operations. Clients may not set this value. It is represented "
    "in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)


def at(tree: Any, path: str) -> Any:
    """The value at a dotted path; None when a step is missing."""
    for step in path.split("."):
        if not isinstance(tree, dict):
            return None
        tree = tree.get(step)
    return tree


def _reader(path: str) -> Callable[[Tree], Any]:
    steps = tuple(path.split("."))

    def read(tree: Tree) -> Any:
        value: Any = tree
        for step in steps:
            if not isinstance(value, dict):
                return None
            value = value.get(step)
        return value

    return read


def value(path: str, absent: Cell = "") -> Reader:
    """The member, or `absent` when it is missing."""
    read = _reader(path)

    def cell(tree: Tree) -> Cell:
        found: Cell = read(tree)
        return absent if found is None else found

    return cell


def filled(path: str, empty: Cell = NONE) -> Reader:
    """The member, or `empty` when it is missing or its zero value."""
    read = _reader(path)

    def cell(tree: Tree) -> Cell:
        found: Cell = read(tree)
        return found or empty

    return cell


def number(path: str) -> Reader:
    """An integer member; 0 when missing."""
    return value(path, 0)


def text(path: str, absent: str = UNSET) -> Reader:
    """A number, quantity or int-or-string as text."""
    read = _reader(path)

    def cell(tree: Tree) -> Cell:
        found = read(tree)
        return absent if found is None else str(found)

    return cell


def true_false(path: str, absent: str = UNSET) -> Reader:
    """`True` or `False` as text."""
    read = _reader(path)

    def cell(tree: Tree) -> Cell:
        found = read(tree)
        return absent if found is None else "True" if found else "False"

    return cell


def count(*paths: str) -> Reader:
    """Number of members of the lists and maps at `paths` together."""
    readers = [_reader(path) for path in paths]
    return lambda tree: sum(len(read(tree) or ()) for read in readers)


def age(path: str = "metadata.creationTimestamp", absent: str | None = UNKNOWN) -> Reader:
    """Time since the stamp."""
    read = _reader(path)

    def cell(tree: Tree) -> Age | str | None:
        stamp = read(tree)
        return Age(epoch(stamp)) if stamp else absent

    return cell


def labels_text(labels: Mapping[str, str] | None) -> str:
    """`a=1,b=2` in key order."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def labels(path: str) -> Reader:
    read = _reader(path)
    return lambda tree: labels_text(read(tree))


def requirement_text(expression: Mapping[str, Any]) -> str | None:
    """One `matchExpressions` entry as selector text; None when it is not valid."""
    key, operator = expression.get("key", ""), expression.get("operator", "")
    values = expression.get("values") or []
    if operator in ("In", "NotIn"):
        return f"{key} {operator.lower()} ({','.join(sorted(values))})" if values else None
    if operator in ("Exists", "DoesNotExist") and not values:
        return key if operator == "Exists" else f"!{key}"
    return None


def selector_text(selector: Mapping[str, Any] | None) -> str | None:
    """A label selector as text, requirements in key order; None when it is not valid."""
    if not selector:
        return ""
    terms = [(key, f"{key}={val}") for key, val in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        term = requirement_text(expression)
        if term is None:
            return None
        terms.append((expression.get("key", ""), term))
    return ",".join(term for _, term in sorted(terms, key=lambda pair: pair[0]))


def selector(path: str, empty: str = NONE, invalid: str = "<error>") -> Reader:
    read = _reader(path)

    def cell(tree: Tree) -> Cell:
        found = selector_text(read(tree))
        return invalid if found is None else found or empty

    return cell


def joined(path: str, member: str = "", separator: str = ",", empty: str = "") -> Reader:
    """The list's strings (or that member of its objects) joined."""
    read = _reader(path)

    def cell(tree: Tree) -> Cell:
        found = read(tree)
        if not found:
            return empty
        return separator.join((item.get(member) or "") if member else item for item in found)

    return cell


def top(items: Iterable[str], limit: int = 3) -> str:
    """The first items joined, and how many more there are."""
    found = list(items)
    head = ",".join(found[:limit])
    return f"{head} + {len(found) - limit} more..." if len(found) > limit else head


def condition(tree: Tree, kind: str) -> dict[str, Any] | None:
    """The status condition of that type."""
    for entry in (tree.get("status") or {}).get("conditions") or ():
        if entry.get("type") == kind:
            return entry  # type: ignore[no-any-return]
    return None


def condition_true(tree: Tree, kind: str) -> bool:
    """Whether the status condition of that type is True."""
    found = condition(tree, kind)
    return found is not None and found.get("status") == "True"


NAME = Column("Name", value("metadata.name"), format="name", description=NAME_TEXT)
AGE = Column("Age", age())
CREATED = Column(
    "Created At", value("metadata.creationTimestamp", "0001-01-01T00:00:00Z"), "date", description=CREATED_TEXT
)
CUSTOM_AGE = Column("Age", age(absent=None), "date", description=CREATED_TEXT)


def wide(name: str, cell: Reader | None = None) -> Column:
    """A column shown only in wide output."""
    return Column(name, cell, priority=1)


def containers(template: str) -> tuple[Column, Column]:
    """The Containers and Images columns of a pod template."""
    path = template + ".spec.containers"
    return wide("Containers", joined(path, "name")), wide("Images", joined(path, "image"))


__all__ = ["Age", "Cell", "Column", "since"]

"""What nearly all kinds share: status belongs to its subresource, generation counts changes of what a user wants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi_core.errors import FieldError

Tree = dict[str, Any]
Prepare = Callable[[Tree, Tree | None], None]
Validate = Callable[[Tree, Tree | None], list[FieldError]]
Warn = Callable[[Tree, Tree | None], list[str]]

#: Members that are not what the user wants of an object.
_NOT_DESIRED = frozenset({"apiVersion", "kind", "metadata", "status"})
#: Metadata that a status update may not change, where a kind guards it.
GUARDED = ("deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences")


def keep(new: Tree, old: Tree, *members: str) -> None:
    """Members take their old value."""
    for member in members:
        if member in old:
            new[member] = old[member]
        else:
            new.pop(member, None)


def keep_metadata(new: Tree, old: Tree, members: tuple[str, ...] = GUARDED) -> None:
    """Metadata members take their old value."""
    keep(new["metadata"], old["metadata"], *members)


def wipe_status(new: Tree, old: Tree | None) -> None:
    """A main write never decides status: nothing on create, the old one on update."""
    if old is None:
        new.pop("status", None)
    else:
        keep(new, old, "status")


def keep_desired(new: Tree, old: Tree | None) -> None:
    """A status write decides nothing else."""
    if old is not None:
        names = (set(new) | set(old)) - _NOT_DESIRED
        keep(new, old, *names)


def desired(tree: Tree) -> Tree:
    """The object without metadata and status."""
    return {name: value for name, value in tree.items() if name not in _NOT_DESIRED and value is not None}


def labels_changed(new: Tree, old: Tree) -> bool:
    return _map(new, "labels") != _map(old, "labels")


def annotations_changed(new: Tree, old: Tree) -> bool:
    return _map(new, "annotations") != _map(old, "annotations")


def _map(tree: Tree, member: str) -> dict[str, str]:
    return tree["metadata"].get(member) or {}


#: Kinds whose generation also follows part of their metadata.
_ALSO: dict[str, Callable[[Tree, Tree], bool]] = {
    "Deployment": annotations_changed,
    "EndpointSlice": labels_changed,
}


def generations(kind: str, initial: int, bump: bool) -> Prepare:
    """Set the generation on create and count it up when the wanted state changes."""
    also = _ALSO.get(kind)

    def prepare(new: Tree, old: Tree | None) -> None:
        metadata: Tree = new["metadata"]
        if old is None:
            if initial:
                metadata["generation"] = initial
            return
        before = old["metadata"].get("generation")
        if before is not None:
            metadata["generation"] = before
        else:
            metadata.pop("generation", None)
        if bump and (desired(new) != desired(old) or (also and also(new, old))):
            metadata["generation"] = (before or 0) + 1

    return prepare


def sequence(*steps: Prepare | None) -> Prepare:
    """Steps one after another."""
    active = tuple(step for step in steps if step is not None)

    def prepare(new: Tree, old: Tree | None) -> None:
        for step in active:
            step(new, old)

    return prepare


def immutable(*paths: str, text: str = "field is immutable") -> Validate:
    """Members that keep their first value; the error shows the new one."""

    def validate(new: Tree, old: Tree | None) -> list[FieldError]:
        if old is None:
            return []
        errors = []
        for path in paths:
            value, before = new, old
            for step in path.split("."):
                value, before = (value or {}).get(step), (before or {}).get(step)  # type: ignore[assignment]
            if value != before:
                errors.append(FieldError("Invalid value", path, text, value))
        return errors

    return validate

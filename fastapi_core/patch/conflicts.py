"""Conflicts of an apply: fields that others own with another value, and the 409 that lists them."""

from __future__ import annotations

from typing import NamedTuple

from fastapi_core.errors import APIError, go_quote
from fastapi_core.patch import fieldset
from fastapi_core.patch.fieldset import FieldSet
from fastapi_core.patch.managers import UPDATE, Identity


class Conflict(NamedTuple):
    """One field, and who owns it."""

    owner: Identity
    path: tuple[str, ...]

    @property
    def field(self) -> str:
        return "".join(map(fieldset.shown, self.path))


class ApplyConflictError(APIError):
    """The 409 of an apply that would change what others own."""

    def __init__(self, conflicts: list[Conflict]) -> None:
        self.conflicts = conflicts
        causes = [
            {"reason": "FieldManagerConflict", "message": f"conflict with {describe(c.owner)}", "field": c.field}
            for c in conflicts
        ]
        super().__init__("Conflict", _message(conflicts), details={"causes": causes})


def describe(owner: Identity) -> str:
    """A manager as the reference names it; the version only where it tells entries apart."""
    text = go_quote(owner.manager)
    if owner.subresource:
        text += f" with subresource {go_quote(owner.subresource)}"
    return f"{text} using {owner.version}" if owner.operation == UPDATE else text


def _message(conflicts: list[Conflict]) -> str:
    if len(conflicts) == 1:
        only = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {describe(only.owner)}: {only.field}"
    lines = []
    for owner in dict.fromkeys(c.owner for c in conflicts):
        lines.append(f"conflicts with {describe(owner)}:")
        lines += [f"- {c.field}" for c in conflicts if c.owner == owner]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def listed(owned: dict[Identity, FieldSet]) -> list[Conflict]:
    """Conflicts of all owners, by owner, then by path."""
    return [Conflict(owner, path) for owner in sorted(owned) for path in fieldset.paths(owned[owner])]


def without(conflicts: list[Conflict], allowed: FieldSet) -> list[Conflict]:
    return [conflict for conflict in conflicts if not fieldset.has(allowed, conflict.path)]

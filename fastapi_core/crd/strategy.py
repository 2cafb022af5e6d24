"""What the store does around a write of a custom resource: status, generation, validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi_core.errors import FieldError
from fastapi_core.registry.definition import Strategy

if TYPE_CHECKING:
    from fastapi_core.crd.definitions import Scale
    from fastapi_core.crd.form import LazyForm

Tree = dict[str, Any]
LARGEST_INT32 = 2**31 - 1


class Rules:
    """The strategy functions of one version."""

    __slots__ = ("_form", "_scale", "_status", "_warnings")

    def __init__(self, form: LazyForm, *, status: bool, scale: Scale | None) -> None:
        self._form = form
        self._status = status
        self._scale = scale
        self._warnings: list[str] = []

    def strategy(self, *, status_only: bool = False) -> Strategy:
        """`status_only`: for writes through the status subresource."""
        return Strategy(
            prepare=self.prepare,
            prepare_status=self.prepare_status,
            validate=self.validate_status if status_only else self.validate,
            warnings=self.warnings,
        )

    def prepare(self, new: Tree, old: Tree | None) -> None:
        """Status is not the client's where it is a subresource; everything but metadata counts as a generation."""
        metadata: Tree = new["metadata"]
        if old is None:
            if self._status:
                new.pop("status", None)
            metadata["generation"] = 1
            return
        if self._status:
            if "status" in old:
                new["status"] = old["status"]
            else:
                new.pop("status", None)
        if {**new, "metadata": None} != {**old, "metadata": None}:
            metadata["generation"] = (old["metadata"].get("generation") or 0) + 1

    def prepare_status(self, new: Tree, old: Tree | None) -> None:
        """The old object with the new status and the owners of its fields."""
        if old is None:
            return
        owners = new["metadata"].get("managedFields")
        status = new.get("status", _ABSENT)
        new.clear()
        new.update(old)
        metadata = new["metadata"] = dict(old["metadata"])
        metadata.pop("managedFields", None)
        if owners:
            metadata["managedFields"] = owners
        if status is _ABSENT:
            new.pop("status", None)
        else:
            new["status"] = status

    def validate(self, new: Tree, old: Tree | None) -> list[FieldError]:
        self._warnings = []
        errors = self._form.schema.validate(new, old, warn=self._warnings.append)
        return errors + self._scaled(new)

    def validate_status(self, new: Tree, old: Tree | None) -> list[FieldError]:
        self._warnings = []
        errors = self._form.schema.validate(new, old, status=True, warn=self._warnings.append)
        return errors + self._scaled(new)

    def warnings(self, new: Tree, old: Tree | None) -> list[str]:
        """What the validation just before forgave."""
        found, self._warnings = self._warnings, []
        return found

    def _scaled(self, tree: Tree) -> list[FieldError]:
        if self._scale is None:
            return []
        errors: list[FieldError] = []
        for path in (self._scale.spec, self._scale.status):
            errors += _replicas(tree, path)
        if self._scale.selector:
            selector = at(tree, self._scale.selector)
            if selector is not None and not isinstance(selector, str):
                errors.append(
                    FieldError("Invalid value", self._scale.selector, _accessor(self._scale.selector), selector)
                )
        return errors


_ABSENT = object()


def _accessor(path: str) -> str:
    return f"{path} accessor error: the value is of the wrong type, expected string"


def _replicas(tree: Tree, path: str) -> list[FieldError]:
    found = at(tree, path)
    if found is None:
        return []
    if isinstance(found, bool) or not isinstance(found, int):
        text = f"{path} accessor error: {found} is of the wrong type, expected int64"
        return [FieldError("Invalid value", path, text, found)]
    if found < 0:
        return [FieldError("Invalid value", path, "should be a non-negative integer", found)]
    if found > LARGEST_INT32:
        return [FieldError("Invalid value", path, f"should be less than or equal to {LARGEST_INT32}", found)]
    return []


def steps(path: str) -> tuple[str, ...]:
    """`.spec.replicas` as member names."""
    return tuple(path.removeprefix(".").split("."))


def at(tree: Any, path: str) -> Any:
    """The value at a simple path; None when a step is missing."""
    for step in steps(path):
        if not isinstance(tree, dict):
            return None
        tree = tree.get(step)
    return tree

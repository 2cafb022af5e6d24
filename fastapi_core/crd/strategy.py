"""What the store does around a write of a custom resource: status, generation, validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi_core.errors import FieldError, go_quote
from fastapi_core.patch.errors import go_format, go_type
from fastapi_core.registry.definition import Strategy
from fastapi_core.registry.metadata import STANDARD_FINALIZERS, validate_metadata
from fastapi_core.structural.correlation import same

if TYPE_CHECKING:
    from fastapi_core.crd.definitions import Scale
    from fastapi_core.crd.form import LazyForm
    from fastapi_core.registry.definition import ResourceDefinition

Tree = dict[str, Any]
LARGEST_INT32 = 2**31 - 1


class Rules:
    """The strategy functions of one version."""

    __slots__ = ("_form", "_scale", "_status", "_warnings", "definition")

    def __init__(self, form: LazyForm, *, status: bool, scale: Scale | None) -> None:
        self.definition: ResourceDefinition | None = None
        """Whose rules they are; set by who declares it, for it has these as its strategy."""
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
            warnings=self.status_warnings if status_only else self.warnings,
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
        now, before = {**new, "metadata": None}, {**old, "metadata": None}
        # To Python 1 is True, and 1.0.
        if now != before or not same(now, before):
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
        scale = self._scale
        between: list[FieldError] = []
        if scale is not None:
            between = _replicas(new, scale.spec) + _scale_status(new, scale)
        return self._validate(new, old, between, status=False)

    def validate_status(self, new: Tree, old: Tree | None) -> list[FieldError]:
        between = [] if self._scale is None else _scale_status(new, self._scale)
        return self._validate(new, old, between, status=True)

    def _validate(self, new: Tree, old: Tree | None, between: list[FieldError], *, status: bool) -> list[FieldError]:
        self._warnings = []
        definition = self.definition
        assert definition is not None
        return self._form.schema.validate(
            new,
            old,
            status=status,
            before=lambda: validate_metadata(new, old, definition=definition),
            between=between,
            warn=self._warnings.append,
        )

    def warnings(self, new: Tree, old: Tree | None) -> list[str]:
        """What the validation just before forgave, and what is unwise about new finalizers."""
        found, self._warnings = self._warnings, []
        finalizers = new["metadata"].get("finalizers")
        return found + _unqualified(finalizers, old) if finalizers else found

    def status_warnings(self, new: Tree, old: Tree | None) -> list[str]:
        found, self._warnings = self._warnings, []
        return found


def _unqualified(finalizers: list[str], old: Tree | None) -> list[str]:
    """Warnings of finalizers without a domain that were not there before."""
    before = () if old is None else old["metadata"].get("finalizers") or ()
    texts = []
    for name in sorted({*finalizers}.difference(before)):
        if "/" not in name and name not in STANDARD_FINALIZERS:
            wanted = "finalizer name including a path (/)" if "." in name else "finalizer name"
            texts.append(
                f"metadata.finalizers: {go_quote(name)}: prefer a domain-qualified {wanted} to avoid accidental "
                "conflicts with other finalizer writers"
            )
    return texts


_ABSENT = object()


def _scale_status(tree: Tree, scale: Scale) -> list[FieldError]:
    errors = _replicas(tree, scale.status)
    if scale.selector:
        selector, text = _reached(tree, scale.selector, str, "string")
        if text:
            errors.append(FieldError("Invalid value", scale.selector, text, selector or ""))
    return errors


def _replicas(tree: Tree, path: str) -> list[FieldError]:
    found, text = _reached(tree, path, int, "int64")
    number: int = found or 0
    if not text and number < 0:
        text = "should be a non-negative integer"
    elif not text and number > LARGEST_INT32:
        text = f"should be less than or equal to {LARGEST_INT32}"
    return [FieldError("Invalid value", path, text, number)] if text else []


def _reached(tree: Tree, path: str, kind: type, name: str) -> tuple[Any, str]:
    """The value at a path if it is of a kind, and what the reference says when one on the way is of another."""
    value: Any = tree
    way = ""
    for step in steps(path):
        way += f".{step}"
        if value is None:
            return None, ""
        if not isinstance(value, dict):
            return None, _accessor(way, value, "map[string]interface{}")
        if step not in value:
            return None, ""
        value = value[step]
    if not isinstance(value, kind) or isinstance(value, bool):
        return None, _accessor(way, value, name)
    return value, ""


def _accessor(way: str, value: Any, wanted: str) -> str:
    found = "<nil>" if value is None else go_type(value)
    return f"{way} accessor error: {go_format(value)} is of the type {found}, expected {wanted}"


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

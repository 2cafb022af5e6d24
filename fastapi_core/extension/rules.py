"""What happens around a write of a kind: the schema's rules, and the author's `prepare` and `validate`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from fastapi_core.crd.strategy import Rules
from fastapi_core.errors import FieldError
from fastapi_core.extension.declaration import Declaration, SchemaForm
from fastapi_core.extension.models.base import changed
from fastapi_core.structural.correlation import same

T = TypeVar("T")
Tree = dict[str, Any]
Prepare = Callable[[T, T | None], T | None]
Validate = Callable[[T, T | None], Iterable[FieldError]]


class KindRules(Rules, Generic[T]):
    """The strategy functions of a kind."""

    __slots__ = ("_declaration", "_judge", "_prepare", "_schema_form")

    def __init__(
        self,
        declaration: Declaration[T],
        form: SchemaForm,
        prepare: Prepare[T] | None = None,
        validate: Validate[T] | None = None,
    ) -> None:
        super().__init__(form, status=declaration.status, scale=declaration.scale)
        self._declaration = declaration
        self._schema_form = form
        self._prepare = prepare
        self._judge = validate

    def prepare(self, new: Tree, old: Tree | None) -> None:
        """Status is not the client's where it is a subresource, but the author may set it; a generation is a change of
        anything besides metadata and such a status."""
        if self._declaration.status:
            new.pop("status", None)
            if old is not None and "status" in old:
                new["status"] = old["status"]
        if self._prepare is not None and not self._schema_form.schema.validate(new, old):
            self._prepared(self._prepare, new, old)
        metadata: Tree = new["metadata"]
        if old is None:
            metadata["generation"] = 1
            return
        apart: Tree = {"metadata": None, **({"status": None} if self._declaration.status else {})}
        if not same({**new, **apart}, {**old, **apart}):
            metadata["generation"] = (old["metadata"].get("generation") or 0) + 1

    def _prepared(self, hook: Prepare[T], new: Tree, old: Tree | None) -> None:
        model = self._declaration.model
        obj = model.load(new)
        before = model.dump(obj)
        answer = hook(obj, None if old is None else model.load(old))
        after = model.dump(obj if answer is None else answer)
        if after != before:
            merged = changed(new, before, after)
            new.clear()
            new.update(merged)

    def validate(self, new: Tree, old: Tree | None) -> list[FieldError]:
        found = super().validate(new, old)
        if self._judge is None or found:
            return found
        model = self._declaration.model
        return list(self._judge(model.load(new), None if old is None else model.load(old)))

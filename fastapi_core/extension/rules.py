"""What happens around a write of a kind: the schema's rules, and the author's `prepare` and `validate`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from fastapi_core import errors
from fastapi_core.crd.strategy import Rules
from fastapi_core.errors import CAUSE_REASONS, OMITTED, FieldError
from fastapi_core.extension.declaration import Declaration, SchemaForm
from fastapi_core.extension.failures import hooked
from fastapi_core.extension.models.base import NOWHERE, LoadError, Model, changed
from fastapi_core.structural.correlation import same

T = TypeVar("T")
Tree = dict[str, Any]
Prepare = Callable[[T, T | None], T | None]
Validate = Callable[[T, T | None], Iterable[FieldError]]
Show = Callable[[T], Any]


class KindRules(Rules, Generic[T]):
    """The strategy functions of a kind."""

    __slots__ = ("_declaration", "_judge", "_prepare", "_schema_form", "_shown")

    def __init__(
        self,
        declaration: Declaration[T],
        form: SchemaForm,
        prepare: Prepare[T] | None = None,
        validate: Validate[T] | None = None,
        shown: Sequence[tuple[str, Show[T]]] = (),
    ) -> None:
        super().__init__(form, status=declaration.status, scale=declaration.scale)
        self._declaration = declaration
        self._schema_form = form
        self._prepare = prepare
        self._judge = validate
        self._shown = shown
        """The versions of the kind, and how they show an object."""

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
        try:
            obj = model.read(new)
        except LoadError:
            # The validation, which comes next, says so.
            return
        before = self._dumped(obj, new)
        kept = self._kept(old)
        answer = hooked(hook, lambda: hook(obj, kept))
        after = self._dumped(obj if answer is None else answer, new)
        if after != before:
            merged = changed(new, before, after)
            new.clear()
            new.update(merged)

    def _kept(self, old: Tree | None) -> T | None:
        """The object as it is kept; 500 that names it when the class no longer takes it."""
        if old is None:
            return None
        d = self._declaration
        try:
            return d.model.read(old)
        except LoadError as error:
            name = "/".join(filter(None, (old["metadata"].get("namespace"), old["metadata"].get("name"))))
            raise errors.internal(f"{d.kind} {name} as it is kept cannot be read: {error}") from error

    def _dumped(self, obj: T, new: Tree) -> Tree:
        """The tree of an object in the version of the request; 422 when that cannot show it."""
        d = self._declaration
        if not self._shown:
            return d.model.dump(obj)
        try:
            return d.model.dump(obj)
        except Exception as error:
            name = new["metadata"].get("name") or ""
            raise errors.invalid(d.kind, d.group, name, [_cannot_show(d.version, error)]) from error

    def validate(self, new: Tree, old: Tree | None) -> list[FieldError]:
        return self._judged(super().validate(new, old), new, old, self._judge)

    def validate_status(self, new: Tree, old: Tree | None) -> list[FieldError]:
        return self._judged(super().validate_status(new, old), new, old, None)

    def _judged(
        self, found: list[FieldError], new: Tree, old: Tree | None, judge: Validate[T] | None
    ) -> list[FieldError]:
        """What the author's class, `validate` and the other versions have to say of what the schema lets pass.

        A class or version that could not take the old object either keeps nobody from changing something else."""
        model = self._declaration.model
        if found or (model.plain and judge is None and not self._shown):
            return found
        try:
            obj = model.read(new)
        except LoadError as error:
            if judge is None and old is not None and _unreadable(model, old) == error.errors:
                return []
            return error.errors
        if judge is not None:
            kept = self._kept(old)
            found = hooked(judge, lambda: [sound(judge, one) for one in judge(obj, kept) or ()])
        return found or self._unshowable(obj, old)

    def _unshowable(self, obj: T, old: Tree | None) -> list[FieldError]:
        """Versions that cannot show the object, which every list in them would run into."""
        found = []
        for version, show in self._shown:
            try:
                show(obj)
            except Exception as error:
                if old is None or self._can_show(show, old):
                    found.append(_cannot_show(version, error))
        return found

    def _can_show(self, show: Show[T], old: Tree) -> bool:
        try:
            show(self._declaration.model.load(old))
        except Exception:
            return False
        return True


def _cannot_show(version: str, error: Exception) -> FieldError:
    text = f"cannot be shown in version {version}: {str(error) or type(error).__name__}"
    return FieldError("Invalid value", NOWHERE, text, OMITTED)


def _unreadable(model: Model[Any], old: Tree) -> list[FieldError]:
    try:
        model.read(old)
    except LoadError as error:
        return error.errors
    return []


def sound(hook: Callable[..., Any], error: Any) -> FieldError:
    """What a `validate` has answered, if clients can be told; TypeError that names the hook."""
    name = getattr(hook, "__qualname__", repr(hook))
    if not isinstance(error, FieldError):
        raise TypeError(f"validate hook {name} answered {error!r}: it answers FieldErrors")
    if error.type not in CAUSE_REASONS:
        known = ", ".join(CAUSE_REASONS)
        raise TypeError(f"validate hook {name} answered a FieldError of type {error.type!r}, the types are: {known}")
    return error

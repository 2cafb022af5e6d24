"""Further versions of a kind that is kept: other classes, and functions from one to the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from fastapi_core import errors
from fastapi_core.crd.definitions import Scale
from fastapi_core.extension.client import Objects
from fastapi_core.extension.columns import Column
from fastapi_core.extension.declaration import Declaration
from fastapi_core.extension.models import Model
from fastapi_core.extension.models.base import PRESERVE
from fastapi_core.records import dataclass

T = TypeVar("T")
V = TypeVar("V")
Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Version(Generic[T, V]):
    """A version besides the one objects are kept in (whose class is T); made by `Stored.version`."""

    declaration: Declaration[V]
    show: Callable[[T], V]
    keep: Callable[[V], T]
    objects: Objects[V]
    """The objects in this version."""

    def bridged(self) -> Declaration[T]:
        """The version, with objects of the kept one: for hooks, which are written for that."""
        model, show, keep = self.declaration.model, self.show, self.keep
        bridge: Model[T] = Model(
            model.kind, model.schema, lambda tree: keep(model.load(tree)), lambda obj: model.dump(show(obj))
        )
        # All else of a declaration does not depend on the class.
        made: Declaration[Any] = replace(self.declaration, model=bridge)  # type: ignore[arg-type]
        return made

    def shown(self, kept: T) -> Tree:
        """The tree of a kept object in this version."""
        return self.declaration.model.dump(self.show(kept))


def inherited(
    kept: Declaration[Any], shown: Model[Any], keep: Callable[[Any], Any]
) -> tuple[tuple[Column, ...], tuple[str, ...], Scale | None]:
    """Columns, selectable fields and scale of the kept version, as far as they make sense for another model.

    Paths count where the model has them; functions get the kept object."""
    columns = tuple(
        column if isinstance(column.value, str) else replace(column, value=_of_kept(column.value, keep))
        for column in kept.columns
        if not isinstance(column.value, str) or has_path(shown.schema, column.value)
    )
    selectable = tuple(path for path in kept.selectable if has_path(shown.schema, path))
    scale = kept.scale
    if scale is not None and not all(has_path(shown.schema, path) for path in (scale.spec, scale.status)):
        scale = None
    return columns, selectable, scale


def _of_kept(value: Callable[[Any], Any], keep: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda shown: value(keep(shown))


def has_path(schema: Tree, path: str) -> bool:
    """Whether the schema knows the members that a JSONPath names, as far as it names them one by one."""
    plain = _MEMBERS.match(path)
    for name in plain[0].split(".")[1:] if plain else ():
        properties = schema.get("properties")
        if not isinstance(properties, dict):
            # An object of any kind, or a map.
            return bool(schema.get("type", "object") == "object")
        if name not in properties:
            return bool(schema.get(PRESERVE))
        schema = properties[name]
    return True


_MEMBERS = re.compile(r"(\.[A-Za-z_][A-Za-z0-9_-]*)*")


class Conversion:
    """Trees between the versions of a kind, by way of the kept one."""

    def __init__(self, kept: Declaration[Any], versions: Sequence[Version[Any, Any]]) -> None:
        models: dict[str, Model[Any]] = {kept.group_version: kept.model}
        models |= {version.declaration.group_version: version.bridged().model for version in versions}
        self._models: Mapping[str, Model[Any]] = models
        self._kind = kept.kind

    def __call__(self, tree: Tree, target: str) -> Tree:
        """Metadata is the same in all versions, whatever the functions make of it. 500 for a version that is gone."""
        source = self._models.get(tree.get("apiVersion") or "")
        if source is None:
            raise errors.internal(f"{self._kind} was kept in version {tree.get('apiVersion')}, which is not declared")
        try:
            made = self._models[target].dump(source.load(tree))
        except errors.APIError:
            raise
        except Exception as error:
            raise errors.internal(self._failed(tree, target, error)) from error
        made.update(apiVersion=target, kind=self._kind, metadata=tree.get("metadata") or {})
        return made

    def _failed(self, tree: Tree, target: str, error: Exception) -> str:
        metadata = tree.get("metadata") or {}
        name = "/".join(filter(None, (metadata.get("namespace"), metadata.get("name"))))
        text = str(error) or type(error).__name__
        return f"conversion of {self._kind} {name} from {tree.get('apiVersion')} to {target} failed: {text}"

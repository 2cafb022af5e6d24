"""The objects that parametrize policies: found by the name or selector of a binding, of any kind, in the caches."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Protocol

from fastapi_core.admission.matching import Selector
from fastapi_core.admission.objects import decoded
from fastapi_core.admission.policies.versions import PendingError
from fastapi_core.registry.definition import ResourceDefinition, Tree

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.storage.cacher.resource import ResourceCache


class Store(Protocol):
    """As much of `registry.store.ResourceStore` as is needed here."""

    @property
    def definition(self) -> ResourceDefinition: ...
    @property
    def cache(self) -> ResourceCache: ...


class Shelf(Protocol):
    """Objects of a resource in one served version (`rest.scope.Scope`)."""

    @property
    def definition(self) -> ResourceDefinition: ...
    @property
    def store(self) -> Store: ...
    def ready(self, objects: Sequence[CachedObject]) -> Awaitable[None] | None: ...
    def view(self, obj: CachedObject) -> CachedObject: ...


class Directory(Protocol):
    """Which resources are served at this moment, built in and custom ones."""

    def find(self, group: str, version: str, kind: str) -> Shelf | None:
        """The objects of a kind."""

    def equivalents(self, definition: ResourceDefinition, subresource: str) -> Sequence[ResourceDefinition]:
        """See `matching.Equivalents`."""


class ConfigurationError(Exception):
    """A policy or binding that cannot work as it is; the text is the reference's."""


class Parameters:
    """How the objects of a kind are found."""

    def __init__(self, kind: Tree, directory: Directory) -> None:
        version: str = kind.get("apiVersion") or ""
        self._group, _, self._version = version.rpartition("/")
        self._kind: str = kind.get("kind") or ""
        self._directory = directory

    def resource(self) -> Shelf:
        """The objects as they are served now."""
        found = self._directory.find(self._group, self._version, self._kind)
        if found is None:
            shown = f"{self._group}/{self._version}, Kind={self._kind}"
            raise ConfigurationError(f"failed to find resource referenced by paramKind: '{shown}'")
        return found


class Reference:
    """What a binding says about parameters (`spec.paramRef`)."""

    __slots__ = ("_name", "_namespace", "_needed", "_selector")

    def __init__(self, tree: Tree) -> None:
        self._name = tree.get("name") or ""
        self._namespace = tree.get("namespace") or ""
        self._selector = Selector(tree["selector"]) if tree.get("selector") is not None else None
        self._needed = tree.get("parameterNotFoundAction") == "Deny"

    def find(self, resource: Shelf, namespace: str) -> list[Tree]:
        """The parameters for a request in `namespace`; ConfigurationError, or PendingError when a webhook has to convert
        them first."""
        definition = resource.definition
        prefix = ""
        if definition.namespaced:
            prefix = self._namespace or namespace
            if not prefix:
                raise ConfigurationError(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                )
        elif self._namespace:
            raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        objects = self._named(resource.store, prefix) if self._name else self._selected(resource.store, prefix)
        if not objects and self._needed:
            raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
        pending = resource.ready(objects)
        if pending is not None:
            raise PendingError(pending)
        return [decoded(resource.view(obj)) for obj in objects]

    def _named(self, store: Store, namespace: str) -> list[CachedObject]:
        key = f"{namespace}/{self._name}" if namespace else self._name
        obj = store.cache.get(store.definition.key_prefix + key)
        return [] if obj is None else [obj]

    def _selected(self, store: Store, namespace: str) -> list[CachedObject]:
        selector = self._selector
        if selector is None:
            raise ConfigurationError("one of name or selector must be provided")
        objects = store.cache.list(f"{namespace}/" if namespace else "").objects
        if not selector:
            return objects
        return [obj for obj in objects if selector.matches(decoded(obj)["metadata"].get("labels") or {})]

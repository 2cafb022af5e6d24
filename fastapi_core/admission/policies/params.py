"""The objects that parametrize policies: found by the name or selector of a binding, of any kind, in the caches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from fastapi_core.admission.matching import Selector
from fastapi_core.admission.objects import decoded
from fastapi_core.registry.conversion import converter
from fastapi_core.registry.definition import ResourceDefinition, Tree


class Store(Protocol):
    """As much of `registry.store.ResourceStore` as is needed here."""

    definition: ResourceDefinition
    cache: Any


class Directory(Protocol):
    """Which resources are served at this moment, built in and custom ones."""

    def find(self, group: str, version: str, kind: str) -> tuple[ResourceDefinition, Store] | None:
        """The resource of a kind and where its objects are kept."""

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

    def resource(self) -> tuple[ResourceDefinition, Store]:
        """The resource as it is served now."""
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

    def find(self, resource: tuple[ResourceDefinition, Store], namespace: str) -> list[Tree]:
        """The parameters for a request in `namespace`; ConfigurationError."""
        definition, store = resource
        prefix = ""
        if definition.namespaced:
            prefix = self._namespace or namespace
            if not prefix:
                raise ConfigurationError(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                )
        elif self._namespace:
            raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        found = self._named(definition, store, prefix) if self._name else self._selected(definition, store, prefix)
        if not found and self._needed:
            raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
        return found

    def _named(self, definition: ResourceDefinition, store: Store, namespace: str) -> list[Tree]:
        key = f"{namespace}/{self._name}" if namespace else self._name
        obj = store.cache.get(store.definition.key_prefix + key)
        return [] if obj is None else [_shown(obj, definition, store)]

    def _selected(self, definition: ResourceDefinition, store: Store, namespace: str) -> list[Tree]:
        selector = self._selector
        if selector is None:
            raise ConfigurationError("one of name or selector must be provided")
        trees = [
            _shown(obj, definition, store) for obj in store.cache.list(f"{namespace}/" if namespace else "").objects
        ]
        return [tree for tree in trees if selector.matches(tree["metadata"].get("labels") or {})]


def _shown(obj: Any, definition: ResourceDefinition, store: Store) -> Tree:
    """An object in the version the policy names, made once a change."""
    tree = decoded(obj)
    if definition.group_version == store.definition.group_version:
        return tree
    key = ("admission/params", definition.group_version)
    known: Tree | None = obj.memo.get(key)
    if known is None:
        convert = converter(store.definition, definition)
        known = obj.memo[key] = convert(tree) if convert is not None else tree
    return known

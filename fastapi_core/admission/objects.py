"""What plugins read: other objects, decoded once for each change of them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from fastapi_core.registry.definition import ResourceDefinition, Tree

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.registry.store import ResourceStore

_TREE = "admission/tree"


def decoded(obj: CachedObject) -> Tree:
    """The tree of a cached object, kept with it and shared: do not change it."""
    memo = obj.memo
    tree: Tree | None = memo.get(_TREE)
    if tree is None:
        tree = memo[_TREE] = obj.tree()
    return tree


class Objects:
    """The objects of one resource in its storage version."""

    def __init__(self, store: ResourceStore) -> None:
        self.store = store
        self._cache = store.cache
        self._prefix = store.definition.key_prefix
        self._seen = -1
        self._lists: dict[str, list[CachedObject]] = {}

    def find(self, namespace: str, name: str) -> CachedObject | None:
        """The cached object; `namespace` empty for cluster-scoped kinds."""
        return self._cache.get(f"{self._prefix}{namespace}/{name}" if namespace else self._prefix + name)

    def get(self, namespace: str, name: str) -> Tree | None:
        obj = self.find(namespace, name)
        return None if obj is None else decoded(obj)

    def list(self, namespace: str = "") -> list[CachedObject]:
        """All objects (of a namespace) in order of their names; do not change the list."""
        changes = self._cache.changes
        if changes != self._seen:
            self._seen = changes
            self._lists.clear()
        found = self._lists.get(namespace)
        if found is None:
            found = self._lists[namespace] = self._cache.list(f"{namespace}/" if namespace else "").objects
        return found

    def fresh(self) -> Awaitable[None] | None:
        """Nothing when the cache is known to show what every server has written, else something to await."""
        return self.store.fresh()


def pods(operation: str, definition: ResourceDefinition, subresource: str, *operations: str) -> bool:
    """Whether a request is one of these operations on pods themselves."""
    return operation in operations and not subresource and definition.plural == "pods" and not definition.group


def is_core(definition: ResourceDefinition, plural: str) -> bool:
    return definition.plural == plural and not definition.group


def annotations_of(tree: Tree) -> dict[str, Any]:
    return tree["metadata"].get("annotations") or {}

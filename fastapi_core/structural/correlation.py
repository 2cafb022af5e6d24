"""Which part of an old object a part of a new one comes from, for what is forgiven or compared on update."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.structural.nodes import Json, Node

_KEYS: Final = (str, int, float, bool)
_MISSING: Final = object()


class Correlated:
    """A new value, the old value it stands for, and their schema.

    Members belong together by name, items of lists only by keys (list type map). What has no schema belongs to
    nothing.
    """

    __slots__ = ("_children", "_equal", "_old_items", "node", "old", "value")

    def __init__(self, value: Any, old: Any, node: Node) -> None:
        self.value = value
        self.old = old
        self.node = node
        self._children: dict[Any, Correlated | None] = {}
        self._equal: bool | None = None
        self._old_items: dict[Any, Any] | None = None

    def member(self, name: str) -> Correlated | None:
        if name not in self._children:
            self._children[name] = self._member(name)
        return self._children[name]

    def _member(self, name: str) -> Correlated | None:
        if type(self.value) is not dict or type(self.old) is not dict:
            return None
        node = self.node.member(name)
        if node is None or name not in self.value or name not in self.old:
            return None
        return Correlated(self.value[name], self.old[name], node)

    def item(self, index: int) -> Correlated | None:
        if index not in self._children:
            self._children[index] = self._item(index)
        return self._children[index]

    def _item(self, index: int) -> Correlated | None:
        node = self.node.items
        if self.node.list_type != "map" or node is None or type(self.value) is not list or type(self.old) is not list:
            return None
        if self._old_items is None:
            self._old_items = by_key(self.old, self.node)
        old = find(self._old_items, self.value[index], self.node)
        return None if old is None else Correlated(self.value[index], old, node)

    def equal(self) -> bool:
        """Nothing changed; the order of items with keys does not count."""
        if self._equal is None:
            try:
                self._equal = self._compare()
            except RecursionError:
                self._equal = False
        return self._equal

    def _compare(self) -> bool:
        kind = type(self.value)
        if kind is not type(self.old):
            return False
        if kind is dict:
            return len(self.value) == len(self.old) and all(_unchanged(self.member(name)) for name in self.value)
        if kind is list:
            if self.node.list_type != "map":
                return same(self.value, self.old)
            if len(self.value) != len(self.old):
                return False
            return all(_unchanged(self.item(index)) for index in range(len(self.value)))
        return bool(self.value == self.old)


def _unchanged(child: Correlated | None) -> bool:
    return child is not None and child.equal()


def same(left: Any, right: Any) -> bool:
    """Equal values of equal types: 1 is neither 1.0 nor true."""
    kind = type(left)
    if kind is not type(right):
        return False
    if kind is dict:
        return len(left) == len(right) and all(
            name in right and same(value, right[name]) for name, value in left.items()
        )
    if kind is list:
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def by_key(items: Any, node: Node) -> dict[Any, Json]:
    """The objects of a list by their keys; of several with one key the first."""
    found: dict[Any, Json] = {}
    if type(items) is list and node.list_type == "map":
        for item in items:
            key = _key(item, node)
            if key is not None:
                found.setdefault(key, item)
    return found


def find(items: dict[Any, Json], item: Any, node: Node) -> Json | None:
    """The object with the same keys as another."""
    key = _key(item, node)
    return None if key is None else items.get(key)


def _key(item: Any, node: Node) -> tuple[Any, ...] | None:
    if type(item) is not dict:
        return None
    key: list[Any] = []
    for name in node.list_keys:
        value = item.get(name, _MISSING)
        if type(value) not in _KEYS:
            return None
        key.append((type(value), value))
    return tuple(key)

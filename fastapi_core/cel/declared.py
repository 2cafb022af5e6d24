"""Values in JSON form under a declaration: making values of them, and comparing and adding lists without order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from fastapi_core.cel.decls import Convert, Decl
from fastapi_core.cel.values import equal


def deep_convert(decl: Decl) -> Convert | None:
    """Makes a value of the JSON form and of everything in it; None when the form is the value already.

    Values that are made already pass unchanged.
    """
    if decl.deep is ...:
        decl.deep = None  # a type inside itself ends here
        decl.deep = _deep_convert(decl)
    return cast("Convert | None", decl.deep)


def _deep_convert(decl: Decl) -> Convert | None:
    if decl.convert is not None:
        return decl.convert
    if decl.fields is not None:
        inner = {field.raw: make for field in decl.fields.values() if (make := deep_convert(field.decl)) is not None}
        return _object_maker(inner) if inner else None
    if decl.elem is None:
        return None
    make = deep_convert(decl.elem)
    if make is None:
        return None
    return _map_maker(make) if decl.key is not None else _list_maker(make)


def _object_maker(inner: dict[str, Convert]) -> Convert:
    def make(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: inner[key](item) if item is not None and key in inner else item for key, item in value.items()}

    return make


def _map_maker(inner: Convert) -> Convert:
    def make(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: None if item is None else inner(item) for key, item in value.items()}

    return make


def _list_maker(inner: Convert) -> Convert:
    def make(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return [None if item is None else inner(item) for item in value]

    return make


def deep_list(inner: Convert | None) -> Convert | None:
    return None if inner is None else _list_maker(inner)


def deep_map(inner: Convert | None) -> Convert | None:
    return None if inner is None else _map_maker(inner)


Equal = Callable[[Any, Any], bool]


def declared_equal(decl: Decl) -> Equal | None:
    """Equality of values of this declaration; None when order matters everywhere, so that `equal` does."""
    if decl.equal is ...:
        decl.equal = None
        decl.equal = _declared_equal(decl)
    return cast("Equal | None", decl.equal)


def _declared_equal(decl: Decl) -> Equal | None:
    if decl.fields is not None:
        inner = {field.raw: same for field in decl.fields.values() if (same := declared_equal(field.decl)) is not None}
        return _objects_equal(inner) if inner else None
    if decl.elem is None:
        return None
    element = declared_equal(decl.elem)
    if decl.key is not None:
        return None if element is None else _maps_equal(element)
    if decl.order == "set":
        return _sets_equal
    if decl.order == "map":
        return _map_lists_equal(decl.keys, element or equal)
    return None if element is None else _lists_equal(element)


def _objects_equal(inner: dict[str, Equal]) -> Equal:
    def same(left: Any, right: Any) -> bool:
        if not isinstance(left, dict) or not isinstance(right, dict):
            return equal(left, right)
        if len(left) != len(right):
            return False
        return all(key in right and inner.get(key, equal)(value, right[key]) for key, value in left.items())

    return same


def _maps_equal(element: Equal) -> Equal:
    def same(left: Any, right: Any) -> bool:
        if not isinstance(left, dict) or not isinstance(right, dict):
            return equal(left, right)
        return len(left) == len(right) and all(
            key in right and element(value, right[key]) for key, value in left.items()
        )

    return same


def _lists_equal(element: Equal) -> Equal:
    def same(left: Any, right: Any) -> bool:
        if not isinstance(left, list) or not isinstance(right, list):
            return equal(left, right)
        return len(left) == len(right) and all(map(element, left, right))

    return same


def _sets_equal(left: Any, right: Any) -> bool:
    if not isinstance(left, list) or not isinstance(right, list):
        return equal(left, right)
    if len(left) != len(right):
        return False
    return all(any(equal(item, other) for other in right) for item in left) and all(
        any(equal(item, other) for other in left) for item in right
    )


def _list_key(item: Any, keys: tuple[str, ...]) -> tuple[Any, ...]:
    if not isinstance(item, dict):
        return (repr(item),)
    return tuple((type(item.get(key)), item.get(key)) for key in keys)


def _map_lists_equal(keys: tuple[str, ...], element: Equal) -> Equal:
    def same(left: Any, right: Any) -> bool:
        if not isinstance(left, list) or not isinstance(right, list):
            return equal(left, right)
        if len(left) != len(right):
            return False
        known = {_list_key(item, keys): item for item in left}
        seen = set()
        for item in right:
            key = _list_key(item, keys)
            if key not in known or not element(known[key], item):
                return False
            seen.add(key)
        return len(seen) == len(known)

    return same


def declared_add(decl: Decl) -> Callable[[Any, Any], Any] | None:
    """`+` of lists without order: those of the right side that the left has not, or (by key) instead of its own."""
    if decl.order == "set":
        return _add_sets
    if decl.order != "map":
        return None
    keys = decl.keys

    def merge(left: Any, right: Any) -> Any:
        result = list(left)
        index = {_list_key(item, keys): position for position, item in enumerate(result)}
        for item in right:
            key = _list_key(item, keys)
            if key in index:
                result[index[key]] = item
            else:
                index[key] = len(result)
                result.append(item)
        return result

    return merge


def _add_sets(left: Any, right: Any) -> Any:
    result = list(left)
    for item in right:
        if not any(equal(item, other) for other in result):
            result.append(item)
    return result

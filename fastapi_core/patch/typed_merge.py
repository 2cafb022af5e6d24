"""Objects merged with, and freed of, what an applied configuration says, along their shape.

Nothing given is changed; results share what stays the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi_core.patch import fieldset
from fastapi_core.patch.fieldset import LEAF, FieldSet
from fastapi_core.patch.shapes import DEDUCED, Kind, Shape
from fastapi_core.patch.typed import fits, item_element
from fastapi_core.schema.types import ABSENT

Tree = dict[str, Any]


def _kind(shape: Shape, value: Any) -> Kind:
    """How a value is treated: unknown shapes by what they hold."""
    if shape.kind is not Kind.DEDUCED:
        return shape.kind
    return Kind.OBJECT if value.__class__ is dict else Kind.LEAF


def _inner(shape: Shape, name: str) -> Shape | None:
    """Shape of a member, None for one the shape does not know."""
    if shape.kind is Kind.DEDUCED:
        return DEDUCED
    member = shape.members.get(name)
    return member.shape if member is not None else shape.rest


# Merging


def merge(shape: Shape, current: Tree, config: Tree) -> Tree:
    """The object with everything the configuration says: members merged, list items matched, single values replaced."""
    out = dict(current)
    for name, value in config.items():
        known = current.get(name, ABSENT)
        inner = _inner(shape, name)
        if inner is None or known is value or known is ABSENT:
            out[name] = value
        else:
            out[name] = _merge(inner, known, value)
    return out


def _merge(shape: Shape, known: Any, value: Any) -> Any:
    kind = _kind(shape, known if value is None else value)
    if kind is Kind.LEAF or not known:
        return value
    if not fits(kind, known):
        return value
    if kind is Kind.OBJECT:
        return merge(shape, known, value) if value else known
    return _merge_lists(shape, known, value) if value else known


def _merge_lists(shape: Shape, known: list[Any], given: list[Any]) -> list[Any]:
    """Items in the order of the configuration; those it does not name stay in front of the named item they preceded.

    Items the object has more than once are not merged: the configuration's takes their place.
    """
    elements = [item_element(shape, item) for item in given]
    wanted = dict(zip(elements, given, strict=True))
    current = [item_element(shape, item) for item in known]
    single: dict[str, Any] = {}
    for element, item in zip(current, known, strict=True):
        single[element] = None if element in single else item
    shared: Iterator[str] = (element for element in elements if element in single)
    upcoming = next(shared, None)
    done: set[str] = set()
    out: list[Any] = []
    left = right = 0

    def take(element: str) -> None:
        before, item = single.get(element), wanted[element]
        out.append(item if before is None else _merge(shape.item, before, item))
        done.add(element)

    while left < len(current) or right < len(elements):
        if left < len(current):
            element = current[left]
            if element not in wanted:
                out.append(known[left])
                left += 1
                continue
            if right < len(elements):
                if element == elements[right]:
                    take(element)
                    left, right, upcoming = left + 1, right + 1, next(shared, None)
                    continue
                if upcoming not in (None, element):
                    left += 1
                    continue
            if element in done:
                left += 1
        if right < len(elements):
            element = elements[right]
            take(element)
            right += 1
            if upcoming == element:
                upcoming = next(shared, None)
    return out


# Removing


def remove(shape: Shape, tree: Tree, gone: FieldSet) -> Tree:
    """The object without the values at some paths. An object or list that loses everything becomes null."""
    out: Tree = {}
    for name, value in tree.items():
        node = gone.get("f:" + name)
        if node is None:
            out[name] = value
        elif not fieldset.is_member(node):
            inner = _inner(shape, name)
            out[name] = value if inner is None else _remove(inner, value, node)
    return out


def _remove(shape: Shape, value: Any, gone: FieldSet) -> Any:
    kind = _kind(shape, value)
    if not value:
        return None if value.__class__ in (dict, list) else value
    if kind is Kind.LEAF:
        return None if value.__class__ in (dict, list) else value
    if kind is Kind.OBJECT:
        return remove(shape, value, gone) or None if isinstance(value, dict) else value
    if not isinstance(value, list):
        return value
    out: list[Any] = []
    for item in value:
        node = gone.get(item_element(shape, item))
        if node is None:
            out.append(item)
        elif not fieldset.is_member(node):
            out.append(_remove(shape.item, item, node))
    return out or None


# Sets seen through a shape


def with_named(shape: Shape | None, fields: FieldSet) -> FieldSet:
    """The set with every struct member on the way to a path of it; keys of maps are left as they are."""
    out: FieldSet = {}
    for element, node in fields.items():
        inner: Shape | None = None
        named = False
        if shape is not None and element[:2] == "f:":
            named = element[2:] in shape.members
            inner = _inner(shape, element[2:])
        elif shape is not None and element[:2] == "k:" and shape.kind is Kind.KEYED:
            inner = shape.item
        below = with_named(inner, node) if node else node
        if named and below and fieldset.SELF not in below:
            below = {fieldset.SELF: LEAF, **below}
        out[element] = below
    return out


def reconciled(shape: Shape, fields: FieldSet) -> FieldSet:
    """The set after the type has changed: who owned parts of what is one value now owns that value."""
    changed: FieldSet = {}
    for element, node in fields.items():
        if not node:
            continue
        inner: Shape | None = None
        if element[:2] == "f:":
            inner = _inner(shape, element[2:])
        elif shape.kind is Kind.KEYED:
            inner = shape.item
        if inner is None or inner.kind is Kind.DEDUCED:
            continue
        if inner.kind is Kind.LEAF:
            if inner.scalar in ("object", "list"):
                changed[element] = LEAF
            continue
        rest = reconciled(inner, node)
        if rest is not node:
            changed[element] = rest
    return {**fields, **changed} if changed else fields

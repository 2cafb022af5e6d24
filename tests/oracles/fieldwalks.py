"""Walks along shapes the plain way: what `_ext/fieldset.pyx` does, written for reading. Only shapes are shared with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi_core._ext.fieldset import ABSENT, ItemError, Shape
from fastapi_core.patch.shapes import DEDUCED, Kind
from tests.oracles import fieldset
from tests.oracles.fieldset import LEAF, SELF, FieldSet

Tree = dict[str, Any]


def fits(kind: Kind, value: Any) -> bool:
    """Whether a value is the object or list its kind says."""
    return value.__class__ is (dict if kind is Kind.OBJECT else list)


def _misfit(value: Any) -> ItemError:
    return ItemError(f"an object or list was expected, not {type(value).__name__}")


def _by_element(shape: Shape, items: list[Any] | None) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items or ():
        found.setdefault(shape.element(item), []).append(item)
    return found


# Paths of a whole value


def field_set(shape: Shape, tree: dict[str, Any]) -> FieldSet:
    """The paths of an object as an applied configuration owns them: leaves, items and empty objects."""
    return _object_paths(shape, tree)


def _paths(shape: Shape, value: Any) -> FieldSet | None:
    """Node of a value without its own membership; None for no paths at all."""
    kind = shape.kind
    if kind is Kind.DEDUCED:
        kind = Kind.OBJECT if value.__class__ is dict else Kind.LEAF
    if kind is Kind.LEAF:
        return LEAF
    if not value:
        return None
    if not fits(kind, value):
        raise _misfit(value)
    if kind is Kind.OBJECT:
        return _object_paths(shape, value) or None
    out: FieldSet = {}
    for element, items in _by_element(shape, value).items():
        below = _paths(shape.item, items[0]) if len(items) == 1 else None
        out[element] = _joined(below)
    return fieldset.ordered(out)


def _joined(below: FieldSet | None) -> FieldSet:
    """A node that is a member itself, with what is below."""
    if not below:
        return LEAF
    return below if SELF in below else {SELF: LEAF, **below}


def _object_paths(shape: Shape, tree: dict[str, Any]) -> FieldSet:
    out: FieldSet = {}
    members, rest, hidden = shape.members, shape.rest, shape.hidden
    if shape.kind is Kind.DEDUCED:
        rest = DEDUCED
    for name in sorted(tree):
        value = tree[name]
        member = members.get(name)
        if member is not None:
            below = _paths(member.shape, value)
            if value is None or (not value and value.__class__ is dict):
                out[member.element] = LEAF
            elif below is not None:
                out[member.element] = below
        elif rest is not None and name not in hidden:
            out["f:" + name] = _joined(_paths(rest, value))
    return out


# Differences


def compare(shape: Shape, old: dict[str, Any], new: dict[str, Any]) -> tuple[FieldSet, FieldSet]:
    """(paths added or changed, paths removed) on the way from one object to another."""
    touched: FieldSet = {}
    removed: FieldSet = {}
    _members(shape, old, new, touched, removed)
    return touched, removed


def _members(shape: Shape, old: dict[str, Any], new: dict[str, Any], touched: FieldSet, removed: FieldSet) -> None:
    members, rest, hidden = shape.members, shape.rest, shape.hidden
    if shape.kind is Kind.DEDUCED:
        rest = DEDUCED
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name, ABSENT), new.get(name, ABSENT)
        if before is after:
            continue
        member = members.get(name)
        if member is not None:
            element, inner = member.element, member.shape
            if before is ABSENT:
                before = member.implied
            elif after is ABSENT:
                after = member.implied
        elif rest is not None and name not in hidden:
            element, inner = "f:" + name, rest
        else:
            continue
        _put(element, _compare(inner, before, after), touched, removed)


def _put(element: str, found: tuple[FieldSet | None, FieldSet | None], touched: FieldSet, removed: FieldSet) -> None:
    gained, lost = found
    if gained is not None:
        touched[element] = gained
    if lost is not None:
        removed[element] = lost


_NOTHING = (None, None)


def _compare(shape: Shape, before: Any, after: Any) -> tuple[FieldSet | None, FieldSet | None]:
    """Nodes of what a value gained or changed and of what it lost; None for nothing."""
    if before is ABSENT:
        return _NOTHING if after is ABSENT else (_whole(shape, after), None)
    if after is ABSENT:
        return None, _whole(shape, before)
    kind = shape.kind
    if kind is Kind.DEDUCED:
        return _compare_deduced(before, after)
    if same(before, after):
        return _NOTHING
    if kind is Kind.LEAF or not (before or after):
        return LEAF, None
    touched: FieldSet = {}
    removed: FieldSet = {}
    for value in (before, after):
        if value is not None and not fits(kind, value):
            raise _misfit(value)
    if kind is Kind.OBJECT:
        _members(shape, before or {}, after or {}, touched, removed)
        return touched or None, removed or None
    _items(shape, before, after, touched, removed)
    return fieldset.ordered(touched) or None, fieldset.ordered(removed) or None


def _compare_deduced(before: Any, after: Any) -> tuple[FieldSet | None, FieldSet | None]:
    """Values of unknown shape: objects are taken apart, a change of kind replaces one by the other."""
    objects = before.__class__ is dict, after.__class__ is dict
    if not any(objects) or not (before or after):
        return _NOTHING if same(before, after) else (LEAF, None)
    touched: FieldSet = {}
    removed: FieldSet = {}
    _members(DEDUCED, before if objects[0] else {}, after if objects[1] else {}, touched, removed)
    if not all(objects) and before is not None and after is not None:
        touched = _joined(touched)
        return touched, removed or None
    return touched or None, removed or None


def same(left: Any, right: Any) -> bool:
    if left.__class__ is not right.__class__:
        numbers = (int, float)
        return left.__class__ in numbers and right.__class__ in numbers and bool(left == right)
    if left.__class__ is dict:
        return left.keys() == right.keys() and all(same(value, right[name]) for name, value in left.items())
    if left.__class__ is list:
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def _items(shape: Shape, before: Any, after: Any, touched: FieldSet, removed: FieldSet) -> None:
    """Differences of two lists with identifiable items. Items given repeatedly count as one value."""
    old, new = _by_element(shape, before), _by_element(shape, after)
    nothing: list[Any] = []
    for element in {**old, **new}:
        was, now = old.get(element, nothing), new.get(element, nothing)
        if len(was) <= 1 and len(now) <= 1:
            found = _compare(shape.item, was[0] if was else ABSENT, now[0] if now else ABSENT)
            _put(element, found, touched, removed)
        elif len(was) > 1 and len(now) > 1:
            if was != now:
                touched[element] = LEAF
        elif len(was) > 1:
            if now:
                touched[element] = _whole(shape.item, now[0])
            removed[element] = LEAF
        else:
            touched[element] = LEAF
            if was:
                removed[element] = _whole(shape.item, was[0])


def _whole(shape: Shape, value: Any) -> FieldSet:
    """Node of a value that appears or goes as a whole: its own path and all below."""
    kind = shape.kind
    if kind is Kind.LEAF or not value:
        return LEAF
    if kind is Kind.DEDUCED:
        if value.__class__ is not dict:
            return LEAF
    elif kind is not Kind.OBJECT:
        if value.__class__ is not list:
            raise _misfit(value)
        return _whole_list(shape, value)
    elif value.__class__ is not dict:
        raise _misfit(value)
    members, rest, hidden = shape.members, shape.rest, shape.hidden
    if kind is Kind.DEDUCED:
        rest = DEDUCED
    out: FieldSet = {SELF: LEAF}
    for name in sorted(value):
        member = members.get(name)
        if member is not None:
            inner = member.shape
            out[member.element] = LEAF if inner.kind is Kind.LEAF else _whole(inner, value[name])
        elif rest is not None and name not in hidden:
            out["f:" + name] = _whole(rest, value[name])
    return out if len(out) > 1 else LEAF


def _whole_list(shape: Shape, value: list[Any]) -> FieldSet:
    out: FieldSet = {SELF: LEAF}
    item = shape.item
    for element, items in _by_element(shape, value).items():
        out[element] = _whole(item, items[0]) if len(items) == 1 else LEAF
    return fieldset.ordered(out) if len(out) > 2 else out


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
    elements = [shape.element(item) for item in given]
    wanted = dict(zip(elements, given, strict=True))
    current = [shape.element(item) for item in known]
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
    """The object without the values at some paths. An object or list that loses everything stays, empty."""
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
    if not value or kind is Kind.LEAF:
        return value.__class__() if value.__class__ in (dict, list) else value
    if kind is Kind.OBJECT:
        return remove(shape, value, gone) if isinstance(value, dict) else value
    if not isinstance(value, list):
        return value
    out: list[Any] = []
    for item in value:
        node = gone.get(shape.element(item))
        if node is None:
            out.append(item)
        elif not fieldset.is_member(node):
            out.append(_remove(shape.item, item, node))
    return out


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

"""Walks over objects along their shape: which paths an object has, which ones two objects differ in.

Members the shape does not know are not looked at. Trees are the normalised ones the server works on; struct members the
reference would print although they are unset may be missing (see `shapes.Member.implied`).
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from fastapi_core.patch import fieldset
from fastapi_core.patch.fieldset import LEAF, SELF, FieldSet
from fastapi_core.patch.shapes import DEDUCED, Kind, Shape
from fastapi_core.schema.types import ABSENT

_HASHABLE: Final = (str, int, bool, float)


class ItemError(ValueError):
    """A value that has no paths: a list item that cannot be told apart from the others, or one of the wrong kind."""


def fits(kind: Kind, value: Any) -> bool:
    """Whether a value is the object or list its kind says."""
    return value.__class__ is (dict if kind is Kind.OBJECT else list)


def _misfit(value: Any) -> ItemError:
    return ItemError(f"an object or list was expected, not {type(value).__name__}")


# Path elements of list items


def item_element(shape: Shape, item: Any) -> str:
    """Path element of an item of a keyed list or a set; ItemError when it has none."""
    if shape.kind is Kind.SET:
        if item.__class__ in _HASHABLE:
            return fieldset.valued(item)
        raise ItemError(_set_problem(item))
    if item.__class__ is not dict:
        what = "a null element" if item is None else "non-map elements"
        raise ItemError(f"associative list with keys may not have {what}")
    names, values = [], []
    for name in shape.sorted_keys:
        value = item.get(name, ABSENT)
        if value is ABSENT:
            value = shape.defaults.get(name, ABSENT)
            if value is ABSENT:
                continue
        if value is not None and value.__class__ not in _HASHABLE:
            return fieldset.keyed_by(_key(shape, item))
        names.append(name)
        values.append(value)
    if not names:
        listed = " ".join(f'"{key}"' for key in shape.keys)
        raise ItemError(
            f"associative list with keys has an element that omits all key fields [{listed}] "
            "(and doesn't have default values for any key fields)"
        )
    return fieldset.keyed(tuple(names), *values)


def _key(shape: Shape, item: dict[str, Any]) -> dict[str, Any]:
    known = {**shape.defaults, **item}
    return {name: known[name] for name in shape.keys if name in known}


def _set_problem(item: Any) -> str:
    if item is None:
        return "associative list without keys has an element that's an explicit null"
    if item.__class__ is list:
        return "not supported: associative list with lists as elements"
    return "associative list without keys has an element that's a map type"


def _by_element(shape: Shape, items: list[Any] | None) -> dict[str, list[Any]]:
    """Items by path element; more than one for elements given repeatedly."""
    found: dict[str, list[Any]] = {}
    for item in items or ():
        found.setdefault(item_element(shape, item), []).append(item)
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
        if before is after or (before.__class__ in _PLAIN and before.__class__ is after.__class__ and before == after):
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


#: Classes whose values are equal when Python says so.
_PLAIN: Final = frozenset({str, int, bool})


def _put(element: str, found: tuple[FieldSet | None, FieldSet | None], touched: FieldSet, removed: FieldSet) -> None:
    gained, lost = found
    if gained is not None:
        touched[element] = gained
    if lost is not None:
        removed[element] = lost


_NOTHING: Final = (None, None)


def _compare(shape: Shape, before: Any, after: Any) -> tuple[FieldSet | None, FieldSet | None]:
    """Nodes of what a value gained or changed and of what it lost; None for nothing."""
    if before is ABSENT:
        return _NOTHING if after is ABSENT else (_whole(shape, after), None)
    if after is ABSENT:
        return None, _whole(shape, before)
    kind = shape.kind
    if kind is Kind.DEDUCED:
        return _compare_deduced(before, after)
    if equal(before, after):
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
        return _NOTHING if equal(before, after) else (LEAF, None)
    touched: FieldSet = {}
    removed: FieldSet = {}
    _members(DEDUCED, before if objects[0] else {}, after if objects[1] else {}, touched, removed)
    if not all(objects) and before is not None and after is not None:
        touched = _joined(touched)
        return touched, removed or None
    return touched or None, removed or None


def equal(left: Any, right: Any) -> bool:
    """Equality of JSON values, to which true is not 1."""
    if left != right:
        return False
    return left.__class__ is str or orjson.dumps(left) == orjson.dumps(right) or same(left, right)


def same(left: Any, right: Any) -> bool:
    """`equal`, value by value."""
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
    if not members and rest is not None and rest.kind is Kind.LEAF and not hidden:
        for name in sorted(value):
            out["f:" + name] = LEAF
        return out
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

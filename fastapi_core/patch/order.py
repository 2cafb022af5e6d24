"""Order of a merged list: what the patch names in the patch's order, the rest where it was.

Items are told apart by their merge key, or by themselves when they are scalars.
"""

from __future__ import annotations

from typing import Any

from fastapi_core.patch.errors import PatchError, go_format, go_type

_SCALARS = (str, int, float, bool)


def element_class(*lists: list[Any]) -> type:
    """The class all items share.

    Raises PatchError: unprocessable for lists of lists; internal for mixed lists, nulls and when there is no item.
    """
    found: type | None = None
    for items in lists:
        for item in items:
            kind = item.__class__
            if found is None:
                if kind is list:
                    raise PatchError("unprocessable", "lists of lists are not supported")
                if item is None:
                    raise PatchError("internal", "lists that hold null cannot be merged")
                found = kind
            elif kind is not found:
                raise PatchError("internal", f"list element types are not identical: {go_format(list(lists))}")
    if found is None:
        raise PatchError("internal", "no elements in any of the given slices")
    return found


def identity(value: Any) -> tuple[type, Any]:
    """What makes two scalars the same (1, 1.0 and true are three values)."""
    if value.__class__ in _SCALARS or value is None:
        return value.__class__, value
    raise PatchError("internal", f"a {go_type(value)} cannot tell list items apart")


def key_of(item: Any, merge_key: str) -> Any:
    """Merge key value of an item; PatchError(internal) when the item is no object or has none."""
    if item.__class__ is not dict:
        raise PatchError("internal", f"expected a map[string]interface {{}}, but received a {go_type(item)}")
    try:
        return item[merge_key]
    except KeyError:
        raise PatchError(
            "internal", f"map: {go_format(item)} does not contain declared merge key: {merge_key}"
        ) from None


def item_identity(item: Any, merge_key: str) -> tuple[type, Any]:
    """Identity of an item: of its merge key value, or of the scalar itself when there is no merge key."""
    return identity(key_of(item, merge_key) if merge_key else item)


def distinct(items: list[Any]) -> list[Any]:
    """Scalars without repetitions, first one kept."""
    return list({identity(item): item for item in reversed(items)}.values())[::-1]


def arrange(merged: list[Any], wanted: list[Any], current: list[Any], merge_key: str) -> list[Any]:
    """`merged` in its final order.

    Items named in `wanted` (the patch, or its `$setElementOrder`) come in that order; the others keep the order of
    `current` and are put before the first named item that stood behind them in `current`. Named items that are new have
    no place in `current`: nothing is put before them for that.
    """
    wanted_at = _places(wanted, merge_key)
    current_at = _places(current, merge_key)
    named: list[tuple[int, tuple[type, Any], Any]] = []
    others: list[tuple[int, tuple[type, Any], Any]] = []
    unplaced: list[Any] = []
    for item in merged:
        key = item_identity(item, merge_key)
        if key in wanted_at:
            named.append((wanted_at[key], key, item))
        elif key in current_at:
            others.append((current_at[key], key, item))
        else:
            unplaced.append(item)
    named.sort(key=_by_place)
    others.sort(key=_by_place)
    out: list[Any] = unplaced[::-1]
    at = 0
    for place, _, item in others:
        while at < len(named) and not place < current_at.get(named[at][1], -1):
            out.append(named[at][2])
            at += 1
        out.append(item)
    out.extend(item for _, _, item in named[at:])
    return out


def _by_place(entry: tuple[int, Any, Any]) -> int:
    return entry[0]


def _places(items: list[Any], merge_key: str) -> dict[tuple[type, Any], int]:
    places: dict[tuple[type, Any], int] = {}
    for place, item in enumerate(items):
        places.setdefault(item_identity(item, merge_key), place)
    return places


def check_patch_order(patch: list[Any], wanted: list[Any], merge_key: str) -> None:
    """The items a patch list adds or changes must appear in its `$setElementOrder`, in the same order."""
    if not patch or not wanted:
        return
    items = patch
    if merge_key:
        items = [item for item in patch if key_of_directive(item) != "delete"]
    at = 0
    for place in wanted:
        while at < len(items) and items[at].__class__ is dict and "$patch" in items[at]:
            at += 1
        if at == len(items):
            return
        if item_identity(items[at], merge_key) == item_identity(place, merge_key):
            at += 1
    if at < len(items):
        raise PatchError(
            "internal",
            f"The order in patch list:\n{go_format(patch)}\n"
            f" doesn't match $setElementOrder list:\n{go_format(wanted)}\n",
        )


def key_of_directive(item: Any) -> Any:
    """The `$patch` directive of a list item, None without one; the item must be an object."""
    if item.__class__ is not dict:
        raise PatchError("internal", f"expected a map[string]interface {{}}, but received a {go_type(item)}")
    return item.get("$patch")

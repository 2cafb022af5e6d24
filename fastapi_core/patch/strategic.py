"""Strategic merge patch on decoded trees, directed by the patch keys and strategies of the type tables.

Lists with strategy `merge` are merged by key (objects) or as sets (scalars); others are replaced. Directives:
`$patch` (replace, delete), `$retainKeys`, `$setElementOrder/<list>`, `$deleteFromPrimitiveList/<list>`.
Nothing given is changed; the result shares what the patch does not touch. The order of merged lists
is the business of `order.py`.

As in the reference, null members of a patch are dropped and `$patch` items taken out only where a value meets no
list or object of the same kind; an item appended to a merged list is taken as it is.
"""

from __future__ import annotations

from typing import Any

from fastapi_core.patch import order
from fastapi_core.patch.errors import PatchError, go_format, go_type, too_deep
from fastapi_core.patch.lookup import Schema, lookup
from fastapi_core.patch.merge import prune
from fastapi_core.schema.types import Type

Tree = dict[str, Any]

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
SET_ORDER = "$setElementOrder/"
DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER_PREFIX = SET_ORDER[:-1]
_DELETE_PREFIX = DELETE_FROM[:-1]


def strategic(tree: Tree, patch: Any, type: Type) -> Tree:
    """The object after the patch; a `null` patch changes nothing.

    Raises PatchError: bad_request for a patch that is not an object or has a malformed directive, unprocessable for
    lists of lists, internal for what the reference answers with a plain 500 (an item without merge key, an unknown
    directive, mixed lists).
    """
    if patch is None:
        return tree
    if patch.__class__ is not dict:
        raise PatchError("bad_request", "invalid JSON document")
    try:
        return merge_maps(tree, patch, type)
    except RecursionError:
        raise too_deep() from None


def merge_maps(current: Tree, patch: Tree, schema: Schema) -> Tree:
    """One object merged with one patch object."""
    if DIRECTIVE in patch:
        return _directed(patch)
    out = current.copy()
    if RETAIN_KEYS in patch:
        _retain(out, patch)
        patch = {key: value for key, value in patch.items() if key != RETAIN_KEYS}
    done = _ordered_lists(out, patch, schema) if any(key.startswith(_ORDER_PREFIX) for key in patch) else ()
    for key, value in patch.items():
        if key in done:
            continue
        deletion = key.startswith(_DELETE_PREFIX)
        if deletion:
            key = _list_of(key, DELETE_FROM, "invalid patch format of primitive list")
        _merge_member(out, key, value, schema, deletion)
    return out


def _directed(patch: Tree) -> Tree:
    directive = patch[DIRECTIVE]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    raise _unknown_directive(directive, patch)


def _unknown_directive(directive: Any, patch: Tree) -> PatchError:
    shown = directive if isinstance(directive, str) else f"%!s({go_type(directive)}={go_format(directive)})"
    return PatchError("internal", f"unknown patch type: {shown} in map: {go_format(patch)}")


def _retain(out: Tree, patch: Tree) -> None:
    """Drop from `out` what `$retainKeys` does not name; every member of the patch must be named."""
    names = patch[RETAIN_KEYS]
    if names.__class__ is not list:
        raise PatchError("bad_request", "invalid patch format of retainKeys")
    kept = {name for name in names if name.__class__ is str}
    for key, value in patch.items():
        if key == RETAIN_KEYS or value is None or key.startswith((_DELETE_PREFIX, _ORDER_PREFIX)):
            continue
        if key not in kept:
            raise PatchError("bad_request", "invalid patch format of retainKeys")
    for key in [key for key in out if key not in kept]:
        del out[key]


def _list_of(key: str, prefix: str, message: str) -> str:
    """Name of the list a directive member is about."""
    if not key.startswith(prefix):
        raise PatchError("bad_request", message)
    return key[len(prefix) :]


def _merge_member(out: Tree, key: str, value: Any, schema: Schema, deletion: bool) -> None:
    if value is None:
        out.pop(key, None)
        return
    current: Any = out.get(key)
    kind = value.__class__
    if current.__class__ is kind and kind is dict:
        inner, strategy, _ = lookup(schema, key)
        out[key] = value if strategy == "replace" else merge_maps(current, value, inner)
    elif current.__class__ is kind and kind is list:
        inner, strategy, merge_key = lookup(schema, key)
        if strategy == "merge" or deletion:
            out[key] = _merge_lists(current, value, inner, merge_key, deletion)
        else:
            out[key] = value
    elif not deletion:
        value = prune(value)
        if kind is dict and DIRECTIVE in value:
            out.pop(key, None)
        else:
            out[key] = _without_directives(value)


def _without_directives(value: Any) -> Any:
    """`value` without the objects that carry a `$patch` directive."""
    kind = value.__class__
    if kind is dict:
        return {
            key: _without_directives(item)
            for key, item in value.items()
            if not (item.__class__ is dict and DIRECTIVE in item)
        }
    if kind is list:
        return [_without_directives(item) for item in value if not (item.__class__ is dict and DIRECTIVE in item)]
    return value


def _merge_lists(current: list[Any], patch: list[Any], schema: Schema, merge_key: str, deletion: bool) -> list[Any]:
    if not current and not patch:
        return current
    if order.element_class(current, patch) is not dict:
        if deletion:
            gone = {order.identity(item) for item in patch}
            return [item for item in current if order.identity(item) not in gone]
        return order.arrange(order.distinct(current + patch), patch, current, merge_key)
    if not merge_key:
        raise PatchError("internal", "cannot merge lists without merge key for struct")
    current, patch = _apply_special(current, patch, merge_key)
    return order.arrange(_merge_items(current, patch, schema, merge_key), patch, current, merge_key)


def _apply_special(current: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Carry out the items that are directives: the list they leave, and the items still to merge."""
    items, gone, replace = [], set(), False
    for item in patch:
        directive = item.get(DIRECTIVE, _NONE)
        if directive is _NONE:
            items.append(item)
        elif directive == "delete":
            gone.add(order.identity(order.key_of(item, merge_key)))
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise PatchError("internal", "merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(directive, item)
    if replace:
        return items, []
    if gone:
        current = [item for item in current if merge_key not in item or order.identity(item[merge_key]) not in gone]
    return current, items


_NONE = object()


def _merge_items(current: list[Any], patch: list[Any], schema: Schema, merge_key: str) -> list[Any]:
    """Items of the patch merged into the first item of the same key, or appended."""
    merged = list(current)
    places: dict[Any, int] = {}
    for place, item in enumerate(merged):
        if merge_key in item:
            places.setdefault(order.identity(item[merge_key]), place)
    for item in patch:
        key = order.identity(order.key_of(item, merge_key))
        found = places.get(key)
        if found is None:
            places[key] = len(merged)
            merged.append(item)
        else:
            merged[found] = merge_maps(merged[found], item, schema)
    return merged


def _ordered_lists(out: Tree, patch: Tree, schema: Schema) -> set[str]:
    """Merge and arrange the lists that come with `$setElementOrder`; returns the members of the patch dealt with."""
    done = set()
    for directive, wanted in patch.items():
        if not directive.startswith(_ORDER_PREFIX):
            continue
        done.add(directive)
        if wanted.__class__ is not list:
            raise _not_a_list(wanted)
        key = _list_of(directive, SET_ORDER, "invalid patch format of setElementOrder list")
        for side in (out, patch):
            if key in side and side[key].__class__ is not list:
                raise _not_a_list(side[key])
        inner, strategy, merge_key = lookup(schema, key)
        items = patch.get(key, [])
        order.check_patch_order(items, wanted, merge_key)
        if key in patch:
            done.add(key)
            if key not in out:
                merged = _without_directives(items)
            elif strategy == "merge":
                merged = _merge_lists(out[key], items, inner, merge_key, False)
            else:
                merged = items
        elif key in out:
            merged = out[key]
        else:
            continue
        current = out.get(key, [])
        order.element_class(current, items)
        out[key] = order.arrange(merged, wanted, current, merge_key)
    return done


def _not_a_list(value: Any) -> PatchError:
    return PatchError("internal", f"expected a []interface {{}}, but received a {go_type(value)}")

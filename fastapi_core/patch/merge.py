"""JSON merge patch (RFC 7386) on decoded trees, with the reference's treatment of nulls inside lists.

Nothing given is changed; the result shares what the patch does not touch.
"""

from __future__ import annotations

from typing import Any

from fastapi_core.patch.errors import PatchError, too_deep

Tree = dict[str, Any]


def merge(tree: Tree, patch: Any) -> Tree:
    """The object after the patch.

    Raises PatchError(bad_request) when the patch is not an object (`null` included) or nested beyond all measure.
    """
    if patch.__class__ is not dict:
        raise PatchError("bad_request", "Invalid JSON Patch")
    try:
        return _merge(tree, patch)
    except RecursionError:
        raise too_deep() from None


def _merge(tree: Tree, patch: Tree) -> Tree:
    out = tree.copy()
    for key, value in patch.items():
        kind = value.__class__
        if value is None:
            out.pop(key, None)
        elif kind is dict:
            current = out.get(key)
            out[key] = _merge(current, value) if current.__class__ is dict else prune(value)
        elif kind is list and out.get(key).__class__ is not dict:
            out[key] = prune(value)
        else:
            out[key] = value
    return out


def prune(value: Any) -> Any:
    """A new value without members that are null; list items that are null stay.

    The RFC takes lists as they are. The reference prunes the objects inside a list too, unless the list replaces an
    object.
    """
    kind = value.__class__
    if kind is dict:
        return {key: prune(item) for key, item in value.items() if item is not None}
    if kind is list:
        return [prune(item) for item in value]
    return value

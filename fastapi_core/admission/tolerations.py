"""Lists of tolerations: which covers which, and merging them."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi_core.registry.definition import Tree


def covers(wide: Tree, narrow: Tree) -> bool:
    """Whether `wide` tolerates all that `narrow` does."""
    if wide == narrow:
        return True
    operator = wide.get("operator") or ""
    if narrow.get("key", "") != wide.get("key", "") and (wide.get("key") or operator != "Exists"):
        return False
    effect = wide.get("effect") or ""
    if effect and narrow.get("effect", "") != effect:
        return False
    if effect == "NoExecute" and wide.get("tolerationSeconds") is not None:
        seconds = narrow.get("tolerationSeconds")
        if seconds is None or seconds > wide["tolerationSeconds"]:
            return False
    if operator in ("", "Equal"):
        return (narrow.get("operator") or "") == operator and narrow.get("value", "") == wide.get("value", "")
    return operator == "Exists"


def merge(first: Sequence[Tree], second: Sequence[Tree]) -> list[Tree]:
    """Both lists in order without what another member covers; of equal ones the first stays."""
    every = [*first, *second]
    merged: list[Tree] = []
    for index, toleration in enumerate(every):
        if any(covers(kept, toleration) for kept in merged):
            continue
        if any(later != toleration and covers(later, toleration) for later in every[index + 1 :]):
            continue
        merged.append(toleration)
    return merged


def allowed(tolerations: Sequence[Tree], whitelist: Sequence[Tree]) -> bool:
    """Whether a whitelist, unless it is empty, covers every toleration."""
    return not whitelist or all(any(covers(wide, toleration) for wide in whitelist) for toleration in tolerations)


def put(tolerations: Sequence[Tree], added: Tree) -> list[Tree]:
    """With `added` in the place of the one that differs only in its seconds, else at the end."""
    members = ("key", "operator", "value", "effect")
    kept: list[Tree] = []
    replaced = False
    for toleration in tolerations:
        if all((toleration.get(m) or "") == (added.get(m) or "") for m in members):
            kept.append(added)
            replaced = True
        else:
            kept.append(toleration)
    return kept if replaced else [*kept, added]

"""Lists of tolerations: which covers which, and merging them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from fastapi_core.registry.definition import Tree

_Identity = tuple[tuple[str, Any], ...]


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
    known = [_identity(toleration) for toleration in every]
    # From the end: what is covered by one that comes later and is not the same.
    later = _Widest()
    covered = []
    for toleration, identity in zip(reversed(every), reversed(known), strict=True):
        covered.append(later.covers(toleration, identity))
        later.add(toleration, identity)
    merged: list[Tree] = []
    kept, seen = _Widest(), set()
    for toleration, identity in zip(every, known, strict=True):
        if not covered.pop() and identity not in seen and not kept.covers(toleration, identity):
            merged.append(toleration)
            seen.add(identity)
            kept.add(toleration, identity)
    return merged


def _identity(toleration: Tree) -> _Identity:
    return tuple(sorted(toleration.items()))


class _Widest:
    """Of the tolerations added, those that cover the most of each kind: enough to tell whether any covers another."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str, str], list[tuple[float, _Identity]]] = {}

    def add(self, wide: Tree, identity: _Identity) -> None:
        operator, effect = wide.get("operator") or "", wide.get("effect") or ""
        if operator not in ("", "Equal", "Exists"):
            return
        seconds = wide.get("tolerationSeconds") if effect == "NoExecute" else None
        value = "" if operator == "Exists" else wide.get("value", "")
        found = self._found.setdefault((wide.get("key", ""), effect, operator, value), [])
        if all(known != identity for _, known in found):
            # The second one is for asking about the first itself.
            found.append((inf if seconds is None else seconds, identity))
            found.sort(key=lambda entry: -entry[0])
            del found[2:]

    def covers(self, narrow: Tree, identity: _Identity) -> bool:
        """Whether one that is not the same covers this one."""
        key, effect = narrow.get("key", ""), narrow.get("effect", "")
        operator = narrow.get("operator") or ""
        seconds = narrow.get("tolerationSeconds")
        least = inf if seconds is None else seconds
        for wide_effect in {effect, ""}:
            kinds = [(key, wide_effect, "Exists", ""), ("", wide_effect, "Exists", "")]
            if operator in ("", "Equal"):
                kinds.append((key, wide_effect, operator, narrow.get("value", "")))
            for kind in kinds:
                for most, known in self._found.get(kind, ()):
                    if most >= least and known != identity:
                        return True
        return False


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

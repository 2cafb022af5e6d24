"""Matchers from parsed selectors, shared between requests that ask the same.

Watchers with one matcher are judged together, so it matters that the same selector gives the same object.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from fastapi_core._ext.objects import CachedObject
from fastapi_core._ext.selector import Matcher
from fastapi_core.meta.selectors import FieldRequirement, Requirement

Extract = Callable[[CachedObject], dict[str, str]]
"""Selectable fields of an object; one long-lived function per resource, for objects keep its answer under it."""

#: Bounds of the memo: matchers, and characters of a selector worth keeping.
_MEMO_SIZE: Final = 1024
_MEMO_TEXT: Final = 2048


def matcher(
    labels: tuple[Requirement, ...], fields: tuple[FieldRequirement, ...], extract: Extract | None = None
) -> Matcher | None:
    """The matcher of a label and a field selector; None when they take everything."""
    if not labels and not fields:
        return None
    size = sum(len(r.key) + sum(map(len, r.values)) for r in labels) + sum(len(f.field) + len(f.value) for f in fields)
    return _memo(labels, fields, extract) if size <= _MEMO_TEXT else _make(labels, fields, extract)


def _make(labels: tuple[Requirement, ...], fields: tuple[FieldRequirement, ...], extract: Extract | None) -> Matcher:
    return Matcher(labels, fields, extract)


_memo = lru_cache(_MEMO_SIZE)(_make)

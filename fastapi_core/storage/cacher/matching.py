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


class Matchers:
    """The matchers of one resource. They are its own: what has no resource any more has no matchers either."""

    __slots__ = ("_extract", "_memo")

    def __init__(self, extract: Extract | None = None) -> None:
        self._extract = extract
        self._memo: Callable[..., Matcher] | None = None

    def of(self, labels: tuple[Requirement, ...], fields: tuple[FieldRequirement, ...]) -> Matcher | None:
        """The matcher of a label and a field selector; None when they take everything."""
        if not labels and not fields:
            return None
        size = sum(len(r.key) + sum(map(len, r.values)) for r in labels)
        size += sum(len(f.field) + len(f.value) for f in fields)
        if size > _MEMO_TEXT:
            return self._make(labels, fields)
        if self._memo is None:
            self._memo = lru_cache(_MEMO_SIZE)(self._make)
        return self._memo(labels, fields)

    def _make(self, labels: tuple[Requirement, ...], fields: tuple[FieldRequirement, ...]) -> Matcher:
        return Matcher(labels, fields, self._extract)

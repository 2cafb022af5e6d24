"""Label and field requirements compiled for matching many cached objects."""

from collections.abc import Iterable, Sequence
from typing import final

from fastapi_core._ext.objects import CachedObject

@final
class Matcher:
    """A conjunction of requirements over labels and selectable fields."""

    def __init__(
        self,
        labels: Iterable[tuple[str, str, tuple[str, ...]]],
        fields: Iterable[tuple[str, bool, str]],
        extract: object | None = None,
    ) -> None:
        """`labels`: (key, operator, values), operator one of in, notin, exists, !, gt, lt.
        `fields`: (field, equal?, value). `extract(obj) -> dict[str, str]` yields an object's selectable fields,
        kept in its memo."""
    def matches(self, obj: CachedObject) -> bool: ...
    def select(self, objects: Sequence[CachedObject]) -> list[CachedObject]: ...

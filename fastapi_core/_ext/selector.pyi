"""Label and field requirements compiled for matching many cached objects."""

from collections.abc import Callable, Iterable, Sequence
from typing import final

from fastapi_core._ext.objects import CachedObject

@final
class Matcher:
    """A conjunction of requirements over labels and selectable fields. Immutable; share it between requests."""

    def __init__(
        self,
        labels: Iterable[tuple[str, str, Iterable[str]]],
        fields: Iterable[tuple[str, str, str]],
        extract: Callable[[CachedObject], dict[str, str]] | None = None,
    ) -> None:
        """`labels`: (key, operator, values), operator one of in, notin, exists, !, gt, lt.
        `fields`: (field, operator, value), operator = or !=.
        `extract(obj)` yields an object's selectable fields; a field it does not give is empty. Objects remember its
        answer under the function, so the function should live long. metadata.name and metadata.namespace need none.

        Raises KeyError for another operator, ValueError when gt or lt has no integer."""
    def matches(self, obj: CachedObject) -> bool: ...
    def select(self, objects: Sequence[CachedObject]) -> list[CachedObject]: ...
    def select_page(self, objects: Sequence[CachedObject], limit: int) -> tuple[list[CachedObject], int]:
        """The first `limit` (0: all) matches and how many objects were looked at to find them."""
    def required(self, field: str) -> str | None:
        """The value a field must equal for an object to match, or None when no single requirement says so."""

def selectable_fields(obj: CachedObject, extract: Callable[[CachedObject], dict[str, str]]) -> dict[str, str]:
    """What `extract` says of an object, asked once and kept in its memo."""

def live() -> dict[str, int]:
    """How many objects of the module's classes exist now, by class name."""

"""Walks along structural schemas that most objects pass without a finding (see `fastapi_core/structural/`)."""

from collections.abc import Callable
from typing import Any, final

@final
class Clean:
    """Whether pruning would leave a value as it is.

    `make` gives the tables when it is first asked: walks of named members, of other members, of items. `preserve`: what
    has no schema stays; `drops_null`: a null here is dropped.
    """

    @property
    def embedded(self) -> bool: ...
    def __init__(
        self,
        make: Callable[[], tuple[dict[str, Clean], Clean | None, Clean | None]],
        *,
        embedded: bool,
        preserve: bool,
        drops_null: bool,
    ) -> None: ...
    def of_object(self, tree: dict[str, Any], embedded: bool) -> bool:
        """Nothing to prune in an object; `embedded`: it has metadata of its own. False leaves it to the exact walk."""

@final
class Defaults:
    """Fills in defaults in place.

    `make` gives, when it is first asked, the defaults of members (name, value, keeps null), the walks below them by
    name, that of items, and a function that completes what is not told so (or None).
    """

    def __init__(
        self,
        make: Callable[
            [],
            tuple[
                tuple[tuple[str, Any, bool], ...],
                tuple[tuple[str, Defaults], ...],
                Defaults | None,
                Callable[[Any], None] | None,
            ],
        ],
    ) -> None: ...
    def __call__(self, value: Any) -> None: ...

@final
class Entry:
    """How values with one schema are checked: those of type `kind` by `own` (None: all are good), integers must besides
    lie between `low` and `high` if these are given; all others by `full`."""

    def __init__(
        self,
        kind: type,
        own: Callable[[Any], bool] | None,
        full: Callable[[Any], bool],
        *,
        low: int | None = None,
        high: int | None = None,
    ) -> None: ...

@final
class Members:
    """The check of an object's members.

    `find` gives the entry of a name, None when it may be anything; it is asked once for each that is declared, and once
    for all others. `needed` are names that must be there.
    """

    def __init__(
        self, declared: dict[str, Any], find: Callable[[str], Entry | None], needed: tuple[str, ...]
    ) -> None: ...
    def __call__(self, value: Any) -> bool: ...

@final
class Items:
    """The check of a list's items; `make` gives their entry when there is a first one."""

    def __init__(self, make: Callable[[], Entry]) -> None: ...
    def __call__(self, value: Any) -> bool: ...

@final
class All:
    """Several checks of one value, one after another."""

    def __init__(self, *checks: Callable[[Any], bool]) -> None: ...
    def __call__(self, value: Any) -> bool: ...

def are_different(values: list[Any], name: str) -> bool:
    """Whether the strings of a list, or those that its objects have at a name (if it is not empty), are all different.
    False also where something else stands."""

"""Type-table driven normalisation of decoded JSON trees (see `fastapi_core/schema/normalize.py`)."""

from collections.abc import Callable, Iterable
from typing import Any, Final, final

STRING: Final[int]
BOOL: Final[int]
INT32: Final[int]
INT64: Final[int]
DOUBLE: Final[int]
BYTES: Final[int]
STRUCT: Final[int]
TIME: Final[int]
MICROTIME: Final[int]
QUANTITY: Final[int]
INT_OR_STRING: Final[int]
CONVERT: Final[int]
RAW: Final[int]
STRINGS: Final[int]
SCHEMA_OR_BOOL: Final[int]
SCHEMA_OR_SCHEMAS: Final[int]
SCHEMA_OR_STRINGS: Final[int]
SINGLE: Final[int]
LIST: Final[int]
MAP: Final[int]

class Mismatch(Exception):  # noqa: N818 - not an error until the caller says so
    """A JSON value that does not fit: what it is, the Go type wanted, and its field (innermost first)."""

    value: str
    wanted: str
    struct: str | None
    path: list[str]
    def __init__(self, value: str, wanted: str) -> None: ...

def describe(value: Any) -> str:
    """A JSON value as the reference's decoder names it: bool, string, number, object, array, null."""

@final
class FieldPlan:
    """One member of a struct.

    `op` and `card` say what it holds, `pointer` and `omit` (0 never, 1 empty, 2 also zero) when it is printed, `wanted`
    and `container` are the Go types of elements and whole, `convert` canonicalises a special form, `zero` is what a
    special form prints when unset, `make` gives the plan of a struct when it is first needed. `keep_empty`: an empty
    list or map stays one 1 where it would turn into null, 2 also where it would be left out.
    """

    @property
    def name(self) -> str: ...
    @property
    def index(self) -> int: ...
    def __init__(
        self,
        name: str,
        index: int,
        op: int,
        card: int,
        pointer: bool,
        omit: int,
        *,
        keep_empty: int = 0,
        wanted: str = "",
        container: str = "",
        convert: Callable[[Any], Any] | None = None,
        text: Callable[[str], str] | None = None,
        zero: Any = None,
        make: Callable[[], Plan] | None = None,
    ) -> None: ...

@final
class Plan:
    """One struct: its members by name, and those that are printed even when unset."""

    @property
    def name(self) -> str: ...
    def __init__(self, name: str, fields: Iterable[FieldPlan]) -> None:
        """`name` is the Go name of the struct; `fields` are its members in the order JSON prints them."""
    def run(
        self, tree: Any, share: bool = False, known: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], list[str]]:
        """(normalised tree, paths of unknown members, 100 at most); raises Mismatch, or ValueError for a text of the wrong form.

        With `share` the parts that are normal already are those of `tree`, for a caller to whom it belongs. Members of
        `tree` that are the very objects which `known`, a normal tree, has in their place are not looked at but shared
        (copied on the first level, unless `share` is set).
        """

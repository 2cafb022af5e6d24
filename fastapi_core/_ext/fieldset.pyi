"""Sets of field paths (`fastapi_core/patch/fieldset.py` says what one looks like) and the walks along shapes
(`fastapi_core/patch/shapes.py`). Nothing given is changed; results share what they can, and a result equal to what was
given is that very object."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, final

_FieldSet: TypeAlias = dict[str, Any]

LEAF: Final[_FieldSet]
"""A path of the set with nothing below; shared, never changed."""
SELF: Final[str]

@final
class _Absent:
    def __bool__(self) -> bool: ...

ABSENT: Final[_Absent]
"""Marks a member that amounts to nothing when it is missing, null being a value."""

class ItemError(ValueError):
    """A value that has no paths: a list item that cannot be told apart from the others, or one of the wrong kind."""

# Elements and sets

def rank(element: str) -> tuple[Any, ...]:
    """Sort key of an element: `.`, then fields, keys, values and places, each by content."""

def ordered(node: _FieldSet) -> _FieldSet:
    """The node with its elements in order."""

def union(left: _FieldSet, right: _FieldSet) -> _FieldSet:
    """Paths of either set."""

def covers(left: _FieldSet, right: _FieldSet) -> bool:
    """Whether every path of `right` is one of `left`."""

def intersection(left: _FieldSet, right: _FieldSet) -> _FieldSet:
    """Paths of both sets."""

def difference(left: _FieldSet, right: _FieldSet) -> _FieldSet:
    """Paths of the left set that are not in the right one; paths below a path of the right one stay."""

# Shapes

@final
class Member:
    """A named member of an object: its path element, its shape, and what a missing one amounts to (`ABSENT`: nothing).

    Structs that are no pointers are always there in the reference, so are lists and maps that print null when unset.
    """

    @property
    def element(self) -> str: ...
    @property
    def shape(self) -> Shape: ...
    @property
    def implied(self) -> Any: ...
    def __init__(self, name: str, shape: Shape, implied: Any = ...) -> None: ...

@final
class Shape:
    """See `fastapi_core/patch/shapes.py`. `scalar` names what a leaf must be: string, number, boolean, any (any scalar),
    whole (anything), object, list; `rest` is the shape of members without a name (of a map's values), None where there
    are none; `hidden` are members that are not looked at although `rest` would take them. `members` and `item` are made
    on first use. `identify` makes the path element of an item of a list, and raises ItemError for one without."""

    @property
    def kind(self) -> Any: ...
    @property
    def members(self) -> dict[str, Member]: ...
    @property
    def rest(self) -> Shape | None: ...
    @property
    def item(self) -> Any:
        """Shape of the items of a list. A leaf may have one, too, for those who ask whether a value fits: of the items
        of a list that is owned as a whole, of an object taken apart."""
    @property
    def keys(self) -> tuple[str, ...]: ...
    @property
    def sorted_keys(self) -> tuple[str, ...]: ...
    @property
    def defaults(self) -> dict[str, Any]: ...
    @property
    def scalar(self) -> str: ...
    @property
    def hidden(self) -> frozenset[str]: ...
    def __init__(
        self,
        kind: int,
        *,
        members: Callable[[], Mapping[str, Member]] | None = None,
        rest: Shape | None = None,
        item: Callable[[], Shape] | None = None,
        keys: tuple[str, ...] = (),
        defaults: Mapping[str, Any] | None = None,
        scalar: str = "whole",
        hidden: frozenset[str] = ...,
        identify: Callable[[Shape, Any], str] | None = None,
    ) -> None: ...
    def element(self, item: Any) -> str:
        """Path element of an item of a keyed list or a set; ItemError when it has none."""

# Walks

def field_set(shape: Shape, tree: dict[str, Any]) -> _FieldSet:
    """The paths of an object as an applied configuration owns them: leaves, items and empty objects."""

def names_just(shape: Shape, tree: dict[str, Any], fields: _FieldSet) -> bool:
    """Whether `field_set(shape, tree)` equals `fields`, found without making it. Not found for lists that repeat an item."""

def compare(shape: Shape, old: dict[str, Any], new: dict[str, Any]) -> tuple[_FieldSet, _FieldSet]:
    """(paths added or changed, paths removed) on the way from one object to another."""

def same(left: Any, right: Any) -> bool:
    """Equality of JSON values, to which true is not 1."""

def merge(shape: Shape, current: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """The object with everything the configuration says: members merged, list items matched, single values replaced."""

def remove(shape: Shape, tree: dict[str, Any], gone: _FieldSet) -> dict[str, Any]:
    """The object without the values at some paths. An object or list that loses everything becomes null."""

def with_named(shape: Shape, fields: _FieldSet) -> _FieldSet:
    """The set with every struct member on the way to a path of it; keys of maps are left as they are."""

def reconciled(shape: Shape, fields: _FieldSet) -> _FieldSet:
    """The set after the type has changed: who owned parts of what is one value now owns that value."""

def conforms(shape: Shape, tree: dict[str, Any]) -> bool:
    """Whether an applied configuration fits its shape (`patch/conform.py` finds the words when it does not)."""

"""Types of expressions and the rules by which one fits another.

A type that comes from a schema carries its declaration (`decl`), which says what the fields are called, how large values
may get and how the JSON form becomes a value. Declarations take no part in comparisons of types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fastapi_core.cel.decls import Decl

BOOL_KIND: Final = "bool"
LIST: Final = "list"
MAP: Final = "map"
STRUCT: Final = "struct"
OPAQUE: Final = "opaque"
PARAM: Final = "param"
TYPE: Final = "type"
DYN_KIND: Final = "dyn"
ERROR_KIND: Final = "error"
NULL_KIND: Final = "null_type"


class Type:
    """A type: `kind` one of the constants or a primitive's name, `name` for structs, opaque types and parameters."""

    __slots__ = ("decl", "kind", "name", "params")

    def __init__(self, kind: str, name: str = "", params: tuple[Type, ...] = (), decl: Decl | None = None) -> None:
        self.kind = kind
        self.name = name or kind
        self.params = params
        self.decl = decl

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Type)
            and self.kind == other.kind
            and self.name == other.name
            and self.params == other.params
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.name, self.params))

    def __str__(self) -> str:
        """As the reference prints types in messages about results."""
        if self.kind == PARAM:
            return self.name
        if self.params:
            return f"{self.name}({', '.join(map(str, self.params))})"
        return self.name

    __repr__ = __str__

    def declared(self, decl: Decl) -> Type:
        """The same type with a declaration."""
        return Type(self.kind, self.name, self.params, decl)


BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
NULL: Final = Type(NULL_KIND)
DYN: Final = Type(DYN_KIND)
ANY: Final = Type(DYN_KIND, "any")
ERROR: Final = Type(ERROR_KIND, "!error!")
TIMESTAMP: Final = Type("timestamp", "google.protobuf.Timestamp")
DURATION: Final = Type("duration", "google.protobuf.Duration")
TYPE_TYPE: Final = Type(TYPE)


def list_of(element: Type, decl: Decl | None = None) -> Type:
    return Type(LIST, LIST, (element,), decl)


def map_of(key: Type, value: Type, decl: Decl | None = None) -> Type:
    return Type(MAP, MAP, (key, value), decl)


def optional_of(value: Type) -> Type:
    return Type(OPAQUE, "optional_type", (value,))


def type_of(value: Type) -> Type:
    return Type(TYPE, TYPE, (value,))


def struct(name: str, decl: Decl | None = None) -> Type:
    return Type(STRUCT, name, (), decl)


def param(name: str) -> Type:
    return Type(PARAM, name)


_SHOWN: Final = {"timestamp": "timestamp", "duration": "duration", NULL_KIND: "null", ERROR_KIND: "!error!"}


def show(kind: Type) -> str:
    """A type in the messages of the checker."""
    fixed = _SHOWN.get(kind.kind)
    if fixed is not None:
        return fixed
    if kind.params:
        return f"{kind.name}({', '.join(map(show, kind.params))})"
    return kind.name


def is_dyn(kind: Type) -> bool:
    return kind.kind == DYN_KIND


def is_dyn_or_error(kind: Type) -> bool:
    return kind.kind in (DYN_KIND, ERROR_KIND)


def is_optional(kind: Type) -> bool:
    return kind.kind == OPAQUE and kind.name == "optional_type"


Mapping_ = dict[str, Type]
_NULLABLE: Final = frozenset((OPAQUE, STRUCT, "timestamp", "duration"))
_CONTAINERS: Final = frozenset((OPAQUE, LIST, MAP))


def assignable(bound: Mapping_, left: Type, right: Type) -> Mapping_ | None:
    """The bindings of type parameters under which `left` fits `right`; None when it does not."""
    attempt = dict(bound)
    return attempt if _fits(attempt, left, right) else None


def all_assignable(bound: Mapping_, left: list[Type], right: list[Type]) -> Mapping_ | None:
    attempt = dict(bound)
    return attempt if _all_fit(attempt, left, right) else None


def _all_fit(bound: Mapping_, left: list[Type] | tuple[Type, ...], right: list[Type] | tuple[Type, ...]) -> bool:
    return len(left) == len(right) and all(_fits(bound, a, b) for a, b in zip(left, right, strict=True))


def _fits(bound: Mapping_, left: Type, right: Type) -> bool:
    if right.kind == PARAM:
        valid, known = _binds(bound, left, right)
        if valid:
            return True
        if known:
            return False
    if left.kind == PARAM:
        return _binds(bound, right, left)[0]
    if is_dyn_or_error(left) or is_dyn_or_error(right):
        return True
    if left.kind == NULL_KIND:
        return right.kind in _NULLABLE or right.kind == NULL_KIND
    if right.kind == NULL_KIND:
        return left.kind in _NULLABLE
    if left.kind == TYPE:
        return right.kind == TYPE
    if left.kind in _CONTAINERS:
        return left.kind == right.kind and left.name == right.name and _all_fit(bound, left.params, right.params)
    return left.kind == right.kind and left.name == right.name


def _binds(bound: Mapping_, kind: Type, parameter: Type) -> tuple[bool, bool]:
    """(may `parameter` stand for `kind`, was it bound before)."""
    if kind == parameter:
        return True, True
    current = bound.get(parameter.name)
    if current is not None:
        if kind == current:
            return True, True
        if _fits(bound, kind, current):
            wider = most_general(kind, current)
            if _absent(bound, parameter, wider):
                bound[parameter.name] = wider
            return True, True
        return False, True
    if _absent(bound, parameter, kind):
        bound[parameter.name] = kind
        return True, False
    return False, False


def _absent(bound: Mapping_, parameter: Type, kind: Type) -> bool:
    """Whether a parameter does not occur in a type."""
    if parameter == kind:
        return False
    if kind.kind == PARAM:
        current = bound.get(kind.name)
        return current is None or _absent(bound, parameter, current)
    return all(_absent(bound, parameter, inner) for inner in kind.params)


def most_general(left: Type, right: Type) -> Type:
    return left if _less_specific(left, right) else right


def _less_specific(left: Type, right: Type) -> bool:
    if is_dyn(left) or left.kind == PARAM:
        return True
    if is_dyn(right) or right.kind == PARAM or left.kind != right.kind:
        return False
    if left.kind in _CONTAINERS:
        return (
            left.name == right.name
            and len(left.params) == len(right.params)
            and all(_less_specific(a, b) for a, b in zip(left.params, right.params, strict=True))
        )
    return left.kind == TYPE or left == right


def substitute(bound: Mapping_, kind: Type, *, close: bool = False) -> Type:
    """A type with its parameters replaced; those without a binding become dyn when `close`."""
    if kind.kind == PARAM:
        current = bound.get(kind.name)
        if current is not None:
            return substitute(bound, current, close=close)
        return DYN if close else kind
    if not kind.params:
        return kind
    params = tuple(substitute(bound, inner, close=close) for inner in kind.params)
    if all(a is b for a, b in zip(params, kind.params, strict=True)):
        return kind
    return Type(kind.kind, kind.name, params, kind.decl)

"""Data classes that cost next to nothing to declare.

`dataclasses.dataclass` writes the methods of every class as source text and compiles them where the class is declared: a
quarter of what a start took. The one here takes the same declaration. Its classes share their methods, but for
`__init__`, which has to be fast and is written when the first object is made.

Type checkers see the original, and `dataclasses.field`, `fields` and `replace` work as they do there. Not supported are
data classes without slots or that inherit from each other, order, `init=False`, `InitVar` and `__post_init__`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn

_MISSING = dataclasses.MISSING


def _decorator(cls: Any = None, /, **options: bool) -> Any:
    """Make a data class. Options: `slots`, which has to be True, `frozen`, `eq` and `kw_only`."""
    if cls is None:
        return lambda cls: _made(cls, **options)
    return _made(cls, **options)


class _Record:
    """What the shared methods know of a class."""

    __slots__ = ("defaults", "fields", "frozen", "kw_only", "names", "owner", "types")

    def __init__(self, types: dict[str, Any], defaults: dict[str, Any], frozen: bool, kw_only: bool) -> None:
        self.names = tuple(types)
        self.types = types
        self.defaults = defaults
        """By name: a value or what `dataclasses.field` has made."""
        self.frozen = frozen
        self.kw_only = kw_only
        self.fields: dict[str, Any] | None = None
        self.owner: Any = None
        """The class."""

    def key(self) -> Callable[[Any], Any]:
        """What makes of an object the value by which it is compared."""
        compared = [name for name in self.names if getattr(self.defaults.get(name), "compare", True)]
        return attrgetter(*compared) if compared else lambda instance: ()


def _made(cls: Any, *, slots: bool = False, frozen: bool = False, eq: bool = True, kw_only: bool = False) -> type:
    if not slots:
        raise TypeError(f"{cls.__qualname__}: slots=True is needed")
    if any(hasattr(base, "__dataclass_fields__") for base in cls.__mro__[1:]):
        raise TypeError(f"{cls.__qualname__}: data classes do not inherit from each other here")
    members = dict(cls.__dict__)
    if "__post_init__" in members:
        raise TypeError(f"{cls.__qualname__}: __post_init__ is not called here")
    declared = members.get("__annotations__", {})
    types = {name: kind for name, kind in declared.items() if "ClassVar" not in str(kind)}
    record = _Record(types, {name: members.pop(name) for name in types if name in members}, frozen, kw_only)
    for name in ("__dict__", "__weakref__"):
        members.pop(name, None)
    members["__slots__"] = record.names
    members["__record__"] = record
    members["__dataclass_fields__"] = _FIELDS
    members["__init__"] = _first_init(record)
    members.setdefault("__match_args__", () if kw_only else record.names)
    members.setdefault("__repr__", _repr)
    if frozen:
        members.update(_FROZEN)
    if eq:
        key = record.key()
        members.setdefault("__eq__", _eq_by(key))
        if frozen:
            # A class body with an __eq__ and no __hash__ has None here.
            members["__hash__"] = members.get("__hash__") or _hash_by(key)
    made: type = type(cls)(cls.__name__, cls.__bases__, members)
    made.__qualname__ = cls.__qualname__
    record.owner = made
    return made


# --- the constructor --------------------------------------------------------------------------------------------------


#: Objects that are made before a constructor is written: most classes have one or two.
_UNWRITTEN = 2


def _first_init(record: _Record) -> Callable[..., None]:
    count = 0

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        nonlocal count
        count += 1
        if count <= _UNWRITTEN and _filled(self, record, args, kwargs):
            return
        # Who calls it wrongly hears it in the words of the language.
        made = record.owner.__init__ = _written_init(record.owner, record)
        made(self, *args, **kwargs)

    return __init__


def _filled(self: Any, record: _Record, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Set all fields; False when these are not arguments of the constructor, or it would not be written."""
    names = record.names
    given = dict(zip(names, args, strict=False))
    if len(args) > len(names) or (args and record.kw_only) or not given.keys().isdisjoint(kwargs):
        return False
    given |= kwargs
    if not record.types.keys() >= given.keys():
        return False
    for name in names:
        if name not in given:
            default, factory = _default(record, name)
            if factory is not _MISSING:
                given[name] = factory()
            elif default is _MISSING or type(default).__hash__ is None:
                return False
            else:
                given[name] = default
    # Past derived classes, which may have a property of the name.
    slots = record.owner.__dict__
    for name in names:
        slots[name].__set__(self, given[name])
    return True


def _written_init(owner: Any, record: _Record) -> Callable[..., None]:
    """The constructor as the original would write it."""
    known: dict[str, Any] = {"_missing": _MISSING}
    parameters, lines = [], []
    for place, name in enumerate(record.names):
        default, factory = _default(record, name)
        value, parameter = name, name
        if factory is not _MISSING:
            known[f"_new{place}"] = factory
            value = f"_new{place}() if {name} is _missing else {name}"
            parameter = f"{name}=_missing"
        elif default is not _MISSING:
            if type(default).__hash__ is None:
                raise ValueError(f"{owner.__qualname__}: mutable default of {name}, use a default_factory")
            known[f"_default{place}"] = default
            parameter = f"{name}=_default{place}"
        parameters.append(parameter)
        if record.frozen:
            known[f"_set{place}"] = owner.__dict__[name].__set__
            lines.append(f"  _set{place}(self, {value})")
        else:
            lines.append(f"  self.{name} = {value}")
    head = ["self", "*"] if record.kw_only and parameters else ["self"]
    text = [f"def make({', '.join(known)}):", f" def __init__({', '.join([*head, *parameters])}):"]
    scope: dict[str, Any] = {"__name__": owner.__module__}
    # As in the original: names of fields are all that is not written here.
    exec("\n".join([*text, *(lines or ["  pass"]), " return __init__"]), scope)
    made: Callable[..., None] = scope["make"](**known)
    made.__qualname__ = f"{owner.__qualname__}.__init__"
    made.__annotations__ = {**record.types, "return": None}
    return made


def _default(record: _Record, name: str) -> tuple[Any, Any]:
    """Default and factory of a field."""
    given = record.defaults.get(name, _MISSING)
    return (given.default, given.default_factory) if isinstance(given, dataclasses.Field) else (given, _MISSING)


# --- what `dataclasses` asks for --------------------------------------------------------------------------------------


class _Fields:
    """`__dataclass_fields__`, by which the functions of `dataclasses` know their classes; made when they ask."""

    __slots__ = ()

    def __get__(self, instance: Any, owner: Any) -> dict[str, Any]:
        record: _Record = owner.__record__
        if record.fields is None:
            record.fields = {name: _field(record, name) for name in record.names}
        return record.fields


def _field(record: _Record, name: str) -> Any:
    given = record.defaults.get(name, _MISSING)
    found: Any = given if isinstance(given, dataclasses.Field) else dataclasses.field(default=given)
    found.name = name
    found.type = record.types[name]
    found.kw_only = record.kw_only
    found._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
    return found


# --- the other methods ------------------------------------------------------------------------------------------------


@recursive_repr()
def _repr(self: Any) -> str:
    return f"{type(self).__qualname__}({', '.join(_shown(self))})"


def _shown(self: Any) -> Iterator[str]:
    record: _Record = self.__record__
    for name in record.names:
        if getattr(record.defaults.get(name), "repr", True):
            yield f"{name}={getattr(self, name)!r}"


def _eq_by(key: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def __eq__(self: Any, other: Any) -> Any:  # noqa: N807
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash_by(key: Callable[[Any], Any]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(key(self))

    return __hash__


def _set_frozen(self: Any, name: str, value: Any) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete_frozen(self: Any, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__record__.names]


def _restore(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__record__.names, state, strict=True):
        object.__setattr__(self, name, value)


_FIELDS = _Fields()
_FROZEN = {
    "__setattr__": _set_frozen, "__delattr__": _delete_frozen, "__getstate__": _state, "__setstate__": _restore,
}  # fmt: skip

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _decorator

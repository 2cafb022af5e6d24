"""Annotations as schemas, and values to what stands in a tree and back."""

from __future__ import annotations

import base64
import collections.abc
import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from fastapi_core.extension.models.base import ANYTHING, PRESERVE, LoadError, ModelError, Tree
from fastapi_core.extension.objects import QUANTITY, Field, Quantity
from fastapi_core.meta import time as clock
from fastapi_core.records import dataclass

#: Go's durations, as Kubernetes writes and reads them.
DURATION: Final = r"^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
_EITHER: Final = [{"type": "integer"}, {"type": "string"}]
_INT_OR_STRING: Final[Tree] = {"x-kubernetes-int-or-string": True, "anyOf": _EITHER}
DURATION_SCHEMA: Final[Tree] = {"type": "string", "pattern": DURATION}
_LISTS: Final = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Set)
_MAPS: Final = (dict, Mapping, collections.abc.MutableMapping)


def same(value: Any) -> Any:
    """What stands in a tree as it is."""
    return value


@dataclass(frozen=True, slots=True)
class Codec:
    """One annotation: its schema, and both directions. `name` is one given by `Field(name=...)`; `emptiable` tells that
    there are empty values, which say no more than none."""

    schema: Tree
    load: Callable[[Any], Any] = same
    dump: Callable[[Any], Any] = same
    structure: bool = False
    name: str = ""
    emptiable: bool = False


def _time(value: datetime) -> str:
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return clock.format_micro(value) if value.microsecond else clock.format_time(value)


def duration_of(value: timedelta) -> str:
    """In Go's form."""
    return clock.format_duration(round(value / timedelta(microseconds=1)) * 1000)


def timedelta_of(text: str) -> timedelta:
    """Of Go's form; ValueError for anything else."""
    return timedelta(microseconds=clock.parse_duration(text) / 1000)


_SCALARS: Final[dict[Any, Codec]] = {
    str: Codec({"type": "string"}, emptiable=True),
    bool: Codec({"type": "boolean"}),
    int: Codec({"type": "integer", "format": "int64"}),
    float: Codec({"type": "number", "format": "double"}, float, float),
    bytes: Codec(
        {"type": "string", "format": "byte"},
        base64.b64decode,
        lambda raw: base64.b64encode(raw).decode(),
        emptiable=True,
    ),
    datetime: Codec({"type": "string", "format": "date-time"}, clock.parse, _time),
    date: Codec({"type": "string", "format": "date"}, date.fromisoformat, date.isoformat),
    timedelta: Codec(dict(DURATION_SCHEMA), timedelta_of, duration_of),
    Quantity: Codec({**_INT_OR_STRING, "pattern": QUANTITY}, lambda value: Quantity(value), str, emptiable=True),
    Any: Codec(dict(ANYTHING)),
    object: Codec(dict(ANYTHING)),
    dict: Codec({"type": "object", PRESERVE: True}, dict, dict, emptiable=True),
    list: Codec({"type": "array", "items": dict(ANYTHING)}, list, list, emptiable=True),
}


class Codecs:
    """Codecs of annotations; `structure` makes those of dataclasses."""

    def __init__(self, structure: Callable[[type], Codec]) -> None:
        self._structure = structure

    def of(self, hint: Any) -> Codec:
        """Raises ModelError for an annotation that no schema stands for."""
        known = _SCALARS.get(hint) if isinstance(hint, collections.abc.Hashable) else None
        if known is not None:
            return known
        if isinstance(hint, typing.NewType):
            return self.of(hint.__supertype__)
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return _annotated(self.of(arguments[0]), arguments[1:])
        if origin is Literal:
            return _choice([*arguments])
        if origin in (Union, types.UnionType):
            return self._union([argument for argument in arguments if argument is not type(None)])
        if origin in _LISTS:
            return self._list(origin, arguments)
        if origin in _MAPS:
            return self._map(arguments)
        if isinstance(hint, type):
            return self._class(hint)
        raise ModelError(f"{hint!r} has no schema")

    def _class(self, hint: type) -> Codec:
        if dataclasses.is_dataclass(hint):
            return self._structure(hint)
        if issubclass(hint, enum.Enum):
            codec = _choice([member.value for member in hint])
            return Codec(codec.schema, hint, lambda member: hint(member).value)
        if issubclass(hint, str):
            return Codec({"type": "string"}, hint, str, emptiable=True)
        raise ModelError(f"{hint.__name__} has no schema: use a dataclass, or Any for an object of any form")

    def _union(self, members: list[Any]) -> Codec:
        if len(members) == 1:
            return self.of(members[0])
        if set(members) == {int, str}:
            return Codec(dict(_INT_OR_STRING))
        names = " | ".join(getattr(member, "__name__", repr(member)) for member in members)
        raise ModelError(f"{names} has no schema: one type and None, or int | str")

    def _list(self, origin: Any, arguments: tuple[Any, ...]) -> Codec:
        if origin is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis):
            raise ModelError("tuples of a fixed length have no schema, use tuple[X, ...]")
        item = self.of(arguments[0])
        make: Callable[[Any], Any] = origin if isinstance(origin, type) and origin in (tuple, set, frozenset) else list
        unique = origin in (set, frozenset, collections.abc.Set)
        schema: Tree = {"type": "array", "items": item.schema}
        if unique:
            schema["x-kubernetes-list-type"] = "set"
        load, dump = item.load, item.dump
        whole = (lambda value: make(value)) if load is same else (lambda value: make(_items(load, value)))
        if unique:
            return Codec(schema, whole, lambda value: sorted(map(dump, value)), emptiable=True)
        return Codec(schema, whole, lambda value: [dump(one) for one in value], emptiable=True)

    def _map(self, arguments: tuple[Any, ...]) -> Codec:
        key, value = arguments
        if not (isinstance(key, type) and issubclass(key, str)):
            raise ModelError("keys of maps are strings")
        item = self.of(value)
        load, dump = item.load, item.dump
        return Codec(
            {"type": "object", "additionalProperties": item.schema},
            dict if load is same else lambda found: _values(load, found),
            dict if dump is same else lambda found: {name: dump(one) for name, one in found.items()},
            emptiable=True,
        )


def _items(load: Callable[[Any], Any], value: list[Any]) -> list[Any]:
    made: list[Any] = []
    try:
        for one in value:
            made.append(load(one))
    except Exception as error:
        raise LoadError.of(error, value[len(made)], len(made)) from error
    return made


def _values(load: Callable[[Any], Any], found: Tree) -> Tree:
    made: Tree = {}
    name = ""
    try:
        for name, one in found.items():
            made[name] = load(one)
    except Exception as error:
        raise LoadError.of(error, found[name], name) from error
    return made


def _choice(values: list[Any]) -> Codec:
    kinds = {type(value) for value in values}
    if kinds == {str}:
        return Codec({"type": "string", "enum": values})
    if kinds == {int}:
        return Codec({"type": "integer", "format": "int64", "enum": values})
    raise ModelError("values of a choice are all strings or all whole numbers")


def _annotated(codec: Codec, notes: tuple[Any, ...]) -> Codec:
    schema, name = codec.schema, codec.name
    for note in notes:
        if isinstance(note, Field):
            schema = {**schema, **note.keywords()}
            name = note.name or name
            if note.list_keys:
                schema["items"] = keyed(schema.get("items") or {}, note.list_keys)
        elif isinstance(note, str):
            schema = {**schema, "description": note}
    return dataclasses.replace(codec, schema=schema, name=name)


def keyed(item: Tree, keys: tuple[str, ...]) -> Tree:
    """Items of a list that is merged by keys: keys are required unless they have defaults."""
    properties = item.get("properties") or {}
    unknown = [key for key in keys if key not in properties]
    if unknown:
        raise ModelError(f"list_keys names {', '.join(unknown)}, which items do not have")
    lacking = [key for key in keys if "default" not in properties[key]]
    return {**item, "required": list(dict.fromkeys([*(item.get("required") or ()), *lacking]))}

"""The standard functions and operators of the language."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from fastapi_core.cel import times, values
from fastapi_core.cel.errors import EvalError, no_overload
from fastapi_core.cel.functions import Library, library
from fastapi_core.cel.regex import search
from fastapi_core.cel.values import Duration, Optional, Timestamp, TypeValue, UInt
from fastapi_core.errors import go_float

_INT_TEXT: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_UINT_TEXT: Final = re.compile(r"[0-9]+", re.ASCII)
_FLOAT_TEXT: Final = re.compile(
    r"[+-]?(?:[0-9]+(?:_?[0-9])*\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)",
    re.ASCII | re.IGNORECASE,
)
_TRUE: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "false", "FALSE", "False"))
_DIGITS: Final = 64


def _bad(kind: str, wanted: str) -> EvalError:
    return EvalError(f"type conversion error from '{kind}' to '{wanted}'")


def to_int(value: Any) -> int:
    kind = type(value)
    if kind is int:
        return int(value)
    if kind is UInt:
        return values.checked_int(int(value))
    if kind is float:
        if not -(2.0**63) < value < 2.0**63:
            raise EvalError("integer overflow")
        return int(value)
    if kind is str and _INT_TEXT.fullmatch(value) and len(value) <= _DIGITS:
        number = int(value)
        if values.INT_MIN <= number <= values.INT_MAX:
            return number
    if kind is str:
        raise _bad("string", "int")
    if kind is Timestamp:
        return int(value.nanos // 10**9)
    if kind is Duration:
        return int(value.nanos)
    raise no_overload(f"int({values.type_name(value)})")


def to_uint(value: Any) -> UInt:
    kind = type(value)
    if kind is UInt:
        return UInt(value)
    if kind is int:
        return values.checked_uint(value)
    if kind is float:
        if not 0 <= value < 2.0**64:
            raise EvalError("unsigned integer overflow")
        return UInt(int(value))
    if kind is str:
        if _UINT_TEXT.fullmatch(value) and len(value) <= _DIGITS and int(value) <= values.UINT_MAX:
            return UInt(int(value))
        raise _bad("string", "uint")
    raise no_overload(f"uint({values.type_name(value)})")


def to_double(value: Any) -> float:
    kind = type(value)
    if kind is float or kind is int or kind is UInt:
        return float(value)
    if kind is str:
        if not _FLOAT_TEXT.fullmatch(value):
            raise _bad("string", "double")
        number = float(value)
        if abs(number) == float("inf") and "inf" not in value.lower():
            raise _bad("string", "double")
        return number
    raise no_overload(f"double({values.type_name(value)})")


def to_bool(value: Any) -> bool:
    if type(value) is bool:
        return value
    if type(value) is str and value in _TRUE:
        return True
    if type(value) is str and value in _FALSE:
        return False
    if type(value) is not str:
        raise no_overload(f"bool({values.type_name(value)})")
    raise _bad("string", "bool")


def to_bytes(value: Any) -> bytes:
    if type(value) not in (bytes, str):
        raise no_overload(f"bytes({values.type_name(value)})")
    return value if type(value) is bytes else value.encode()


def to_string(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is UInt:
        return str(int(value))
    if kind is float:
        return go_float(value)
    if kind is bytes:
        try:
            return value.decode()  # type: ignore[no-any-return]
        except UnicodeDecodeError:
            raise EvalError("invalid UTF-8 in bytes, cannot convert to string") from None
    if kind is Timestamp:
        return times.format_timestamp(value)
    if kind is Duration:
        return times.format_duration(value)
    raise no_overload(f"string({values.type_name(value)})")


def to_duration(value: Any) -> Duration:
    if type(value) is Duration:
        return value
    if type(value) is int:
        raise _bad("int", "google.protobuf.Duration")
    try:
        return times.parse_duration(value)
    except ValueError:
        raise _bad("string", "google.protobuf.Duration") from None


def to_timestamp(value: Any) -> Timestamp:
    kind = type(value)
    if kind is Timestamp:
        return value  # type: ignore[no-any-return]
    if kind is int:
        return values.timestamp(value * 10**9)
    try:
        return times.parse_timestamp(value)
    except ValueError:
        raise _bad("string", "google.protobuf.Timestamp") from None


def to_type(value: Any) -> TypeValue:
    return TypeValue(values.type_name(value))


def _same(value: Any) -> Any:
    return value


def _in_list(item: Any, items: Any) -> bool:
    return values.contains(items, item)


def _in_map(item: Any, entries: Any) -> bool:
    if type(item) is str:
        return item in entries
    try:
        return values.key_of(item) in entries
    except EvalError:
        return False


def contained(item: Any, container: Any) -> bool:
    """`in` for values of any type."""
    if isinstance(container, dict):
        return _in_map(item, container)
    if isinstance(container, list):
        return _in_list(item, container)
    raise no_overload()


def _less(left: Any, right: Any) -> bool:
    return values.compare(left, right, "_<_") < 0


def _less_equal(left: Any, right: Any) -> bool:
    return values.compare(left, right, "_<=_") <= 0


def _greater(left: Any, right: Any) -> bool:
    return values.compare(left, right, "_>_") > 0


def _greater_equal(left: Any, right: Any) -> bool:
    return values.compare(left, right, "_>=_") >= 0


def _not_equal(left: Any, right: Any) -> bool:
    return not values.equal(left, right)


def invert(value: Any) -> bool:
    if type(value) is not bool:
        raise no_overload()
    return not value


#: Operators by name, for values of any type.
GENERIC: Final[dict[str, Callable[..., Any]]] = {
    "_+_": values.add,
    "_-_": values.subtract,
    "_*_": values.multiply,
    "_/_": values.divide,
    "_%_": values.modulo,
    "-_": values.negate,
    "!_": invert,
    "_<_": _less,
    "_<=_": _less_equal,
    "_>_": _greater,
    "_>=_": _greater_equal,
    "_==_": values.equal,
    "_!=_": _not_equal,
    "@in": contained,
    "size": values.size,
    "type": to_type,
    "dyn": _same,
    "_[_]": values.index,
    "_[?_]": values.find,
}

_ORDERED: Final = ("bool", "int64", "uint64", "double", "string", "bytes", "timestamp", "duration")
_TYPES: Final = {"int64": "int", "uint64": "uint"}
_CROSS: Final = (
    ("int64", "double"),
    ("int64", "uint64"),
    ("uint64", "double"),
    ("uint64", "int64"),
    ("double", "int64"),
    ("double", "uint64"),
)


def _comparison(name: str, function: str) -> list[tuple[str, None]]:
    entries: list[tuple[str, None]] = []
    for kind in _ORDERED:
        shown = _TYPES.get(kind, kind)
        entries.append((f"{name}_{kind} {function}({shown}, {shown}) -> bool", None))
    for left, right in _CROSS:
        entries.append(
            (f"{name}_{left}_{right} {function}({_TYPES.get(left, left)}, {_TYPES.get(right, right)}) -> bool", None)
        )
    return entries


def _arithmetic(name: str, function: str, kinds: tuple[str, ...]) -> list[tuple[str, None]]:
    shown = [(kind, _TYPES.get(kind, kind)) for kind in kinds]
    return [(f"{name}_{kind} {function}({text}, {text}) -> {text}", None) for kind, text in shown]


_OPERATORS: Final[list[tuple[str, Any]]] = [
    ("conditional _?_:_(bool, A, A) -> A", None),
    ("logical_and _&&_(bool, bool) -> bool", None),
    ("logical_or _||_(bool, bool) -> bool", None),
    ("logical_not !_(bool) -> bool", None),
    ("not_strictly_false @not_strictly_false(bool) -> bool", None),
    ("equals _==_(A, A) -> bool", None),
    ("not_equals _!=_(A, A) -> bool", None),
    *_arithmetic("add", "_+_", ("bytes", "double")),
    ("add_duration_duration _+_(duration, duration) -> duration", None),
    ("add_duration_timestamp _+_(duration, timestamp) -> timestamp", None),
    ("add_timestamp_duration _+_(timestamp, duration) -> timestamp", None),
    *_arithmetic("add", "_+_", ("int64",)),
    ("add_list _+_(list(A), list(A)) -> list(A)", None),
    *_arithmetic("add", "_+_", ("string", "uint64")),
    *_arithmetic("divide", "_/_", ("double", "int64", "uint64")),
    *_arithmetic("modulo", "_%_", ("int64", "uint64")),
    *_arithmetic("multiply", "_*_", ("double", "int64", "uint64")),
    ("negate_double -_(double) -> double", None),
    ("negate_int64 -_(int) -> int", None),
    *_arithmetic("subtract", "_-_", ("double",)),
    ("subtract_duration_duration _-_(duration, duration) -> duration", None),
    *_arithmetic("subtract", "_-_", ("int64",)),
    ("subtract_timestamp_duration _-_(timestamp, duration) -> timestamp", None),
    ("subtract_timestamp_timestamp _-_(timestamp, timestamp) -> duration", None),
    *_arithmetic("subtract", "_-_", ("uint64",)),
    *_comparison("less", "_<_"),
    *_comparison("less_equals", "_<=_"),
    *_comparison("greater", "_>_"),
    *_comparison("greater_equals", "_>=_"),
    ("index_list _[_](list(A), int) -> A", None),
    ("index_map _[_](map(A, B), A) -> B", None),
    ("in_list @in(A, list(A)) -> bool", _in_list),
    ("in_map @in(A, map(A, B)) -> bool", _in_map),
]

_CONVERSIONS: Final[list[tuple[str, Any]]] = [
    ("type type(A) -> type(A)", to_type),
    ("bool_to_bool bool(bool) -> bool", to_bool),
    ("string_to_bool bool(string) -> bool", to_bool),
    ("bytes_to_bytes bytes(bytes) -> bytes", to_bytes),
    ("string_to_bytes bytes(string) -> bytes", to_bytes),
    *[
        (f"{kind}_to_double double({text}) -> double", to_double)
        for kind, text in (("double", "double"), ("int64", "int"), ("string", "string"), ("uint64", "uint"))
    ],
    ("duration_to_duration duration(duration) -> duration", to_duration),
    ("int64_to_duration duration(int) -> duration", to_duration),
    ("string_to_duration duration(string) -> duration", to_duration),
    ("to_dyn dyn(A) -> dyn", _same),
    *[
        (f"{kind}_to_int64 int({text}) -> int", to_int)
        for kind, text in (
            ("int64", "int"),
            ("double", "double"),
            ("duration", "duration"),
            ("string", "string"),
            ("timestamp", "timestamp"),
            ("uint64", "uint"),
        )
    ],
    *[
        (f"{kind}_to_string string({text}) -> string", to_string)
        for kind, text in (
            ("string", "string"),
            ("bool", "bool"),
            ("bytes", "bytes"),
            ("double", "double"),
            ("duration", "duration"),
            ("int64", "int"),
            ("timestamp", "timestamp"),
            ("uint64", "uint"),
        )
    ],
    ("timestamp_to_timestamp timestamp(timestamp) -> timestamp", to_timestamp),
    ("int64_to_timestamp timestamp(int) -> timestamp", to_timestamp),
    ("string_to_timestamp timestamp(string) -> timestamp", to_timestamp),
    *[
        (f"{kind}_to_uint64 uint({text}) -> uint", to_uint)
        for kind, text in (("uint64", "uint"), ("double", "double"), ("int64", "int"), ("string", "string"))
    ],
]

_SIZES: Final[list[tuple[str, Any]]] = [
    entry
    for name, text in (("bytes", "bytes"), ("list", "list(A)"), ("map", "map(A, B)"), ("string", "string"))
    for entry in ((f"size_{name} size({text}) -> int", len), (f"{name}_size {text}::size() -> int", len))
]


def _contains_text(text: Any, part: str) -> bool:
    if type(text) is not str:
        raise no_overload()
    return part in text


_TEXTS: Final[list[tuple[str, Any]]] = [
    ("contains_string string::contains(string) -> bool", _contains_text),
    ("ends_with_string string::endsWith(string) -> bool", str.endswith),
    ("starts_with_string string::startsWith(string) -> bool", str.startswith),
    ("matches matches(string, string) -> bool", search),
    ("matches_string string::matches(string) -> bool", search),
]


def _clock(name: str, identifier: str, get: Any, span: Any = None) -> list[tuple[str, Any]]:
    entries = [
        (f"timestamp_to_{identifier} timestamp::{name}() -> int", get),
        (f"timestamp_to_{identifier}_with_tz timestamp::{name}(string) -> int", get),
    ]
    if span is not None:
        entries.append((f"duration_to_{identifier} duration::{name}() -> int", span))
    return entries


_TIMES: Final = [
    *_clock("getFullYear", "year", times.full_year),
    *_clock("getMonth", "month", times.month),
    *_clock("getDayOfYear", "day_of_year", times.day_of_year),
    *_clock("getDayOfMonth", "day_of_month", times.day_of_month),
    *_clock("getDate", "day_of_month_1_based", times.day),
    *_clock("getDayOfWeek", "day_of_week", times.day_of_week),
    *_clock("getHours", "hours", times.hours, times.duration_hours),
    *_clock("getMinutes", "minutes", times.minutes, times.duration_minutes),
    *_clock("getSeconds", "seconds", times.seconds, times.duration_seconds),
    *_clock("getMilliseconds", "milliseconds", times.milliseconds, times.duration_milliseconds),
]

STANDARD: Final[Library] = library([*_OPERATORS, *_SIZES, *_CONVERSIONS, *_TEXTS, *_TIMES])


# Optional values.


def of_non_zero(value: Any) -> Optional:
    if isinstance(value, dict | list | str | bytes):
        return Optional(value) if value else values.NONE
    kind = type(value)
    if value is None or (kind in (bool, int, float, UInt) and not value):
        return values.NONE
    if kind is Duration and value.nanos == 0:
        return values.NONE
    return values.NONE if value is values.NONE else Optional(value)


def _value(optional: Optional) -> Any:
    if optional is values.NONE:
        raise EvalError("optional.none() dereference")
    return optional.value


def _last(items: list[Any]) -> Optional:
    return Optional(items[-1]) if items else values.NONE


def _first(items: list[Any]) -> Optional:
    return Optional(items[0]) if items else values.NONE


def _unwrap(items: list[Any]) -> list[Any]:
    return [item.value for item in items if item is not values.NONE]


OPTIONALS: Final = library(
    [
        ("optional_of optional.of(V) -> optional(V)", Optional),
        ("optional_ofNonZeroValue optional.ofNonZeroValue(V) -> optional(V)", of_non_zero),
        ("optional_none optional.none() -> optional(V)", lambda: values.NONE),
        ("optional_value optional(V)::value() -> V", _value),
        ("optional_hasValue optional(V)::hasValue() -> bool", lambda optional: optional is not values.NONE),
        ("optional_or_optional optional(V)::or(optional(V)) -> optional(V)", None),
        ("optional_orValue_value optional(V)::orValue(V) -> V", None),
        ("select_optional_field _?._(dyn, string) -> optional(V)", None),
        ("list_optindex_optional_int _[?_](list(V), int) -> optional(V)", None),
        ("optional_list_optindex_optional_int _[?_](optional(list(V)), int) -> optional(V)", None),
        ("map_optindex_optional_value _[?_](map(K, V), K) -> optional(V)", None),
        ("optional_map_optindex_optional_value _[?_](optional(map(K, V)), K) -> optional(V)", None),
        ("optional_list_index_int _[_](optional(list(V)), int) -> optional(V)", None),
        ("optional_map_index_value _[_](optional(map(K, V)), K) -> optional(V)", None),
        ("list_last list(V)::last() -> optional(V)", _last),
        ("list_first list(V)::first() -> optional(V)", _first),
        ("optional_unwrap optional.unwrap(list(optional(V))) -> list(V)", _unwrap),
        ("optional_unwrapOpt list(optional(V))::unwrapOpt() -> list(V)", _unwrap),
    ],
    since=(1, 28),
)

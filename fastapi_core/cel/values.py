"""Values of expressions, and what operators do with them.

Most values are plain Python ones: bool, int, float, str, bytes, None, list and dict. The rest has classes here: `UInt`,
`Timestamp`, `Duration`, `Optional`, `TypeValue`, and objects with methods (`Opaque`). A dict may also have keys that are
booleans, which Python takes for numbers, so they are kept as `BoolKey`.
"""

from __future__ import annotations

import math
from typing import Any, Final

from fastapi_core.cel.errors import EvalError, no_overload

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1


class UInt(int):
    """An unsigned number of 64 bits."""

    __slots__ = ()


class Timestamp:
    """A moment: nanoseconds since 1970, within the years 1 to 9999, and in what zone it is told (seconds east)."""

    __slots__ = ("nanos", "offset")

    def __init__(self, nanos: int, offset: int = 0) -> None:
        self.nanos = nanos
        self.offset = offset

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Timestamp) -> bool:
        return self.nanos < other.nanos

    def __repr__(self) -> str:
        return f"Timestamp({self.nanos})"


class Duration:
    """A span in nanoseconds, of 64 bits."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Duration) -> bool:
        return self.nanos < other.nanos

    def __repr__(self) -> str:
        return f"Duration({self.nanos})"


class TypeValue:
    """A type as a value; equal by name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeValue) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"TypeValue({self.name!r})"


class Optional:
    """A value or none; `NONE` is the one without."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class _Nothing:
    __slots__ = ()


NOTHING: Final = _Nothing()
NONE: Final = Optional(NOTHING)


class BoolKey:
    """A boolean as the key of a dict."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value


_BOOL_KEYS: Final = {True: BoolKey(True), False: BoolKey(False)}


class Opaque:
    """Base of the values that only functions look into; `cel_type` is the name of the type."""

    __slots__ = ()

    @property
    def cel_type(self) -> str:
        raise NotImplementedError

    def size(self) -> int:
        """What cost takes for the size."""
        return 1


class MessageValue(dict[str, Any]):
    """A message made by an expression (`Object{...}`): its set fields, by name."""

    __slots__ = ("cel_type",)

    def __init__(self, cel_type: str, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.cel_type = cel_type


_TYPE_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    dict: "map",
    UInt: "uint",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    Optional: "optional_type",
    TypeValue: "type",
}


def type_name(value: Any) -> str:
    """The name of a value's type."""
    name = _TYPE_NAMES.get(type(value))
    if name is not None:
        return name
    declared = getattr(value, "cel_type", None)
    if isinstance(declared, str):
        return declared
    if isinstance(value, dict):
        return "map"
    return "list" if isinstance(value, list) else type(value).__name__


_SCALARS: Final = frozenset((bool, int, float, str, bytes, type(None), UInt, Timestamp, Duration, TypeValue))
_NUMBERS: Final = frozenset((int, float, UInt))


def equal(left: Any, right: Any) -> bool:
    """Equality: numbers by value whatever their type, everything else of one type, containers by their elements."""
    kind = type(left)
    other = type(right)
    if kind in _SCALARS:
        if kind is other:
            return bool(left == right)
        return kind in _NUMBERS and other in _NUMBERS and left == right
    if isinstance(left, dict):
        if not isinstance(right, dict) or len(left) != len(right):
            return False
        if getattr(left, "cel_type", "") != getattr(right, "cel_type", ""):
            return False
        return all(key in right and equal(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, Optional):
        if not isinstance(right, Optional):
            return False
        if left is NONE or right is NONE:
            return left is right
        return equal(left.value, right.value)
    return bool(left == right)


def contains(items: list[Any], wanted: Any) -> bool:
    return any(equal(item, wanted) for item in items)


def key_of(value: Any) -> Any:
    """A value as the key of a dict."""
    kind = type(value)
    if kind is str or kind is int or kind is UInt:
        return value
    if kind is bool:
        return _BOOL_KEYS[value]
    if kind is float:
        return int(value) if value.is_integer() else value
    if value is None or kind is Timestamp or kind is Duration:
        return value
    raise EvalError(f"unsupported key type: {type_name(value)}")


def from_key(key: Any) -> Any:
    return key.value if type(key) is BoolKey else key


_COMPARERS: Final = frozenset((bool, str, bytes, Timestamp, Duration))
#: Types that answer calls themselves, and do not say what was called.
_RECEIVERS: Final = frozenset((str, Timestamp, Duration))


def compare(left: Any, right: Any, operator: str = "") -> int:
    """-1, 0 or 1; EvalError when the two have no order."""
    kind = type(left)
    other = type(right)
    if kind in _NUMBERS and other in _NUMBERS:
        if left != left or right != right:
            raise EvalError("NaN values cannot be ordered")
    elif kind is not other or kind not in _COMPARERS:
        raise no_overload("" if kind in _NUMBERS or kind in _COMPARERS else operator)
    return -1 if left < right else (1 if right < left else 0)


# Arithmetic. Every function takes values of any type.


def add(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return checked_int(left + right)
        if kind is str or kind is float or kind is bytes:
            return left + right
        if kind is UInt:
            return _checked_uint(int(left) + int(right))
        if kind is Duration:
            return _duration(left.nanos + right.nanos)
    if isinstance(left, list) and isinstance(right, list):
        return [*left, *right]
    if kind is Timestamp and type(right) is Duration:
        return _timestamp(left.nanos + right.nanos, left.offset)
    if kind is Duration and type(right) is Timestamp:
        return _timestamp(left.nanos + right.nanos, right.offset)
    raise _no_operator(left, "_+_", _ADDERS)


_ADDERS: Final = frozenset((int, str, float, bytes, UInt, Duration, Timestamp, list))
_SUBTRACTORS: Final = frozenset((int, float, UInt, Duration, Timestamp))
_MULTIPLIERS: Final = frozenset((int, float, UInt))
_MODDERS: Final = frozenset((int, UInt))


def _no_operator(left: Any, function: str, able: frozenset[type]) -> EvalError:
    return no_overload("" if type(left) in able or type(left) in _RECEIVERS else function)


def subtract(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return checked_int(left - right)
        if kind is float:
            return left - right
        if kind is UInt:
            return _checked_uint(int(left) - int(right))
        if kind is Duration:
            return _duration(left.nanos - right.nanos)
        if kind is Timestamp:
            return _duration(left.nanos - right.nanos)
    if kind is Timestamp and type(right) is Duration:
        return _timestamp(left.nanos - right.nanos, left.offset)
    raise _no_operator(left, "_-_", _SUBTRACTORS)


def multiply(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return checked_int(left * right)
        if kind is float:
            return left * right
        if kind is UInt:
            return _checked_uint(int(left) * int(right))
    raise _no_operator(left, "_*_", _MULTIPLIERS)


def divide(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is type(right):
        if kind is int or kind is UInt:
            if right == 0:
                raise EvalError("division by zero")
            if kind is UInt:
                return UInt(int(left) // int(right))
            quotient = abs(left) // abs(right)
            return checked_int(quotient if (left < 0) == (right < 0) else -quotient)
        if kind is float:
            return _divide_floats(left, right)
    raise _no_operator(left, "_/_", _MULTIPLIERS)


def _divide_floats(left: float, right: float) -> float:
    if right == 0:
        if left == 0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    return left / right


def modulo(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is type(right) and kind in _MODDERS:
        if right == 0:
            raise EvalError("modulus by zero")
        if left == INT_MIN and right == -1:
            raise EvalError("integer overflow")
        remainder = abs(left) % abs(right)
        return UInt(remainder) if kind is UInt else (-remainder if left < 0 else remainder)
    raise _no_operator(left, "_%_", _MODDERS)


def negate(value: Any) -> Any:
    kind = type(value)
    if kind is int:
        return checked_int(-value)
    if kind is float:
        return -value
    if kind is Duration:
        return _duration(-value.nanos)
    raise no_overload("" if kind is bool or kind in _RECEIVERS else "-_")


def checked_int(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvalError("integer overflow")


def _checked_uint(value: int) -> UInt:
    if 0 <= value <= UINT_MAX:
        return UInt(value)
    raise EvalError("unsigned integer overflow")


_MIN_TIME: Final = -62135596800 * 10**9
_MAX_TIME: Final = 253402300800 * 10**9


def _timestamp(nanos: int, offset: int = 0) -> Timestamp:
    if _MIN_TIME <= nanos < _MAX_TIME:
        return Timestamp(nanos, offset)
    raise EvalError("timestamp overflow")


def _duration(nanos: int) -> Duration:
    if INT_MIN <= nanos <= INT_MAX:
        return Duration(nanos)
    raise EvalError("integer overflow")


timestamp = _timestamp
duration = _duration
checked_uint = _checked_uint


def index(container: Any, key: Any) -> Any:
    """`container[key]` of values of any type."""
    if isinstance(container, dict):
        return _entry(container, key)
    if isinstance(container, list):
        return _element(container, key)
    if isinstance(container, Optional):
        return NONE if container is NONE else find(container.value, key)
    raise EvalError(f"no such key: {shown(key)}")


def _entry(container: dict[Any, Any], key: Any) -> Any:
    try:
        return container[key if type(key) is str else key_of(key)]
    except KeyError:
        raise EvalError(f"no such key: {shown(key)}") from None


def _element(container: list[Any], key: Any) -> Any:
    position = _position(key)
    if 0 <= position < len(container):
        return container[position]
    raise EvalError(f"index out of bounds: {shown(key)}")


def _position(key: Any) -> int:
    kind = type(key)
    if kind is int:
        return int(key)
    if kind is UInt or (kind is float and key.is_integer()):
        return int(key)
    if kind is float:
        raise EvalError(f"unsupported index value {shown(key)} in list")
    raise EvalError(f"unsupported index type '{type_name(key)}' in list")


def find(container: Any, key: Any) -> Optional:
    """`container[?key]`: an optional of the value."""
    if isinstance(container, Optional):
        return NONE if container is NONE else find(container.value, key)
    if isinstance(container, dict):
        wanted = key if type(key) is str else key_of(key)
        return Optional(container[wanted]) if wanted in container else NONE
    if isinstance(container, list):
        position = _position(key)
        return Optional(container[position]) if 0 <= position < len(container) else NONE
    return NONE


def shown(value: Any) -> str:
    """A value in a message."""
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is bytes:
        return value.decode(errors="replace")  # type: ignore[no-any-return]
    return str(value)


def size(value: Any) -> int:
    """`size(value)` of values of any type."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    raise no_overload("" if type(value) in _RECEIVERS else "size")


def cost_size(value: Any) -> int:
    """What the cost of a call takes for the size of an argument."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    if isinstance(value, Optional):
        return 1 if value is NONE else cost_size(value.value)
    return value.size() if isinstance(value, Opaque) else 1

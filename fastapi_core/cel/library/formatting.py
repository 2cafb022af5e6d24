"""`"...%s".format([...])`: values by clauses, and the check of constant formats while compiling."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from fastapi_core.cel import times, values
from fastapi_core.cel.costs import afford
from fastapi_core.cel.errors import EvalError
from fastapi_core.cel.syntax import ListNode, MapNode, Node
from fastapi_core.cel.types import DYN, Type
from fastapi_core.cel.values import Duration, Timestamp, TypeValue, UInt

_CLAUSE: Final = re.compile(r"%(?:%|(?:\.(\d+))?(.))", re.DOTALL)
_PRECISION: Final = 6
#: More places than this would be written for nothing but their cost.
_PRECISION_DIGITS: Final = 3
_KINDS: Final = "sdfebxXo"


def format_text(template: str, arguments: list[Any]) -> str:
    """The text with its clauses replaced; EvalError with the reference's text."""
    parts: list[str] = []
    length = 0
    position = 0
    at = 0
    while at < len(template):
        percent = template.find("%", at)
        if percent < 0:
            parts.append(template[at:])
            break
        parts.append(template[at:percent])
        if template.startswith("%%", percent):
            parts.append("%")
            at = percent + 2
            continue
        precision, kind, at = _clause(template, percent)
        if position >= len(arguments):
            raise EvalError(f"index {position} out of range")
        parts.append(_formatted(kind, precision, arguments[position]))
        length += len(parts[-1])
        afford(length)
        position += 1
    return "".join(parts)


def _clause(template: str, percent: int) -> tuple[int, str, int]:
    """(precision, kind, past the clause)."""
    match = _CLAUSE.match(template, percent)
    if match is None:
        raise EvalError("unexpected end of string")
    kind = match.group(2)
    if kind not in _KINDS:
        if kind == ".":
            raise EvalError(
                "could not parse formatting clause: error while parsing precision: could not find end of precision specifier"
            )
        raise EvalError(f'could not parse formatting clause: unrecognized formatting clause "{kind}"')
    digits = match.group(1)
    if not digits:
        return _PRECISION, kind, match.end()
    if len(digits) > _PRECISION_DIGITS:
        raise EvalError("could not parse formatting clause: error while parsing precision: precision is too large")
    return int(digits), kind, match.end()


def _formatted(kind: str, precision: int, value: Any) -> str:
    try:
        match kind:
            case "s":
                return text_of(value)
            case "d":
                return _decimal(value)
            case "f":
                return _real(value, f".{precision}f", "fixed-point")
            case "e":
                return _scientific(value)
            case "b":
                return _binary(value)
            case "o":
                return _octal(value)
            case _:
                return _hex(value, upper=kind == "X")
    except EvalError as error:
        raise EvalError(f"error during formatting: {error}") from None


def _decimal(value: Any) -> str:
    if type(value) in (int, UInt):
        return str(int(value))
    raise EvalError(f"decimal clause can only be used on integers, was given {values.type_name(value)}")


_SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _number(value: Any, clause: str) -> float:
    if type(value) is float:
        return value
    if type(value) is str and value in _SPECIAL:
        return _SPECIAL[value]
    raise EvalError(f"{clause} clause can only be used on doubles, was given {values.type_name(value)}")


def _infinite(number: float) -> str | None:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    return None


def _real(value: Any, form: str, clause: str) -> str:
    number = _number(value, clause)
    # The reference prints for the locale en_US, with commas between thousands.
    return _infinite(number) or f"{number:,{form}}"


def _scientific(value: Any) -> str:
    """The reference's printer has places of its own for this clause."""
    number = _number(value, "scientific")
    special = _infinite(number)
    if special is not None:
        return special
    mantissa, _, exponent = f"{number:.{_PRECISION}e}".partition("e")
    return f"{mantissa}×10{_raised(int(exponent))}"


def _raised(exponent: int) -> str:
    digits = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
    return f"{'-' if exponent < 0 else ''}{abs(exponent):02d}".translate(digits)


def _binary(value: Any) -> str:
    if type(value) is bool:
        return "1" if value else "0"
    if type(value) in (int, UInt):
        return f"{int(value):b}"
    raise EvalError(f"only integers and bools can be formatted as binary, was given {values.type_name(value)}")


def _octal(value: Any) -> str:
    if type(value) in (int, UInt):
        return f"{int(value):o}"
    raise EvalError(f"octal clause can only be used on integers, was given {values.type_name(value)}")


def _hex(value: Any, *, upper: bool) -> str:
    if type(value) is str:
        text = value.encode().hex()
    elif type(value) is bytes:
        text = value.hex()
    elif type(value) in (int, UInt):
        text = f"{int(value):x}"
    else:
        name = values.type_name(value)
        raise EvalError(f"only integers, byte buffers, and strings can be formatted as hex, was given {name}")
    return text.upper() if upper else text


def text_of(value: Any) -> str:
    """A value under %s."""
    from fastapi_core.cel.library.standard import to_string

    if isinstance(value, list):
        return "[" + ", ".join(map(_element, value)) + "]"
    if isinstance(value, dict):
        pairs = sorted((_key(key), _element(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"
    if value is None:
        return "null"
    if isinstance(value, TypeValue):
        return value.name
    if type(value) in (int, UInt, float, bool, str, Timestamp, bytes, Duration):
        try:
            return to_string(value)
        except EvalError as error:
            raise EvalError(f"could not convert argument {go_quote(str(error))} to string") from None
    name = values.type_name(value)
    raise EvalError(
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and"
        f" timestamps, was given {name}"
    )


def _key(key: Any) -> str:
    key = values.from_key(key)
    if type(key) in (int, UInt):
        return str(int(key))
    if type(key) not in (str, bool):
        raise EvalError(f"no formatting function for {values.type_name(key)}")
    return go_quote(key) if type(key) is str else text_of(key)


def _element(value: Any) -> str:
    """A value inside a list or map."""
    kind = type(value)
    if kind is str:
        return go_quote(value)
    if kind is bytes:
        return "b" + go_quote(text_of(value))
    if kind is Timestamp:
        return f'timestamp("{times.format_timestamp(value)}")'
    if kind is Duration:
        return f'duration("{times.format_duration(value)}")'
    if kind is float:
        if value != value or value in (math.inf, -math.inf):
            return '"' + ("NaN" if value != value else "+Inf" if value > 0 else "-Inf") + '"'
        return f"{value:.{_PRECISION}f}"
    return text_of(value)


_GO_ESCAPES: Final = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def go_quote(text: str) -> str:
    """A text in quotes as Go's %q writes it."""
    parts = ['"']
    for character in text:
        if character in '"\\':
            parts.append("\\" + character)
        elif character in _GO_ESCAPES:
            parts.append(_GO_ESCAPES[character])
        elif character.isprintable():
            parts.append(character)
        else:
            code = ord(character)
            parts.append(f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return "".join([*parts, '"'])


# The check of a constant format.

_PRINTABLE: Final = frozenset(
    ("list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null_type")
)
_ALLOWED: Final[dict[str, tuple[frozenset[str], str]]] = {
    "d": (frozenset(("int", "uint")), "decimal clause can only be used on integers, was given {}"),
    "f": (frozenset(("double", "string")), "fixed-point clause can only be used on doubles, was given {}"),
    "e": (frozenset(("double", "string")), "scientific clause can only be used on doubles, was given {}"),
    "b": (frozenset(("int", "uint", "bool")), "only integers and bools can be formatted as binary, was given {}"),
    "o": (frozenset(("int", "uint")), "octal clause can only be used on integers, was given {}"),
    "x": (
        frozenset(("int", "uint", "string", "bytes")),
        "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    ),
}
_STRING: Final = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and"
    " timestamps, was given {}"
)


def check_format(template: str, arguments: list[Node]) -> tuple[str, Node | None] | None:
    """(complaint, the argument it is about) of a constant format; None when it fits its arguments."""
    position = 0
    at = 0
    while (percent := template.find("%", at)) >= 0:
        if template.startswith("%%", percent):
            at = percent + 2
            continue
        try:
            _, kind, at = _clause(template, percent)
        except EvalError as error:
            return str(error), None
        if position >= len(arguments):
            return f"index {position} out of range", None
        wrong = _wrong_argument(kind, arguments[position])
        if wrong is not None:
            message, node = wrong
            return f"error during formatting: {message}", node
        position += 1
    if len(arguments) > position:
        return (
            f"too many arguments supplied to string.format (expected {position}, got {len(arguments)})",
            None,
        )
    return None


def _wrong_argument(kind: str, node: Node) -> tuple[str, Node] | None:
    if kind == "s":
        found = _unprintable(node)
        return None if found is None else (_STRING.format(_type(found).name), found)
    allowed, message = _ALLOWED[kind.lower()]
    shown = _type(node)
    if shown.kind == DYN.kind or shown.kind in allowed:
        return None
    return message.format(shown.name), node


def _type(node: Node) -> Type:
    return node.type or DYN


def _unprintable(node: Node) -> Node | None:
    kind = _type(node)
    if kind.kind != DYN.kind and kind.kind not in _PRINTABLE:
        return node
    inner: list[Node] = []
    if isinstance(node, ListNode):
        inner = node.elements
    elif isinstance(node, MapNode):
        inner = [each for entry in node.entries for each in (entry.key, entry.value) if each is not None]
    for each in inner:
        found = _unprintable(each)
        if found is not None:
            return found
    return None

"""Flags as the reference's command line takes them: `--name=value`, `--name value`, `--bool`, `-v 4`.

Flags are the fields of dataclasses (`options/groups.py`). All errors of a command line are reported together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, field, fields
from typing import Any

from fastapi_core.records import dataclass

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


class OptionsError(Exception):
    """Everything that is wrong with a command line; each line names the flag and the fix."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__("\n".join(errors))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Kind:
    """How the text of a flag becomes a value; `parse` raises ValueError with what is expected."""

    name: str
    parse: Callable[[str], Any]
    is_bool: bool = False
    repeats: bool = False
    """Further occurrences add to the value instead of replacing it."""


def _bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError("true or false is expected")


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("a whole number is expected") from None


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("a number is expected") from None


def _duration(text: str) -> float:
    from fastapi_core.meta.time import parse_duration

    try:
        nanoseconds: int = parse_duration(text)
    except ValueError as error:
        raise ValueError(f"a duration such as 30s or 1m30s is expected ({error})") from None
    return nanoseconds / 1e9


def _strings(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _ip(text: str) -> str:
    import ipaddress

    try:
        return str(ipaddress.ip_address(text)) if text else ""
    except ValueError:
        raise ValueError("an IP address such as 127.0.0.1 is expected") from None


def _ints(text: str) -> tuple[int, ...]:
    return tuple(_int(part.strip()) for part in text.split(",") if part.strip())


def _quantity(text: str) -> str:
    from fastapi_core.meta import quantity

    try:
        quantity.parse(text)
    except ValueError:
        raise ValueError("a quantity such as 512Ki is expected") from None
    return text


def _port_range(text: str) -> str:
    first, dash, last = text.partition("-")
    if not (first.isdecimal() and (last.isdecimal() if dash else True)):
        raise ValueError("a range of ports such as 30000-32767 is expected")
    return text


def _map(text: str) -> tuple[tuple[str, str], ...]:
    pairs = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"name=value pairs are expected, {part!r} has no value")
        pairs.append((name.strip(), value.strip()))
    return tuple(pairs)


def _named_cert(text: str) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    files, colon, names = text.partition(":")
    parts = [part.strip() for part in files.split(",")]
    if len(parts) != 2 or not all(parts):
        raise ValueError(
            "the paths of certificate and key are expected, as in a.crt,a.key or a.crt,a.key:*.example.com"
        )
    found = _strings(names)
    if colon and not found:
        raise ValueError("host names are expected behind the colon, as in a.crt,a.key:*.example.com,example.com")
    return ((parts[0], parts[1], found),)


STRING = Kind("string", str)
BOOL = Kind("bool", _bool, is_bool=True)
INT = Kind("int", _int)
FLOAT = Kind("float", _float)
DURATION = Kind("duration", _duration)
STRINGS = Kind("strings", _strings, repeats=True)
#: One value an occurrence, commas belong to the value.
STRING_ARRAY = Kind("stringArray", lambda text: (text,), repeats=True)
IP = Kind("ip", _ip)
INTS = Kind("int32Slice", _ints, repeats=True)
QUANTITY = Kind("quantity", _quantity)
PORT_RANGE = Kind("portRange", _port_range)
#: Pairs in the order they were given; of a name given twice the last one counts.
MAP = Kind("mapStringString", _map, repeats=True)
#: (certificate, key, host names), one an occurrence.
NAMED_CERTS = Kind("namedCertKey", _named_cert, repeats=True)


def shown(kind: Kind, value: Any) -> str:
    """A value as it would stand on a command line."""
    if kind is BOOL:
        return str(value).lower()
    if kind is DURATION:
        from fastapi_core.meta.time import format_duration

        return format_duration(round(value * 1e9))
    if kind is MAP:
        return ",".join(f"{name}={text}" for name, text in value)
    if kind is NAMED_CERTS:
        return ";".join(f"{cert},{key}" + (":" + ",".join(names) if names else "") for cert, key, names in value)
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: where its value goes and how it is read."""

    name: str
    kind: Kind
    help: str
    group: str
    attribute: str
    default: Any


def flag(name: str, kind: Kind, default: Any, help: str) -> Any:
    """A dataclass field that is a flag."""
    return field(default=default, metadata={"flag": name, "kind": kind, "help": help})


def flags_of(groups: Mapping[str, Any]) -> dict[str, Flag]:
    """Flag name -> flag, of all dataclasses in `groups`."""
    table: dict[str, Flag] = {}
    for group, cls in groups.items():
        for f in fields(cls):
            if "flag" in f.metadata:
                table[f.metadata["flag"]] = Flag(
                    f.metadata["flag"], f.metadata["kind"], f.metadata["help"], group, f.name, _default(f)
                )
    return table


def _default(f: Field[Any]) -> Any:
    if f.default is MISSING:
        raise TypeError(f"flag {f.name} needs a default")
    return f.default


@dataclass(slots=True)
class Parsed:
    """Values by flag, flags of the reference that change nothing here, and what was wrong."""

    values: dict[str, Any] = field(default_factory=dict)
    inert: dict[str, Any] = field(default_factory=dict)
    """Flag without effect -> its value, in the order they were given."""
    errors: list[str] = field(default_factory=list)


def parse(arguments: Iterable[str], table: Mapping[str, Flag], inert: Mapping[str, Flag]) -> Parsed:
    """Read a command line. `inert` are the flags that are accepted without effect; their values must fit all the same."""
    result = Parsed()
    left = list(arguments)[::-1]
    while left:
        argument = left.pop()
        name, value = _split(argument)
        if name is None:
            result.errors.append(f"unexpected argument {argument!r}: flags start with --")
            continue
        known = table.get(name) or inert.get(name)
        if known is None:
            result.errors.append(_unknown(name, [*table, *inert]))
            if value is None and left and not left[-1].startswith("-"):
                left.pop()  # its value, most likely
            continue
        if value is None:
            if known.kind.is_bool:
                value = "true"
            elif not left:
                result.errors.append(f"--{name}: needs a value, write --{name}=VALUE")
                continue
            else:
                value = left.pop()
        _set(result, result.values if name in table else result.inert, known, value)
    return result


def _split(argument: str) -> tuple[str | None, str | None]:
    """Flag name and value (None when the value is the next argument) of one argument."""
    if argument.startswith("--") and len(argument) > 2:
        name, equals, value = argument[2:].partition("=")
        # The reference reads underscores in flag names as dashes.
        return name.replace("_", "-"), value if equals else None
    if len(argument) >= 2 and argument[0] == "-" and argument[1] in "vh":
        rest = argument[2:].removeprefix("=")
        return argument[1] if argument[1] == "v" else "help", rest or None
    return None, None


def _set(result: Parsed, values: dict[str, Any], known: Flag, text: str) -> None:
    try:
        value = known.kind.parse(text)
    except ValueError as error:
        result.errors.append(f"--{known.name}: {text!r} does not fit: {error}")
        return
    if known.kind.repeats and known.name in values:
        value = values[known.name] + value
    values[known.name] = value


def _unknown(name: str, names: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f"unknown flag --{name}" + (f", did you mean --{near[0]}?" if near else ": see --help for all flags")

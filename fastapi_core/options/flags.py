"""Flags as the reference's command line takes them: `--name=value`, `--name value`, `--bool`, `-v 4`.

Flags are the fields of dataclasses (`options/groups.py`). All errors of a command line are reported together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from difflib import get_close_matches
from typing import Any

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


STRING = Kind("string", str)
BOOL = Kind("bool", _bool, is_bool=True)
INT = Kind("int", _int)
FLOAT = Kind("float", _float)
DURATION = Kind("duration", _duration)
STRINGS = Kind("strings", _strings, repeats=True)
#: One value an occurrence, commas belong to the value.
STRING_ARRAY = Kind("stringArray", lambda text: (text,), repeats=True)


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
    inert: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def parse(arguments: Iterable[str], table: Mapping[str, Flag], inert: Mapping[str, bool]) -> Parsed:
    """Read a command line.

    `inert` holds names that are accepted without effect, and whether they are switches (which need no value).
    """
    result = Parsed()
    left = list(arguments)[::-1]
    while left:
        argument = left.pop()
        name, value = _split(argument)
        if name is None:
            result.errors.append(f"unexpected argument {argument!r}: flags start with --")
            continue
        known = table.get(name)
        if known is None and name not in inert:
            result.errors.append(_unknown(name, [*table, *inert]))
            if value is None and left and not left[-1].startswith("-"):
                left.pop()  # its value, most likely
            continue
        if value is None:
            if known.kind.is_bool if known is not None else inert[name]:
                value = "true"
            elif not left:
                result.errors.append(f"--{name}: needs a value, write --{name}=VALUE")
                continue
            else:
                value = left.pop()
        if known is None:
            result.inert.append(name)
        else:
            _set(result, known, value)
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


def _set(result: Parsed, known: Flag, text: str) -> None:
    try:
        value = known.kind.parse(text)
    except ValueError as error:
        result.errors.append(f"--{known.name}: {text!r} does not fit: {error}")
        return
    if known.kind.repeats and known.name in result.values:
        value = result.values[known.name] + value
    result.values[known.name] = value


def _unknown(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f"unknown flag --{name}" + (f", did you mean --{near[0]}?" if near else ": see --help for all flags")

"""Schedules of cron jobs: five fields or a descriptor, with the messages of the reference's parser."""

from __future__ import annotations

import zoneinfo
from functools import lru_cache
from typing import Final

_MONTH_NAMES: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_NAMES: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS: Final = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAYS: Final = {name: number for number, name in enumerate(_DAY_NAMES)}
_FIELDS: Final[tuple[tuple[int, int, dict[str, int]], ...]] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_DESCRIPTORS: Final = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_EVERY: Final = "@every "
_UNITS: Final = ("ns", "us", "µs", "ms", "s", "m", "h")


@lru_cache(1024)
def problem(schedule: str) -> str:
    """What is wrong with a schedule, empty for nothing."""
    try:
        _check(schedule)
    except ValueError as error:
        return str(error)
    return ""


def _check(schedule: str) -> None:
    if schedule.startswith("@"):
        if schedule in _DESCRIPTORS:
            return
        if schedule.startswith(_EVERY):
            if not _duration(schedule[len(_EVERY) :]):
                raise ValueError(
                    f'failed to parse duration {schedule}: time: invalid duration "{schedule[len(_EVERY) :]}"'
                )
            return
        raise ValueError(f"unrecognized descriptor: {schedule}")
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for text, (low, high, names) in zip(fields, _FIELDS, strict=True):
        for part in text.split(","):
            if part:
                _range(part, low, high, names)


def _duration(text: str) -> bool:
    rest = text.lstrip("+-")
    while rest:
        digits = len(rest) - len(rest.lstrip("0123456789."))
        unit = next((unit for unit in _UNITS if rest[digits:].startswith(unit)), "")
        if not digits or not unit:
            return False
        rest = rest[digits + len(unit) :]
    return bool(text.lstrip("+-"))


def _range(part: str, low: int, high: int, names: dict[str, int]) -> None:
    span, *steps = part.split("/")
    start, *ends = span.split("-")
    if start in ("*", "?"):
        first, last = low, high
        if ends:
            last = _number(ends[0], names)
    else:
        first = _number(start, names)
        if len(ends) > 1:
            raise ValueError(f"too many hyphens: {part}")
        last = _number(ends[0], names) if ends else first
    step = 1
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {part}")
    if steps:
        step = _integer(steps[0])
        if not ends and start not in ("*", "?"):
            last = high
    if first < low:
        raise ValueError(f"beginning of range ({first}) below minimum ({low}): {part}")
    if last > high:
        raise ValueError(f"end of range ({last}) above maximum ({high}): {part}")
    if first > last:
        raise ValueError(f"beginning of range ({first}) beyond end of range ({last}): {part}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {part}")


def _number(text: str, names: dict[str, int]) -> int:
    return names[text.lower()] if text.lower() in names else _integer(text)


def _integer(text: str) -> int:
    digits = text[1:] if text[:1] in "+-" else text
    if not digits.isascii() or not digits.isdigit():
        raise ValueError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    value = int(text)
    if value < 0:
        raise ValueError(f"negative number ({value}) not allowed: {text}")
    return value


@lru_cache(256)
def known_zone(name: str) -> bool:
    """Whether it is a time zone of the database."""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True

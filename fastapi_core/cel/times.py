"""Moments and spans: reading, printing and taking apart, as Go's time package does."""

from __future__ import annotations

import base64
import binascii
import calendar
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any, Final

from fastapi_core.cel.errors import EvalError
from fastapi_core.cel.values import INT_MAX, INT_MIN, Duration, Timestamp, timestamp
from fastapi_core.meta import time as gotime

_SECOND: Final = 10**9
_EPOCH_DAYS: Final = date(1970, 1, 1).toordinal()
_RFC3339: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)
_LENIENT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?([Zz]|[+-]\d\d:?\d\d)?)?", re.ASCII
)


def parse_timestamp(text: str) -> Timestamp:
    """A moment in RFC 3339; ValueError when it is none."""
    return _moment(_RFC3339.fullmatch(text))


def _moment(match: re.Match[str] | None) -> Timestamp:
    if match is None:
        raise ValueError("not a timestamp")
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    zone = match.group(8) or "Z"
    if not 1 <= month <= 12 or hour > 23 or minute > 59 or second > 59:
        raise ValueError("out of range")
    if not 1 <= day <= calendar.monthrange(year or 4, month)[1]:
        raise ValueError("out of range")
    days = date(year, month, day).toordinal() if year else date(4, month, day).toordinal() - 4 * 365 - 1
    seconds = (days - _EPOCH_DAYS) * 86400 + hour * 3600 + minute * 60 + second
    offset = _offset(zone)
    nanos = int((match.group(7) or "0")[:9].ljust(9, "0"))
    return timestamp((seconds - offset) * _SECOND + nanos, offset)


def _offset(zone: str) -> int:
    if zone in "Zz":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 24 or minutes > 59:
        raise ValueError("out of range")
    seconds = hours * 3600 + minutes * 60
    return -seconds if zone[0] == "-" else seconds


def format_timestamp(moment: Timestamp) -> str:
    seconds, nanos = divmod(moment.nanos, _SECOND)
    whole, offset = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds), moment.offset
    if offset:
        try:
            whole += timedelta(seconds=offset)
        except OverflowError:  # the year 10000 there
            offset = 0
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"{whole.year:04d}-{whole.month:02d}-{whole.day:02d}T{whole:%H:%M:%S}{fraction}{_shown_offset(offset)}"


def _shown_offset(offset: int) -> str:
    minutes = abs(offset) // 60
    return f"{'-' if offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}" if offset else "Z"


def parse_duration(text: str) -> Duration:
    """A span as Go writes it (`1h30m`); ValueError when it is none."""
    nanos = gotime.parse_duration(text)
    if not INT_MIN <= nanos <= INT_MAX:
        raise ValueError("out of range")
    return Duration(nanos)


def format_duration(span: Duration) -> str:
    """Seconds in decimals, as short as a double allows."""
    seconds = span.nanos / _SECOND
    if seconds == int(seconds):
        return f"{int(seconds)}s"
    text = repr(seconds)
    if "e" in text:
        text = f"{seconds:.9f}".rstrip("0")
    return f"{text}s"


# Forms of JSON that a schema declares. Values already converted pass.


def from_date_time(value: Any) -> Any:
    if type(value) is not str:
        return value
    try:
        return _moment(_LENIENT.fullmatch(value))
    except ValueError as error:
        raise EvalError(f"Invalid date-time formatted string {value}: {error}") from None


def from_date(value: Any) -> Any:
    if type(value) is not str:
        return value
    try:
        return _moment(_LENIENT.fullmatch(value) if len(value) == 10 else None)
    except ValueError as error:
        raise EvalError(f"Invalid date formatted string {value}: {error}") from None


_WORDS: Final = re.compile(r"(\d+)\s*([a-zµ]+)", re.ASCII | re.IGNORECASE)
_UNITS: Final = {
    **dict.fromkeys(("ns", "nano", "nanosecond", "nanoseconds", "nanos"), 1),
    **dict.fromkeys(("us", "µs", "micro", "micros", "microsecond", "microseconds"), 1000),
    **dict.fromkeys(("ms", "milli", "millis", "millisecond", "milliseconds"), 10**6),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), _SECOND),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60 * _SECOND),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600 * _SECOND),
    **dict.fromkeys(("d", "day", "days"), 86400 * _SECOND),
    **dict.fromkeys(("w", "wk", "week", "weeks"), 7 * 86400 * _SECOND),
}


def from_duration(value: Any) -> Any:
    """The format "duration", which besides Go's spans allows numbers with the names of units."""
    if type(value) is not str:
        return value
    try:
        return parse_duration(value)
    except ValueError:
        pass
    total = 0
    matched = False
    for number, unit in _WORDS.findall(value):
        factor = _UNITS.get(unit.lower())
        if factor is None:
            matched = False
            break
        total += int(number) * factor
        matched = True
    if not matched:
        raise EvalError(f"Invalid duration {value}: unable to parse {value} as duration")
    return Duration(total)


def from_byte(value: Any) -> Any:
    if type(value) is not str:
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise EvalError(f"Invalid byte formatted string {value}: illegal base64 data") from None


# Parts of a moment, in UTC or in a named zone.


def _zone(name: str) -> tzinfo:
    if ":" not in name:
        return _named_zone(name)
    hours, _, minutes = name.partition(":")
    try:
        whole, part = int(hours), int(minutes)
    except ValueError:
        wrong = hours if not re.fullmatch(r"[+-]?\d+", hours) else minutes
        raise EvalError(f'strconv.Atoi: parsing "{wrong}": invalid syntax') from None
    if not 0 <= part <= 59:
        raise EvalError(f"timezone offset minutes out of range [0, 59]: {name}")
    total = whole * 60 - part if name.startswith("-") else whole * 60 + part
    if abs(total) >= 24 * 60:
        raise EvalError(f"unknown time zone {name}")
    return timezone(timedelta(minutes=total))


def _named_zone(name: str) -> tzinfo:
    if name in ("", "UTC", "Local"):
        return UTC
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise EvalError(f"unknown time zone {name}") from None


def _parts(moment: Timestamp, zone: str) -> datetime:
    whole = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=moment.nanos // _SECOND)
    if not zone:
        return whole
    try:
        return whole.astimezone(_zone(zone))
    except OverflowError:
        raise EvalError("timestamp overflow") from None


def _part(read: Callable[[datetime], int]) -> Callable[..., int]:
    def get(moment: Timestamp, zone: str = "") -> int:
        return read(_parts(moment, zone))

    return get


full_year = _part(lambda when: when.year)
month = _part(lambda when: when.month - 1)
day_of_year = _part(lambda when: when.timetuple().tm_yday - 1)
day_of_month = _part(lambda when: when.day - 1)
day = _part(lambda when: when.day)
day_of_week = _part(lambda when: (when.weekday() + 1) % 7)
hours = _part(lambda when: when.hour)
minutes = _part(lambda when: when.minute)
seconds = _part(lambda when: when.second)


def milliseconds(moment: Timestamp, zone: str = "") -> int:
    _parts(moment, zone)
    return moment.nanos % _SECOND // 10**6


def _whole(unit: int) -> Callable[[Duration], int]:
    def get(span: Duration) -> int:
        whole = abs(span.nanos) // unit
        return -whole if span.nanos < 0 else whole

    return get


duration_hours = _whole(3600 * _SECOND)
duration_minutes = _whole(60 * _SECOND)
duration_seconds = _whole(_SECOND)
duration_milliseconds = _whole(10**6)

"""Times as the API writes them: RFC 3339 in UTC by the second or the microsecond, Go durations, ages as kubectl prints.

Parsing accepts what Go's `time.Parse` accepts for these layouts and fails with its texts; the year 0001-01-01 00:00:00
UTC is the zero time, which JSON prints as null.
"""

from __future__ import annotations

import re
import time as _clock
from datetime import UTC, datetime, timedelta
from typing import Final

from fastapi_core.meta.patterns import Pattern

LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
LAYOUT_MICRO: Final = "2006-01-02T15:04:05.000000Z07:00"
ZERO: Final = datetime(1, 1, 1, tzinfo=UTC)

_CANONICAL: Final = Pattern(
    r"\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
    r"T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{6})?Z",
    re.ASCII,
)
#: (pattern, name of the layout element) in order; a failure quotes the rest of the text and the element.
_HEAD: Final = (
    (Pattern(r"\d{4}", re.ASCII), "2006"),
    (Pattern("-"), "-"),
    (Pattern(r"\d{2}", re.ASCII), "01"),
    (Pattern("-"), "-"),
    (Pattern(r"\d{2}", re.ASCII), "02"),
    (Pattern("T"), "T"),
    (Pattern(r"\d{1,2}", re.ASCII), "15"),
    (Pattern(":"), ":"),
    (Pattern(r"\d{2}", re.ASCII), "04"),
    (Pattern(":"), ":"),
    (Pattern(r"\d{2}", re.ASCII), "05"),
)
_FRACTION: Final = Pattern(r"[.,](\d+)", re.ASCII)
_MICROS: Final = Pattern(r"[.,](\d{6})", re.ASCII)
_ZONE: Final = Pattern(r"Z|([+-])(\d{2}):(\d{2})", re.ASCII)


def parse(text: str) -> datetime:
    """A time by RFC 3339 (any fraction); ValueError with Go's text."""
    return _parse(text, LAYOUT, micro=False)


def parse_micro(text: str) -> datetime:
    """A time by RFC 3339 with exactly six digits of fraction; ValueError with Go's text."""
    return _parse(text, LAYOUT_MICRO, micro=True)


def _parse(text: str, layout: str, *, micro: bool) -> datetime:
    failure = f'parsing time "{text}"'
    at = 0
    parts: list[int] = []
    for pattern, element in _HEAD:
        match = pattern.match(text, at)
        if match is None:
            raise ValueError(f'{failure} as "{layout}": cannot parse "{text[at:]}" as "{element}"')
        if element[0].isdigit():
            parts.append(int(match.group()))
        at = match.end()
    fraction = (_MICROS if micro else _FRACTION).match(text, at)
    if fraction is not None:
        at = fraction.end()
    elif micro:
        raise ValueError(f'{failure} as "{layout}": cannot parse "{text[at:]}" as ".000000"')
    zone = _ZONE.match(text, at)
    if zone is None:
        raise ValueError(f'{failure} as "{layout}": cannot parse "{text[at:]}" as "Z07:00"')
    if zone.end() != len(text):
        raise ValueError(f'{failure}: extra text: "{text[zone.end() :]}"')
    _check_ranges(failure, parts)
    micros = int((fraction.group(1) + "000000")[:6]) if fraction is not None else 0
    offset = timedelta()
    if zone.group(1):
        hours, minutes = int(zone.group(2)), int(zone.group(3))
        if hours > 24 or minutes > 60:
            raise ValueError(f"{failure}: time zone offset {'hour' if hours > 24 else 'minute'} out of range")
        offset = timedelta(hours=hours, minutes=minutes) * (-1 if zone.group(1) == "-" else 1)
    try:
        year, month, day, hour, minute, second = parts
        return datetime(year, month, day, hour, minute, second, micros, UTC) - offset
    except OverflowError:
        raise ValueError(f"{failure}: year outside of range [1,9999]") from None
    except ValueError as error:
        text = "day out of range" if "day" in str(error) else "year outside of range [1,9999]"
        raise ValueError(f"{failure}: {text}") from None


def _check_ranges(failure: str, parts: list[int]) -> None:
    _, month, day, hour, minute, second = parts
    checks = (
        (1 <= month <= 12, "month"),
        (1 <= day <= 31, "day"),
        (hour <= 23, "hour"),
        (minute <= 59, "minute"),
        (second <= 59, "second"),
    )
    for good, name in checks:
        if not good:
            raise ValueError(f"{failure}: {name} out of range")


def format_time(when: datetime) -> str:
    """`2021-02-03T04:05:06Z`; fractions of a second are cut off."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


def format_micro(when: datetime) -> str:
    """`2021-02-03T04:05:06.123456Z`."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27)


def canonical(text: str) -> str | None:
    """A time as JSON prints it again, None (null) for the zero time."""
    match = _CANONICAL.fullmatch(text)
    if match is not None and not match.group(1) and not text.startswith("000"):
        return text
    when = parse(text)
    return None if when.replace(microsecond=0) == ZERO and when == ZERO else format_time(when)


def canonical_micro(text: str) -> str | None:
    """A micro time as JSON prints it again, None (null) for the zero time."""
    match = _CANONICAL.fullmatch(text)
    if match is not None and match.group(1) and not text.startswith("000"):
        return text
    when = parse_micro(text)
    return None if when == ZERO else format_micro(when)


def now() -> str:
    """The current time by the second."""
    return from_timestamp(_clock.time())


def now_micro() -> str:
    """The current time by the microsecond."""
    return format_micro(datetime.now(UTC))


def from_timestamp(seconds: float) -> str:
    """Seconds since 1970 as RFC 3339 by the second."""
    return _clock.strftime("%Y-%m-%dT%H:%M:%SZ", _clock.gmtime(seconds))


def to_timestamp(text: str) -> float:
    """Seconds since 1970 of an RFC 3339 text; ValueError as `parse`."""
    return parse(text).timestamp()


_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PIECE: Final = Pattern(r"(\d*)(?:\.(\d*))?([^\d.]*)", re.ASCII)
_DURATION_MAX: Final = 2**63 - 1


def parse_duration(text: str) -> int:
    """Nanoseconds of a Go duration (`1h30m`, `1.5s`); ValueError with Go's text."""
    failure = f"time: invalid duration {_quoted(text)}"
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest:
        raise ValueError(failure)
    total = at = 0
    while at < len(rest):
        match = _PIECE.match(rest, at)
        if match is None or not (match.group(1) or match.group(2)):
            raise ValueError(failure)
        whole, fraction, unit = match.group(1), match.group(2) or "", match.group(3)
        if not unit:
            raise ValueError(f"time: missing unit in duration {_quoted(text)}")
        if unit not in _UNITS:
            raise ValueError(f"time: unknown unit {_quoted(unit)} in duration {_quoted(text)}")
        scale = _UNITS[unit]
        total += int(whole or "0") * scale
        if fraction:
            total += int(fraction) * scale // 10 ** len(fraction)
        at = match.end()
        if total > _DURATION_MAX + negative:
            raise ValueError(failure)
    return -total if negative else total


def _quoted(text: str) -> str:
    """As Go's package time quotes: byte by byte, everything beyond plain ASCII as a number."""
    return '"' + "".join(_byte(byte) for byte in text.encode("utf-8", "replace")) + '"'


def _byte(byte: int) -> str:
    if byte < 0x20 or byte >= 0x80:
        return f"\\x{byte:02x}"
    return f"\\{chr(byte)}" if byte in b'"\\' else chr(byte)


def format_duration(nanos: int) -> str:
    """Nanoseconds as Go prints a duration: `1h30m0s`, `1.5s`, `100ms`, `0s`."""
    if nanos == 0:
        return "0s"
    sign, rest = ("-", -nanos) if nanos < 0 else ("", nanos)
    if rest < 1_000_000_000:
        unit, scale = ("ns", 1) if rest < 1_000 else ("µs", 1_000) if rest < 1_000_000 else ("ms", 1_000_000)
        return f"{sign}{_decimal(rest, scale)}{unit}"
    seconds = rest // 1_000_000_000
    hours, minutes = seconds // 3600, seconds // 60 % 60
    tail = _decimal(rest - (seconds - seconds % 60) * 1_000_000_000, 1_000_000_000) + "s"
    if hours:
        return f"{sign}{hours}h{minutes}m{tail}"
    return f"{sign}{minutes}m{tail}" if minutes else sign + tail


def _decimal(number: int, scale: int) -> str:
    whole, part = divmod(number, scale)
    digits = len(str(scale)) - 1
    return f"{whole}.{part:0{digits}d}".rstrip("0") if part else str(whole)


def canonical_duration(text: str) -> str:
    """A Go duration as Go prints it again; ValueError with Go's text."""
    return format_duration(parse_duration(text))


def human_duration(seconds: float) -> str:
    """An age as kubectl prints it: `5m`, `3d4h`, `2y35d`; `<invalid>` for one in the future."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    if total < 0:
        return "0s"
    if total < 120:
        return f"{total}s"
    minutes, hours = total // 60, total // 3600
    if minutes < 10:
        return _pair(minutes, "m", total % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _pair(hours // 24, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{hours // 24}d"
    years, days = divmod(hours // 24, 365)
    return _pair(years, "y", days, "d") if hours < 24 * 365 * 8 else f"{years}y"


def _pair(big: int, big_unit: str, small: int, small_unit: str) -> str:
    return f"{big}{big_unit}{small}{small_unit}" if small else f"{big}{big_unit}"

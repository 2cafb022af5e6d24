"""Times and durations."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core.meta import time


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("2021-02-03T04:05:06Z", "2021-02-03T04:05:06Z"),
        ("2021-02-03T06:05:06.9+02:00", "2021-02-03T04:05:06Z"),
        ("2021-02-03T4:05:06Z", "2021-02-03T04:05:06Z"),
        ("2020-02-29T00:00:00Z", "2020-02-29T00:00:00Z"),
        ("0001-01-01T00:00:00Z", None),
        ("0009-01-01T00:00:00Z", "0009-01-01T00:00:00Z"),
    ],
)
def test_times(text: str, printed: str | None) -> None:
    assert time.canonical(text) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"'),
        ("2021-02-03", 'parsing time "2021-02-03" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'),
        ("2021-02-30T00:00:00Z", 'parsing time "2021-02-30T00:00:00Z": day out of range'),
        ("2021-13-01T00:00:00Z", 'parsing time "2021-13-01T00:00:00Z": month out of range'),
        ("2021-02-03T04:05:06Zx", 'parsing time "2021-02-03T04:05:06Zx": extra text: "x"'),
        (
            "2021-02-03T04:05:06",
            'parsing time "2021-02-03T04:05:06" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"',
        ),
    ],
)
def test_broken_times(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        time.canonical(text)
    assert str(caught.value) == message


def test_micro_times_have_six_digits() -> None:
    assert time.canonical_micro("2021-02-03T06:05:06.500000+02:00") == "2021-02-03T04:05:06.500000Z"
    assert time.canonical_micro("0001-01-01T00:00:00.000000Z") is None
    for text in ("2021-02-03T04:05:06Z", "2021-02-03T04:05:06.5Z", "2021-02-03T04:05:06.123456789Z"):
        with pytest.raises(ValueError, match=r"2006-01-02T15:04:05\.000000Z07:00"):
            time.canonical_micro(text)


ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=ZONES))
def test_any_time_survives(when: datetime) -> None:
    text = when.isoformat(timespec="microseconds")
    assert time.parse_micro(text) == when
    canonical = time.canonical_micro(text)
    assert canonical is not None
    assert time.parse(canonical) == when
    assert time.canonical_micro(canonical) == canonical
    second = time.canonical(text)
    assert second is not None
    assert time.parse(second) == when.astimezone(UTC).replace(microsecond=0)
    assert time.canonical(second) == second


def test_now_is_canonical() -> None:
    assert time.canonical(time.now()) is not None
    assert time.canonical_micro(time.now_micro()) is not None
    assert time.from_timestamp(0) == "1970-01-01T00:00:00Z"
    assert time.to_timestamp("1970-01-01T00:01:00Z") == 60


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0", "0s"),
        ("1h30m", "1h30m0s"),
        ("90m1.5s", "1h30m1.5s"),
        ("-1.5s", "-1.5s"),
        ("1ms", "1ms"),
        ("1500us", "1.5ms"),
        ("100ns", "100ns"),
        ("+5s", "5s"),
        ("1.5h", "1h30m0s"),
        ("60s", "1m0s"),
        ("1us", "1µs"),
    ],
)
def test_durations(text: str, printed: str) -> None:
    assert time.canonical_duration(text) == printed


@pytest.mark.parametrize("text", ["", "1", "h", "1x", "-", "1.", ".s", "9999999999h", "1h1"])
def test_broken_durations(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        time.parse_duration(text)


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_any_duration_survives(nanos: int) -> None:
    assert time.parse_duration(time.format_duration(nanos)) == nanos


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (5 * 3600 + 180, "5h3m"),
        (8 * 3600 + 60, "8h"),
        (48 * 3600, "2d"),
        (50 * 3600, "2d2h"),
        (9 * 86400, "9d"),
        (365 * 86400 * 3 + 5 * 86400, "3y5d"),
        (365 * 86400 * 9, "9y"),
        (365 * 86400 * 2, "2y"),
    ],
)
def test_ages(seconds: float, shown: str) -> None:
    assert time.human_duration(seconds) == shown

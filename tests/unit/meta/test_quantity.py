"""Quantities: spellings recorded from the reference, and laws."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core.meta import quantity
from fastapi_core.meta.quantity import Quantity, parse


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0.5", "500m"),
        ("1500m", "1500m"),
        ("1024Mi", "1Gi"),
        ("1073741824", "1073741824"),
        ("1.5Gi", "1536Mi"),
        ("1e3", "1e3"),
        ("1E3", "1E3"),
        ("0.0001", "100u"),
        ("1.5e9", "1500e6"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("1000000Ki", "1000000Ki"),
        ("100e-3", "100e-3"),
        ("+5k", "+5k"),
        ("0.25", "250m"),
        ("1Ei", "1Ei"),
        ("1000k", "1M"),
        ("0.1Gi", "107374182400m"),
        ("0Mi", "0"),
        ("1.", "1."),
        (".5", "500m"),
        ("2048Ki", "2Mi"),
        ("1025Mi", "1025Mi"),
        ("1000000m", "1k"),
        ("9Ei", "9223372036854775807"),
        ("00", "0"),
        ("-5m", "-5m"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("512", "512"),
        ("1000", "1k"),
        ("1023Ki", "1023Ki"),
        ("0.0000000001", "1n"),
    ],
)
def test_canonical(text: str, printed: str) -> None:
    assert quantity.canonical(text) == printed
    assert quantity.canonical(printed) == printed or text == "9Ei"


@pytest.mark.parametrize("text", ["", "a", "1K", "1e", "1.2.3", "1Gi5", "1e99999999", "--1", "1 k", "٣", "1" * 5000])
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match="quantit"):
        parse(text)


def test_resource_lists_are_rounded_up_to_thousandths() -> None:
    assert [quantity.canonical_milli(text) for text in ("0.0001", "5n", "1u", "1Gi", "-0.0001")] == [
        "1m",
        "1m",
        "1m",
        "1Gi",
        "-1m",
    ]


def test_numbers_are_read_as_texts() -> None:
    assert [quantity.from_json(value) for value in (3, 0.25, None, "1")] == ["3", "250m", "0", "1"]
    for value in (True, [], {}):
        with pytest.raises(ValueError, match="regular expression"):
            quantity.from_json(value)


def test_arithmetic() -> None:
    assert str(parse("1") + parse("500m")) == "1500m"
    assert str(parse("1Gi") + parse("1Gi")) == "2Gi"
    assert str(parse("0") + parse("1Gi")) == "1Gi"
    assert str(parse("2") - parse("1500m")) == "500m"
    assert (parse("1500m").value, parse("1500m").milli, parse("-1500m").value) == (2, 1500, -2)
    assert parse("1Ki") == parse("1024")
    assert parse("1Ki") > parse("1k")


SUFFIXES = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
    "e2": 2,
    "E-1": -1,
    "e+4": 4,
}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50}


@given(
    st.sampled_from(["", "+", "-"]),
    st.integers(0, 10**12),
    st.one_of(st.none(), st.integers(0, 999)),
    st.sampled_from([*SUFFIXES, *BINARY]),
)
def test_value_survives(sign: str, whole: int, part: int | None, suffix: str) -> None:
    text = f"{sign}{whole}" + ("" if part is None else f".{part:03d}") + suffix
    exact = Fraction(f"{whole}.{0 if part is None else part:03d}")
    exact *= Fraction(2) ** BINARY[suffix] if suffix in BINARY else Fraction(10) ** SUFFIXES[suffix]
    nanos = -(-exact * 10**9 // 1)
    if suffix in BINARY:
        nanos = min(nanos, quantity.INT64_MAX * 10**9)
    parsed = parse(text)
    assert abs(parsed.nanos) == nanos
    again = parse(str(parsed))
    assert again == parsed
    assert str(again) == str(parsed)


AMOUNTS = st.integers(-(10**30), 10**30).map(Quantity)


@given(AMOUNTS, AMOUNTS, st.sampled_from([quantity.DECIMAL_SI, quantity.BINARY_SI, quantity.DECIMAL_EXPONENT]))
def test_sums_and_order(left: Quantity, right: Quantity, form: str) -> None:
    assert left + right == right + left
    assert (left + right) - right == left
    assert (left < right) == (left.nanos < right.nanos)
    assert (left <= right) or (right <= left)
    shown = Quantity(left.nanos, form)
    if abs(left.nanos) < quantity.INT64_MAX * 10**9:
        assert parse(str(shown)) == left
    assert shown.round_up(0).nanos % 10**9 == 0
    assert abs(shown.round_up(-3).nanos - left.nanos) < 10**6


@given(st.text(alphabet="0123456789.eEkKMGiumn+-", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parsed = parse(text)
    except ValueError:
        return
    assert parse(str(parsed)) == parsed

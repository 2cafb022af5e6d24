from __future__ import annotations

import re
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from fastapi_core.filters.headers import AuditIds, warning_values


def test_each_text_once_in_order_and_quoted() -> None:
    assert warning_values(['say "a\\b"', "z", 'say "a\\b"', ""]) == [b'299 - "say \\"a\\\\b\\""', b'299 - "z"']


def test_control_characters_are_left_out() -> None:
    assert warning_values(["a\nb", "\x00", "\x85", "fine"]) == [b'299 - "fine"']


def test_halves_of_characters_are_replaced() -> None:
    assert warning_values(["a\ud800b"]) == ['299 - "a\ufffdb"'.encode()]


def test_up_to_the_total_nothing_is_cut() -> None:
    assert [len(v) for v in warning_values(["a" * 3000, "b" * 1096])] == [3008, 1104]


def test_above_the_total_every_text_is_cut() -> None:
    values = warning_values(["a" * 3000, "b" * 1097, "c"])
    assert values == [b'299 - "' + b"a" * 256 + b'"', b'299 - "' + b"b" * 256 + b'"', b'299 - "c"']


def test_what_still_overflows_is_dropped() -> None:
    values = warning_values([f"{n:03d}" + "x" * 300 for n in range(40)])
    assert len(values) == 16


def test_characters_count_not_bytes() -> None:
    assert warning_values(["ü" * 4096])[0].decode() == '299 - "' + "ü" * 4096 + '"'


@given(st.lists(st.text(st.characters(), max_size=600), max_size=30))
def test_any_texts_make_valid_header_values_of_bounded_size(texts: list[str]) -> None:
    values = warning_values(texts)
    assert sum(len(re.sub(r"\\(.)", r"\1", v.decode()[7:-1])) for v in values) <= 4096 + 256
    assert not any(b"\n" in v or b"\r" in v for v in values)
    assert len(set(values)) == len(values) or sum(map(len, texts)) > 4096


def test_audit_ids_are_distinct_version_4_uuids() -> None:
    new = AuditIds()
    ids = [new() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert all(UUID(text).version == 4 and str(UUID(text)) == text for text in ids)
    assert AuditIds()()[:24] != ids[0][:24]

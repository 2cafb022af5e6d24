"""Lists joined from what groups add: the same as made anew, whatever has changed on the way."""

from __future__ import annotations

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.aggregation.discovery import Joined

CHANGES = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.integers(-3, 3), st.sampled_from([b"", b"1", b"2"])), max_size=40
)


@settings(max_examples=200, deadline=None)
@given(CHANGES, st.sets(st.integers(0, 40)))
def test_every_change_is_there_in_its_place(changes: list[tuple[str, int, bytes]], asked: set[int]) -> None:
    joined = Joined(b'{"items":[')
    present: dict[str, tuple[int, bytes]] = {}
    for number, (group, rank, part) in enumerate(changes):
        joined.put(group, rank, part)
        present.pop(group, None)
        if part:
            present[group] = rank, part
        if number in asked:
            in_order = sorted((rank, group, part) for group, (rank, part) in present.items())
            assert orjson.loads(joined.document.json)["items"] == [int(part) for _, _, part in in_order]


def test_what_is_the_same_again_is_not_joined_again() -> None:
    joined = Joined(b"[")
    joined.put("a", 1, b"1")
    made = joined.document
    joined.put("a", 1, b"1")
    assert joined.document is made
    joined.put("a", 2, b"1")
    assert joined.document is not made

"""Lists joined from what groups add: the same as made anew, whatever has changed on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.aggregation.directory import APIService, Backing
from fastapi_core.aggregation.discovery import DiscoveryView, Joined
from fastapi_core.discovery.documents import DiscoveryDocuments
from fastapi_core.discovery.live import LiveDocuments

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


class Published:
    """Without any entries."""

    entries: dict[str, Any] = {}  # noqa: RUF012

    def listen(self, changed: Callable[[str], object]) -> None:
        """Nothing changes."""


class Directory:
    """Of as many groups as have been registered."""

    def __init__(self) -> None:
        self.services: dict[str, tuple[APIService, ...]] = {}
        self.tell: Callable[[str], None] = lambda group: None

    @property
    def groups(self) -> list[str]:
        return list(self.services)

    def group(self, name: str) -> tuple[APIService, ...]:
        return self.services.get(name, ())

    def listen_groups(self, noted: Callable[[str], None]) -> None:
        self.tell = noted

    def register(self, number: int) -> None:
        backing = Backing("n", "s", 443)
        now = APIService(f"v1.g{number}", f"g{number}", "v1", number, 1, backing, True, b"", available=True, uid="u")
        self.services[now.group] = (now,)
        self.tell(now.group)


async def test_hundreds_of_changes_are_seen_to_before_somebody_asks() -> None:
    directory = Directory()
    for number in range(200):
        directory.register(number)
    live = LiveDocuments(DiscoveryDocuments(()), ())
    view = DiscoveryView(live, cast(Any, directory), cast(Any, Published()))
    async with asyncio.timeout(5):
        while len(view._changed) > 32:
            await asyncio.sleep(0.001)
    for number in range(200, 300):
        directory.register(number)
    async with asyncio.timeout(5):
        while len(view._changed) > 32:
            await asyncio.sleep(0.001)
    names = [group["name"] for group in view(None).group_list.tree["groups"]]
    assert names == [f"g{number}" for number in range(299, -1, -1)]
    assert len(view(None).aggregated_groups.tree["items"]) == 300

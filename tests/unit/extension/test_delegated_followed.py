"""An object that is followed: listed, watched, and listed again when the watch cannot go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from fastapi_core.authn.outbound import OutboundError
from fastapi_core.errors import APIError
from fastapi_core.extension.delegated.followed import Followed

COLLECTION = "/api/v1/namespaces/kube-system/configmaps"


def item(version: str, name: str = "cm", **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": version}, "data": data}


def event(kind: str, tree: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": tree}


class Script:
    """A client that answers one step after the other: ("list", answer) or ("watch", events, error)."""

    def __init__(self, *steps: tuple[Any, ...]) -> None:
        self.steps = list(steps)
        self.asked: list[tuple[str, str]] = []
        self.done = asyncio.Event()

    def _next(self, kind: str, path: str) -> tuple[Any, ...]:
        query = parse_qs(urlsplit(path).query)
        assert query["fieldSelector"] == ["metadata.name=cm"]
        self.asked.append((kind, query.get("resourceVersion", [""])[0]))
        if not self.steps:
            self.done.set()
            return (kind, asyncio.Future())
        step = self.steps.pop(0)
        assert step[0] == kind, (step, self.asked)
        return step

    async def get(self, path: str) -> Any:
        answer = self._next("list", path)[1]
        if isinstance(answer, Exception):
            raise answer
        return await answer if isinstance(answer, asyncio.Future) else answer

    async def find(self, path: str) -> Any:
        assert path == f"{COLLECTION}/cm"
        return item("1")

    async def watch(self, path: str) -> AsyncGenerator[Any, None]:
        step = self._next("watch", path)
        if isinstance(step[1], asyncio.Future):
            await step[1]
        for found in step[1]:
            yield found
        if len(step) > 2:
            raise step[2]


async def followed(script: Script) -> tuple[list[Any], list[float]]:
    """What was told until the script is at its end, and the pauses in between."""
    told: list[Any] = []
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    client: Any = script
    found = Followed(client, COLLECTION, "cm", told.append, pause=pause)
    await found.start()
    await asyncio.wait_for(script.done.wait(), 10)
    await found.stop()
    return told, pauses


def listing(version: str, *items: Any) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": version}, "items": list(items)}


async def test_states_and_changes_are_told_in_order() -> None:
    script = Script(
        ("list", listing("5", item("3", a="1"))),
        (
            "watch",
            [event("MODIFIED", item("6", a="2")), event("BOOKMARK", item("9", "")), event("DELETED", item("10"))],
        ),
        ("watch", [event("ADDED", item("11", a="3")), event("ADDED", item("12", "other"))]),
    )
    told, pauses = await followed(script)
    assert told == [item("3", a="1"), item("6", a="2"), None, item("11", a="3")]
    assert script.asked == [("list", ""), ("watch", "5"), ("watch", "10"), ("watch", "12")]
    assert pauses == []


async def test_what_is_not_there_is_waited_for() -> None:
    told, _ = await followed(Script(("list", listing("5")), ("watch", [event("ADDED", item("6"))])))
    assert told == [None, item("6")]


async def test_a_watch_that_is_too_old_begins_anew() -> None:
    gone = event("ERROR", {"kind": "Status", "code": 410})
    script = Script(
        ("list", listing("5", item("3"))),
        ("watch", [gone]),
        ("list", listing("20", item("20"))),
        ("watch", [], APIError("Expired", "too old")),
        ("list", listing("30", item("30"))),
    )
    told, pauses = await followed(script)
    assert [tree["metadata"]["resourceVersion"] for tree in told] == ["3", "20", "30"]
    assert script.asked[-1] == ("watch", "30")
    assert len(pauses) == 2


async def test_a_connection_that_breaks_goes_on_where_it_was() -> None:
    script = Script(
        ("list", listing("5", item("3"))),
        ("watch", [event("MODIFIED", item("7"))], OutboundError("cut")),
        ("watch", [], OutboundError("cut")),
        ("watch", [event("MODIFIED", item("8"))]),
    )
    told, pauses = await followed(script)
    assert script.asked == [("list", ""), ("watch", "5"), ("watch", "7"), ("watch", "7"), ("watch", "8")]
    assert len(told) == 3
    # Longer and longer, with a part that is left to chance.
    assert 0.8 <= pauses[0] <= 1.2
    assert 1.6 <= pauses[1] <= 2.4


async def test_a_server_that_is_away_is_asked_ever_less_often() -> None:
    away: list[tuple[Any, ...]] = [("list", OutboundError("away"))] * 4
    refused: list[tuple[Any, ...]] = [("list", APIError("Forbidden", "no"))] * 8
    told, pauses = await followed(Script(*away, *refused, ("list", listing("1", item("1")))))
    assert told == [item("1")]
    assert pauses == sorted(pauses[:6]) + pauses[6:]
    assert all(30.0 <= pause <= 45.0 for pause in pauses[6:])


async def test_watches_that_end_at_once_do_not_make_us_busy() -> None:
    steps: list[tuple[Any, ...]] = [("watch", [])] * 3
    _, pauses = await followed(Script(("list", listing("5")), *steps))
    assert len(pauses) == 3
    assert pauses[2] >= 3.2


async def test_reading_it_once() -> None:
    told: list[Any] = []
    client: Any = Script()
    await Followed(client, COLLECTION, "cm", told.append).look()
    assert told == [item("1")]


async def test_who_cannot_take_it_is_told_again() -> None:
    told: list[Any] = []

    def changed(tree: Any) -> None:
        told.append(tree)
        if len(told) == 1:
            raise ValueError("not now")

    async def pause(seconds: float) -> None:
        pass

    script = Script(("list", listing("1", item("1"))), ("list", listing("2", item("2"))))
    client: Any = script
    found = Followed(client, COLLECTION, "cm", changed, pause=pause)
    await found.start()
    await asyncio.wait_for(script.done.wait(), 10)
    await found.stop()
    assert told == [item("1"), item("2")]


@pytest.mark.parametrize("broken", [{}, {"items": None}, {"items": ["x", {"metadata": 3}]}])
async def test_lists_that_make_no_sense_hold_nothing(broken: dict[str, Any]) -> None:
    told, _ = await followed(Script(("list", broken), ("list", broken)))
    assert told == [None, None]

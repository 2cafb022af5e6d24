"""Lines of an answer that goes on: whatever pieces it comes in, and however it ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.extension.delegated.lines import LONGEST, Lines
from fastapi_core.http.client import UpstreamError


class Wire:
    """The connection behind the lines."""

    def __init__(self) -> None:
        self.paused = False
        self.failed: UpstreamError | None = None

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def fail(self, error: UpstreamError) -> None:
        self.failed = error


def lines(status: int = 200) -> tuple[Lines, Wire]:
    wire: Any = Wire()
    found = Lines(wire)
    found.head(status, [], -1)
    return found, wire


async def collected(found: Lines) -> list[bytes]:
    return [line async for line in found.all()]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=8).map(lambda b: b.replace(b"x", b"\n")), max_size=12), st.booleans())
def test_pieces_make_no_difference(pieces: list[bytes], while_waiting: bool) -> None:
    async def run() -> list[bytes]:
        found, _ = lines()
        task = asyncio.create_task(collected(found))
        for piece in pieces:
            if piece:
                found.data(piece)
                found.settle()
            if while_waiting:
                await asyncio.sleep(0)
        found.end(())
        return await task

    assert asyncio.run(run()) == [line for line in b"".join(pieces).split(b"\n") if line]


async def test_an_answer_that_breaks_off_tells_what_was_whole() -> None:
    found, _ = lines()
    found.data(b"one\ntwo\nthr")
    found.failed(UpstreamError("unexpected EOF"), untouched=False)
    events, seen = found.all(), []
    seen += [await anext(events), await anext(events)]
    with pytest.raises(UpstreamError, match="unexpected EOF"):
        await anext(events)
    assert seen == [b"one", b"two"]


async def test_an_error_is_one_line_however_it_is_laid_out() -> None:
    found, _ = lines(403)
    task = asyncio.create_task(collected(found))
    for piece in (b'{\n "kind": ', b'"Status"\n}\n'):
        found.data(piece)
        found.settle()
        await asyncio.sleep(0)
    found.end(())
    assert await task == [b'{\n "kind": "Status"\n}\n']


async def test_who_is_behind_makes_the_other_side_wait() -> None:
    found, wire = lines()
    found.data(b"a" * (1 << 20) + b"\nb")
    found.settle()
    assert wire.paused
    events = found.all()
    assert len(await anext(events)) == 1 << 20
    assert not wire.paused
    await events.aclose()  # type: ignore[attr-defined]


def test_a_line_that_does_not_end_ends_the_connection() -> None:
    found, wire = lines()
    found.data(b"a" * (LONGEST + 1))
    found.settle()
    assert "does not end" in str(wire.failed)

"""A short run of every fuzz target; `make fuzz SECONDS=...` is the long one."""

from __future__ import annotations

import random

import pytest

from tests.fuzz import engine
from tests.fuzz.targets import TARGETS, Target

INPUTS = 400


@pytest.mark.parametrize("name", TARGETS)
def test_short_run(name: str) -> None:
    tries = iter(range(INPUTS))
    assert engine.fuzz(name, random.Random(), lambda: next(tries, None) is not None) == INPUTS


def test_the_engine_finds_and_shrinks(monkeypatch: pytest.MonkeyPatch) -> None:
    def fragile(data: bytes) -> None:
        if b"ab" in data:
            raise IndexError

    monkeypatch.setitem(TARGETS, "fragile", Target(fragile, (b"xyz",), (b"a", b"b")))
    with pytest.raises(engine.FoundError) as found:
        engine.fuzz("fragile", random.Random(1), lambda: True)
    assert "b'ab'" in str(found.value.__context__ or found.value) or "ab" in str(found.value)
    assert engine.shrink("fragile", b"xx ab yy") == b"ab"

"""kill -9 of a whole server under load over TLS: see `killing` for what must hold."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.adversity import killing

pytestmark = pytest.mark.adversity


def test_nothing_acknowledged_is_lost_and_watchers_resume(tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    ledger = killing.run(tmp_path / "data", rounds=3, seed=seed)
    assert ledger.writes >= 120
    assert len(ledger.seen) >= ledger.writes


def test_the_check_sees_holes_and_repeats() -> None:
    """The judge itself: histories that must not pass."""
    good = [killing.Seen("ADDED", "a", 1, 5), killing.Seen("MODIFIED", "a", 2, 6), killing.Seen("DELETED", "a", 2, 7)]
    assert killing.replay(good) == {}
    for bad in (good[:1] + good[:1], [good[0], killing.Seen("MODIFIED", "a", 3, 6)], [good[1]], good[::-1]):
        with pytest.raises((AssertionError, KeyError)):
            killing.replay(bad)

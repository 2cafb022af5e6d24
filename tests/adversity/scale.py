"""How much adversity: short in tests, `FASTAPI_CORE_SOAK` times as long for `make soak`."""

from __future__ import annotations

import os

FACTOR = int(os.environ.get("FASTAPI_CORE_SOAK", "1"))


def scaled(rounds: int) -> int:
    """As many rounds as are wanted now."""
    return rounds * FACTOR

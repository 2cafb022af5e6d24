"""Flags of flow control: how much is served at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class FlowControl:
    """How much is served at once."""


def check(group: FlowControl) -> list[str]:
    """Everything that is wrong, each line with the flag and the fix."""
    return []

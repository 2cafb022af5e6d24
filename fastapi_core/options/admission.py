"""Flags of admission: which gates objects pass."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Admission:
    """Which gates objects pass."""


def check(group: Admission) -> list[str]:
    """Everything that is wrong, each line with the flag and the fix."""
    return []

"""Flags of audit: what is written down about requests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Audit:
    """What is written down about requests."""


def check(group: Audit) -> list[str]:
    """Everything that is wrong, each line with the flag and the fix."""
    return []

"""Flags of authorization: who may do what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Authorization:
    """Who may do what."""


def check(group: Authorization) -> list[str]:
    """Everything that is wrong, each line with the flag and the fix."""
    return []

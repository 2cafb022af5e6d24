"""How seats are divided: nominal limits from shares, and current limits from what each level has lately asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

#: A level that asks for nothing still gets a place in the proportions.
_LEAST = 0.001
_SLACK = 1e-7


class Bounds(NamedTuple):
    """Limits of a level in seats: `nominal` by its shares, lending down to `least`, borrowing up to `most`."""

    nominal: int
    least: int
    most: int


def bounds(total: int, shares: int, all_shares: float, lendable: int, borrowing: int | None) -> Bounds:
    """Limits of a level with `shares` of `all_shares`; percentages as the object gives them."""
    nominal = math.ceil(total * shares / all_shares) if all_shares else 0
    lent = half_up(nominal * lendable / 100)
    borrowed = total if borrowing is None else half_up(nominal * borrowing / 100)
    return Bounds(nominal, nominal - lent, nominal + borrowed)


def half_up(value: float) -> int:
    """Rounded with halves away from zero; for values that are not negative."""
    return math.floor(value + 0.5)


class Claim(NamedTuple):
    """What one level wants, and between which limits it can have it; least <= target."""

    target: float
    least: float
    most: float


class Division(NamedTuple):
    seats: list[float]
    fraction: float
    """What everybody who is not held by a limit gets of his target."""


def divide(total: float, claims: Sequence[Claim]) -> Division:
    """Divide `total` so that all get the same fraction of their target, except who is held by a limit.

    Raises ValueError when the limits do not allow that sum.
    """
    lowest, highest = sum(c.least for c in claims), sum(c.most for c in claims)
    if lowest - total > _SLACK or total - highest > _SLACK:
        raise ValueError(f"{total} seats cannot be divided between limits of {lowest} and {highest}")
    if total == 0:
        return Division([0.0] * len(claims), 0.0)
    targets = [max(c.target, _LEAST) for c in claims]
    corners = sorted({limit / t for c, t in zip(claims, targets, strict=True) for limit in (c.least, c.most)})

    def given(fraction: float) -> list[float]:
        return [max(c.least, min(c.most, fraction * t)) for c, t in zip(claims, targets, strict=True)]

    # The sum grows with the fraction, in straight lines between the corners: find the line it crosses `total` on.
    low, high = 0, len(corners) - 1
    while low < high:
        middle = (low + high) // 2
        if sum(given(corners[middle])) >= total - _SLACK:
            high = middle
        else:
            low = middle + 1
    upper = corners[low]
    lower = corners[low - 1] if low else 0.0
    below, above = sum(given(lower)), sum(given(upper))
    if above - below > _SLACK:
        upper = lower + (upper - lower) * min(1.0, max(0.0, (total - below) / (above - below)))
    return Division(given(upper), upper)

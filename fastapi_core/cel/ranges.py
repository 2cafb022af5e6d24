"""Ranges of sizes and costs, in numbers of 64 bits that stop at the top."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

TOP: Final = 2**64 - 1


class Range(NamedTuple):
    """Least and most of a size or of a cost; sums and products stop at `TOP`."""

    low: int
    high: int

    def plus(self, other: Range) -> Range:
        return Range(min(self.low + other.low, TOP), min(self.high + other.high, TOP))

    def times(self, other: Range) -> Range:
        return Range(min(self.low * other.low, TOP), min(self.high * other.high, TOP))

    def scaled(self, factor: float) -> Range:
        return Range(_scaled(self.low, factor), _scaled(self.high, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))


def _scaled(number: int, factor: float) -> int:
    if factor > 0 and number > TOP / factor:
        return TOP
    return min(math.ceil(float(number) * factor), TOP)


def exactly(number: int) -> Range:
    return Range(number, number)


UNKNOWN: Final = Range(0, TOP)
NOTHING: Final = exactly(0)
ONE: Final = exactly(1)

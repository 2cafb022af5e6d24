"""What a priority level has lately asked for: seats in use and waited for, averaged over time and smoothed."""

from __future__ import annotations

import math

#: How much of the smoothed demand is kept at each adjustment when demand falls.
_KEPT = 0.977


class Demand:
    """Integrals of the demand since the last `settle`, and the figures of the period before it.

    The queue set adds to `area` and `squares` and raises `peak` itself: that happens twice a request.
    """

    __slots__ = ("area", "average", "began", "deviation", "high", "peak", "smoothed", "squares")

    def __init__(self, now: float) -> None:
        self.began = now
        self.area = 0.0
        """Seats times seconds."""
        self.squares = 0.0
        """Squared seats times seconds."""
        self.peak = 0
        self.high = 0
        self.average = 0.0
        self.deviation = 0.0
        self.smoothed = 0.0

    def settle(self, now: float, current: int) -> None:
        """End the period: its figures become `high`, `average`, `deviation` and move `smoothed`.

        `current` seats are asked for at this moment, the integrals must be up to it.
        """
        seconds = now - self.began
        self.high = self.peak
        if seconds > 0:
            self.average = self.area / seconds
            self.deviation = math.sqrt(max(0.0, self.squares / seconds - self.average**2))
            envelope = self.average + self.deviation
            self.smoothed = max(envelope, _KEPT * self.smoothed + (1 - _KEPT) * envelope)
        self.began, self.area, self.squares, self.peak = now, 0.0, 0.0, current

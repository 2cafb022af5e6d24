"""How long refused clients are told to stay away: doubled while too many come back, lowered when they stay away."""

from __future__ import annotations

from collections import deque

_LONGEST = 32


class RetryAfter:
    """Of one priority level. Times are whole seconds of any clock that does not go back."""

    __slots__ = ("_counts", "_doubled", "_refused", "_second", "seconds")

    def __init__(self) -> None:
        self.seconds = 1
        self._second = 0
        self._refused = 0
        self._counts: deque[tuple[int, int]] = deque()
        """(second, refusals in it) of the past; no more than matters."""
        self._doubled = 0

    def refused(self, now: int) -> int:
        """Note a refusal; answers the seconds to tell the client."""
        if now == self._second:
            self._refused += 1
            return self.seconds
        self._counts.append((self._second, self._refused))
        keep = min(2 * self.seconds, _LONGEST)
        while self._second - self._counts[0][0] > keep:
            self._counts.popleft()
        self._second, self._refused = now, 1
        recent = sum(count for second, count in self._counts if now - second <= self.seconds)
        if now - self._doubled >= self.seconds and recent >= 3 * self.seconds:
            self.seconds = min(2 * self.seconds, _LONGEST)
            self._doubled = now
        elif recent < self.seconds and self.seconds > 1:
            self.seconds -= 1
        return self.seconds

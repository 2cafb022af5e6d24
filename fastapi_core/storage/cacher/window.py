"""The newest changes of one resource: the backlog of watchers and the way back to a recent revision."""

from __future__ import annotations

from collections import deque

from fastapi_core._ext.objects import CachedObject
from fastapi_core.storage.cacher.changes import Change

#: Bounds of one resource's window. The reference keeps 100 to 102,400 events; what falls out of here is still in
#: the storage's history, so the bounds decide on speed only.
WINDOW_COUNT = 8192
WINDOW_BYTES = 8 << 20


class Window:
    """Every change with a revision above `low`, oldest first."""

    __slots__ = ("_changes", "_count", "_limit", "low", "size")

    def __init__(self, low: int, count: int = WINDOW_COUNT, limit: int = WINDOW_BYTES) -> None:
        self._changes: deque[Change] = deque()
        self._count = count
        self._limit = limit
        self.low = low
        self.size = 0

    def __len__(self) -> int:
        return len(self._changes)

    def append(self, change: Change) -> None:
        self._changes.append(change)
        self.size += change.size()
        while self._changes and (len(self._changes) > self._count or self.size > self._limit):
            oldest = self._changes.popleft()
            self.size -= oldest.size()
            self.low = oldest.revision

    def reset(self, low: int) -> None:
        """Forget everything up to `low`."""
        self._changes.clear()
        self.size = 0
        self.low = low

    def since(self, revision: int) -> list[Change]:
        """Changes above `revision`, which is not below `low`, oldest first."""
        found = []
        for change in reversed(self._changes):
            if change.revision <= revision:
                break
            found.append(change)
        found.reverse()
        return found

    def undo(self, revision: int) -> dict[str, CachedObject | None]:
        """What differs from the present at `revision` (not below `low`): state per key, None where there was none."""
        states: dict[str, CachedObject | None] = {}
        for change in reversed(self._changes):
            if change.revision <= revision:
                break
            states[change.object.key] = change.previous
        return states

"""The current objects of one resource in key order."""

from __future__ import annotations

from bisect import bisect_left

from fastapi_core._ext.objects import CachedObject
from fastapi_core.storage.keys import prefix_end

#: So many changed keys are put into the lists one by one; with more of them the lists are made anew.
FEW = 64
#: So many may wait to be put there (more where there are very many keys): the lists hold on to what they had before.
LATE, LATE_SHARE = 1024, 64


class ObjectStore:
    """A dict for single keys, and two lists side by side so that a range is a slice.

    The lists are brought up to date when a range is asked for: most writes are only told to watchers, and finding and making
    room in lists of very many keys costs more than all else that is done for them here.
    Keys sort as strings, which for UTF-8 is the order of their bytes: `x-b/` comes before `x/`.
    """

    __slots__ = ("_late", "by_key", "keys", "objects", "size")

    def __init__(self) -> None:
        self.by_key: dict[str, CachedObject] = {}
        self.keys: list[str] = []
        """As of the last `bounds`, like `objects`."""
        self.objects: list[CachedObject] = []
        self.size = 0
        self._late: dict[str, bool] = {}
        """Keys that have changed since, and whether they are in the lists."""

    def append(self, obj: CachedObject) -> None:
        """Put an object whose key is beyond all others: the fast way to load."""
        self.by_key[obj.key] = obj
        self.keys.append(obj.key)
        self.objects.append(obj)
        self.size += len(obj.body)

    def put(self, obj: CachedObject) -> CachedObject | None:
        """Set an object; returns the state before."""
        key = obj.key
        previous = self.by_key.get(key)
        self.by_key[key] = obj
        self.size += len(obj.body)
        if previous is not None:
            self.size -= len(previous.body)
        if key not in self._late:
            self._note(key, previous is not None)
        return previous

    def remove(self, key: str) -> CachedObject | None:
        """Drop a key; returns the state before."""
        previous = self.by_key.pop(key, None)
        if previous is not None:
            self.size -= len(previous.body)
            if key not in self._late:
                self._note(key, True)
        return previous

    def bounds(self, prefix: str, start: str = "") -> tuple[int, int]:
        """Index range of the keys with `prefix`, from `start` on."""
        if self._late:
            self._settle()
        low = bisect_left(self.keys, max(prefix, start))
        high = bisect_left(self.keys, prefix_end(prefix), low)
        return low, high

    def _note(self, key: str, listed: bool) -> None:
        late = self._late
        late[key] = listed
        if len(late) >= LATE and len(late) * LATE_SHARE >= len(self.keys):
            self._settle()

    def _settle(self) -> None:
        late, self._late = self._late, {}
        if len(late) > FEW:
            self._renew(late)
            return
        keys, objects = self.keys, self.objects
        for key, listed in late.items():
            obj = self.by_key.get(key)
            at = bisect_left(keys, key)
            if obj is None:
                if listed:
                    del keys[at]
                    del objects[at]
            elif listed:
                objects[at] = obj
            else:
                keys.insert(at, key)
                objects.insert(at, obj)

    def _renew(self, late: dict[str, bool]) -> None:
        """Make the lists anew. Sorting what is in order but for its end is merging."""
        by_key = self.by_key
        keys = self.keys
        if any(listed and key not in by_key for key, listed in late.items()):
            keys = [key for key in keys if key in by_key]
        keys += sorted(key for key, listed in late.items() if not listed and key in by_key)
        keys.sort()
        self.keys = keys
        self.objects = list(map(by_key.__getitem__, keys))

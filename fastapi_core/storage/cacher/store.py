"""The current objects of one resource in key order."""

from __future__ import annotations

from bisect import bisect_left

from fastapi_core._ext.objects import CachedObject
from fastapi_core.storage.keys import prefix_end


class ObjectStore:
    """A dict for single keys, and two lists side by side so that a range is a slice.

    Keys sort as strings, which for UTF-8 is the order of their bytes: `x-b/` comes before `x/`.
    """

    __slots__ = ("by_key", "keys", "objects", "size")

    def __init__(self) -> None:
        self.by_key: dict[str, CachedObject] = {}
        self.keys: list[str] = []
        self.objects: list[CachedObject] = []
        self.size = 0

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
        at = bisect_left(self.keys, key)
        if previous is None:
            self.keys.insert(at, key)
            self.objects.insert(at, obj)
        else:
            self.objects[at] = obj
            self.size -= len(previous.body)
        self.by_key[key] = obj
        self.size += len(obj.body)
        return previous

    def remove(self, key: str) -> CachedObject | None:
        """Drop a key; returns the state before."""
        previous = self.by_key.pop(key, None)
        if previous is not None:
            at = bisect_left(self.keys, key)
            del self.keys[at]
            del self.objects[at]
            self.size -= len(previous.body)
        return previous

    def bounds(self, prefix: str, start: str = "") -> tuple[int, int]:
        """Index range of the keys with `prefix`, from `start` on."""
        low = bisect_left(self.keys, max(prefix, start))
        high = bisect_left(self.keys, prefix_end(prefix), low)
        return low, high

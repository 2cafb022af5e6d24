"""How many seats a request takes: reads of many objects by their bytes, writes by the watches that will see them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from fastapi_core.flow.queues import ONE, Estimate

if TYPE_CHECKING:
    from fastapi_core._ext.reqinfo import RequestInfo
    from fastapi_core.flow.control import Flow

#: (objects, bytes) stored of (group, resource); None when they are not stored here.
Sizes = Callable[[str, str], "tuple[int, int] | None"]

BYTES_PER_SEAT = 100_000
#: Bytes a list from the cache occupies at most at once: it is sent piece by piece.
CACHED_BYTES = 1_000_000
LIST_SEATS = 100
WRITE_SEATS = 10
WATCHES_PER_SEAT = 10
#: Seconds of a seat that `WATCHES_PER_SEAT` watches cost.
EVENT_SECONDS = 0.005
_WRITES = frozenset({"create", "update", "patch", "delete"})

WatchKey = tuple[str, str, str, str]


class Watches:
    """How many watches there are of a resource, of a namespace in it, of one object."""

    def __init__(self) -> None:
        self._counts: dict[WatchKey, int] = {}

    def add(self, info: RequestInfo) -> Callable[[], None] | None:
        """Count a watch; call the answer when it ends. None for one that sees next to nothing of what happens."""
        if info.resource == "pods" and _of_one_node(info.field_selector):
            return None
        key = (info.api_group, info.resource, info.namespace, info.name)
        counts = self._counts
        counts[key] = counts.get(key, 0) + 1

        def forget() -> None:
            left = counts[key] - 1
            if left:
                counts[key] = left
            else:
                del counts[key]

        return forget

    def seeing(self, info: RequestInfo) -> int:
        """Watches that see a write."""
        counts = self._counts
        if not counts:
            return 0
        group, resource, namespace, name = info.api_group, info.resource, info.namespace, info.name
        found = counts.get((group, resource, "", ""), 0)
        if namespace:
            found += counts.get((group, resource, namespace, ""), 0)
        if name:
            found += counts.get((group, resource, namespace, name), 0)
        return found


def _of_one_node(selector: str) -> bool:
    for term in selector.split(","):
        field, equals, value = term.partition("=")
        if field == "spec.nodeName" and equals and value.lstrip("="):
            return True
    return False


class Estimator:
    """`sizes` tells what is stored, `watches` who looks."""

    def __init__(self, sizes: Sizes, watches: Watches) -> None:
        self.watches = watches
        self._sizes = sizes

    def __call__(self, info: RequestInfo, flow: Flow) -> Estimate:
        verb = info.verb
        if verb == "get" or not info.is_resource_request:
            return ONE
        if verb in _WRITES:
            watches = self.watches.seeing(info)
            if not watches:
                flow.lane.unseen += 1
                return ONE
            return self._write(info, flow, watches)
        if verb == "list" or verb == "watch":
            return self._read(info, flow.level.max_seats)
        return ONE

    def _read(self, info: RequestInfo, most: int) -> Estimate:
        if info.verb == "watch" and not _sends_objects(info):
            return ONE
        stored = self._sizes(info.api_group, info.resource)
        if stored is None:
            return ONE
        objects, size = stored
        if not objects:
            return ONE
        loaded = objects
        limit = _integer(info.first("limit"))
        if 0 < limit < objects:
            loaded = limit
        cached = info.verb == "watch" or _from_cache(info)
        if info.name:
            loaded = 1
        elif not cached and (info.field_selector or info.label_selector):
            loaded = max(loaded, objects // 2)
        used = loaded * (size // objects)
        if cached:
            used = min(used, CACHED_BYTES)
        seats = min(math.ceil(used / BYTES_PER_SEAT), most or LIST_SEATS, LIST_SEATS)
        return Estimate(seats) if seats > 1 else ONE

    def _write(self, info: RequestInfo, flow: Flow, watches: int) -> Estimate:
        if info.subresource == "token" and info.resource == "serviceaccounts":
            # Makes no event.
            return ONE
        flow.lane.watched(watches)
        if watches < WATCHES_PER_SEAT:
            return ONE
        seats = math.ceil(watches / WATCHES_PER_SEAT)
        work = seats * EVENT_SECONDS
        final = min(seats, flow.level.max_seats or WRITE_SEATS, WRITE_SEATS)
        return Estimate(1, final, work / final)


def _sends_objects(info: RequestInfo) -> bool:
    """Whether a watch begins with all there is."""
    if info.first("resourceVersion") in ("", "0"):
        return True
    return info.first("sendInitialEvents").lower() in ("true", "1")


def _from_cache(info: RequestInfo) -> bool:
    """Whether a list is of the newest state."""
    query = info.query
    if not query:
        return True
    match = info.first("resourceVersionMatch")
    if match:
        return match == "NotOlderThan"
    if info.first("continue"):
        return False
    return not (_integer(info.first("limit")) > 0 and info.first("resourceVersion") not in ("", "0"))


def _integer(text: str) -> int:
    """A number of a query; 0 for what will be refused anyway."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0

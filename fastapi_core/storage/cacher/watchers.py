"""Watchers of one resource, indexed so that a change touches only who may care.

Watchers that ask the same (scope, name and matcher) form a group: a change is judged once per group, and all its
watchers get the same list of events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fastapi_core._ext.selector import Matcher, selectable_fields
from fastapi_core.storage.cacher.changes import Change, WatchEvent
from fastapi_core.storage.cacher.matching import Extract

Deliver = Callable[[list[WatchEvent]], None]
"""Takes the events of one commit. The list is shared with other watchers and must not be changed."""

Lost = Callable[[int], None]
"""Told that the watch is over because it missed changes, and at which revision one may begin anew."""

GroupKey = tuple[str, str, Matcher | None]
"""Scope, name ("" for any) and matcher."""

Slot = tuple[str, str, str]
"""Where a group is looked for: (kind, scope or field, name or value)."""

_SCOPE, _NAME, _FIELD = "scope", "name", "field"


class Group:
    """Watchers that see the same events."""

    __slots__ = ("key", "matcher", "name", "pending", "scope", "slot", "watchers")

    def __init__(self, key: GroupKey, slot: Slot) -> None:
        self.key = key
        self.slot = slot
        self.scope, self.name, self.matcher = key
        self.watchers: dict[Watcher, None] = {}
        self.pending: list[WatchEvent] = []

    def sees(self, change: Change) -> WatchEvent | None:
        """What a change in the scope is to this group."""
        return change.seen(self.matcher)

    def covers(self, relative: str, name: str) -> bool:
        """Whether a key below the resource and the name of its object are in scope."""
        return relative.startswith(self.scope) and (not self.name or self.name == name)


class Watcher:
    """One watch. `since` is the newest revision it has seen or does not want to see."""

    __slots__ = ("_index", "buffer", "deliver", "group", "live", "lost", "since", "stopped")

    def __init__(self, index: WatcherIndex, group: Group, since: int, deliver: Deliver) -> None:
        self._index = index
        self.group = group
        self.since = since
        self.deliver = deliver
        self.stopped = False
        self.lost: Lost | None = None
        self.buffer: list[WatchEvent] | None = None
        """Events that arrive while the backlog is being read; None once the watcher is fed directly."""
        self.live = True
        """Neither stopped nor buffering."""

    def stop(self) -> None:
        """End the watch: `deliver` is not called again. Calling it twice is harmless."""
        if not self.stopped:
            self.stopped = True
            self.live = False
            self._index.remove(self)

    def hold(self) -> None:
        """Buffer events from now on."""
        self.buffer = []
        self.live = False

    def release(self) -> None:
        """Deliver what was buffered and feed directly from now on."""
        held, self.buffer = self.buffer, None
        if not self.stopped:
            self.live = True
            if held:
                self.deliver(held)

    def push(self, events: list[WatchEvent]) -> None:
        """Take the events of one commit; a `deliver` that raises ends the watch, for it has lost events."""
        if self.since >= events[0].change.revision:
            events = [event for event in events if event.change.revision > self.since]
        if not events or self.stopped:
            return
        if self.buffer is not None:
            self.buffer.extend(events)
            return
        try:
            self.deliver(events)
        except Exception as error:
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Stop for a failure of the watcher's own code."""
        self.stop()
        report("a watcher failed and was stopped", error)


def report(message: str, error: Exception) -> None:
    """Tell the loop's exception handler."""
    asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})


class WatcherIndex:
    """Groups by scope, by scope and name, or by the value of a trigger field."""

    def __init__(self) -> None:
        self._slots: dict[Slot, dict[GroupKey, Group]] = {}
        self._fields: dict[str, int] = {}
        """Trigger fields in use, with the number of their groups."""
        self.count = 0

    def add(self, key: GroupKey, triggers: tuple[str, ...], since: int, deliver: Deliver) -> Watcher:
        """Register a watcher; `triggers` are the fields by whose value a matcher may be indexed."""
        slot = _slot(key, triggers)
        groups = self._slots.setdefault(slot, {})
        group = groups.get(key)
        if group is None:
            group = groups[key] = Group(key, slot)
            if slot[0] == _FIELD:
                self._fields[slot[1]] = self._fields.get(slot[1], 0) + 1
        watcher = Watcher(self, group, since, deliver)
        group.watchers[watcher] = None
        self.count += 1
        return watcher

    def remove(self, watcher: Watcher) -> None:
        group = watcher.group
        del group.watchers[watcher]
        self.count -= 1
        if group.watchers:
            return
        kind, field, _ = group.slot
        groups = self._slots[group.slot]
        del groups[group.key]
        if not groups:
            del self._slots[group.slot]
        if kind == _FIELD:
            self._fields[field] -= 1
            if not self._fields[field]:
                del self._fields[field]

    def watchers(self) -> list[Watcher]:
        return [w for groups in self._slots.values() for group in groups.values() for w in group.watchers]

    def route(self, change: Change, relative: str, extract: Extract | None) -> list[Group]:
        """Groups whose scope and name cover a change of the key `relative` (below the resource)."""
        name = change.object.name
        slots = self._slots
        found: list[Group] = []
        end = 0
        while True:
            scope = relative[:end]
            for slot in ((_SCOPE, scope, ""), (_NAME, scope, name)):
                groups = slots.get(slot)
                if groups is not None:
                    found.extend(groups.values())
            end = relative.find("/", end) + 1
            if not end:
                break
        if self._fields:
            found.extend(g for g in self._by_field(change, extract) if relative.startswith(g.scope))
        return found

    def _by_field(self, change: Change, extract: Extract | None) -> list[Group]:
        """Groups indexed by a value that the object has or had."""
        found: list[Group] = []
        states = [change.object] if change.previous is None else [change.object, change.previous]
        fields = [selectable_fields(state, extract) if extract is not None else {} for state in states]
        for field in self._fields:
            for value in {values.get(field, "") for values in fields}:
                groups = self._slots.get((_FIELD, field, value))
                if groups is not None:
                    found.extend(groups.values())
        return found


def _slot(key: GroupKey, triggers: tuple[str, ...]) -> Slot:
    scope, name, matcher = key
    if name:
        return _NAME, scope, name
    if matcher is not None:
        for field in triggers:
            value = matcher.required(field)
            if value is not None:
                return _FIELD, field, value
    return _SCOPE, scope, ""

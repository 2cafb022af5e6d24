"""What a watch cache tells its watchers: changes, and the events that watchers see of them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Final

from fastapi_core._ext.objects import CachedObject

if TYPE_CHECKING:
    from fastapi_core._ext.selector import Matcher

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"


class Change:
    """One committed change of one object.

    `object` is the new state; for a delete the last state under the delete's revision. `memo` holds what watchers made
    of it (frames), so that the next watcher finds it; it is emptied when the commit has been given to every watcher.
    """

    __slots__ = ("_departed", "_event", "deleted", "memo", "object", "previous", "revision")

    def __init__(self, obj: CachedObject, previous: CachedObject | None, revision: int, *, deleted: bool) -> None:
        self.object = obj
        self.previous = previous
        self.revision = revision
        self.deleted = deleted
        self.memo: dict[Hashable, Any] = {}
        self._event: WatchEvent | None = None
        self._departed: WatchEvent | None = None

    @property
    def event(self) -> WatchEvent:
        """What somebody sees who selects the object before and after. Made when somebody watches."""
        if self._event is None:
            kind = DELETED if self.deleted else ADDED if self.previous is None else MODIFIED
            self._event = WatchEvent(kind, self)
        return self._event

    def departure(self) -> WatchEvent:
        """The event for who no longer selects the object: its previous state under this change's revision.

        Only for a change that has a previous state."""
        if self.deleted:
            return self.event
        if self._departed is None:
            assert self.previous is not None
            last = self.previous.at_revision(self.revision)
            self._departed = Change(last, self.previous, self.revision, deleted=True).event
        return self._departed

    def seen(self, matcher: Matcher | None) -> WatchEvent | None:
        """What somebody sees who selects objects; None when it is nothing to them."""
        if matcher is None:
            return self.event
        selected = not self.deleted and matcher.matches(self.object)
        before = self.previous is not None and matcher.matches(self.previous)
        if selected:
            return self.event if before else WatchEvent(ADDED, self)
        return self.departure() if before else None

    def forget(self) -> None:
        """Empty the memos."""
        self.memo.clear()
        if self._departed is not None:
            self._departed.change.memo.clear()

    def size(self) -> int:
        """Bytes of objects that this change may keep alive."""
        return len(self.object.body) + (len(self.previous.body) if self.previous is not None else 0)


class WatchEvent:
    """A change as a watcher sees it: `type` is ADDED, MODIFIED or DELETED after selector transitions."""

    __slots__ = ("change", "type")

    def __init__(self, type_: str, change: Change) -> None:
        self.type = type_
        self.change = change

    def __repr__(self) -> str:
        return f"<{self.type} {self.change.object!r}>"

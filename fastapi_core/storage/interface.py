"""Storage: bytes at keys with revisions. Knows nothing of HTTP or kinds.

One revision counter for the whole store; each successful change takes the next. Keys and values are laid out as the
reference lays them out in etcd (`/registry/...`). Semantics every back end shares are stated as tests in
`fastapi_core/testing/storage_suite.py`.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol


class Code(enum.Enum):
    """What went wrong, for the registry to translate."""

    KEY_EXISTS = "key exists"
    KEY_NOT_FOUND = "key not found"
    CONFLICT = "revision conflict"
    COMPACTED = "revision compacted"
    FUTURE_REVISION = "revision not reached"
    TOO_LARGE = "value too large"
    UNAVAILABLE = "storage unavailable"
    TIMEOUT = "no answer in time"
    """Nobody could be asked; a write may not have happened."""


class StorageError(Exception):
    """A storage failure: code, key and the revision that explains it (current, or compacted)."""

    def __init__(self, code: Code, key: str = "", revision: int = 0, message: str = "") -> None:
        super().__init__(message or f"{code.value}: {key} (revision {revision})")
        self.code = code
        self.key = key
        self.revision = revision


class KeyValue(NamedTuple):
    """One value under its key. (A tuple: each write makes one, and two more of `Event`.)"""

    key: str
    value: bytes
    created: int
    """Revision of the creation."""
    revision: int
    """Revision of the last change."""


class Event(NamedTuple):
    """One committed change. `value` is None for a delete; `previous` is the state before (None for a create)."""

    key: str
    revision: int
    value: KeyValue | None
    previous: KeyValue | None


class Page(NamedTuple):
    """Items in key order at one revision."""

    items: list[KeyValue]
    revision: int
    remaining: int
    """Keys of the range beyond this page."""


Events = list[Event]
"""Spelled once here: inside a class with a `list` method the name means the method."""

Listener = Callable[[Sequence[Event]], None]
"""Called on the event loop with the committed events of one or more transactions, in revision order, no gaps.

Without any event: the store's revision has grown by changes that are none of its keys' (only a store others write to)."""


class Storage(Protocol):
    """A back end. All methods are called on the event loop and never block it.

    An awaited write is durable when it returns, and its event has been given to every listener before.
    """

    async def open(self) -> None: ...
    async def close(self) -> None: ...

    @property
    def revision(self) -> int:
        """Revision of the newest commit that listeners have seen; 1 for an empty store."""

    @property
    def compacted(self) -> int:
        """History at or below this revision is gone."""

    def create(self, key: str, value: bytes, *, ttl: float = 0) -> Awaitable[int]:
        """Create; returns the new revision. `ttl` seconds until the key is deleted, 0 for never. KEY_EXISTS
        (revision = that of the key), TOO_LARGE."""
        ...

    def update(self, key: str, value: bytes, *, expected: int, ttl: float = 0) -> Awaitable[int]:
        """Compare-and-swap on the mod revision; returns the new one. KEY_NOT_FOUND, CONFLICT (revision = actual).

        `ttl` replaces the time to live the key had; 0 removes it."""
        ...

    def delete(self, key: str, *, expected: int) -> Awaitable[int]:
        """Compare-and-delete; returns the revision of the deletion. KEY_NOT_FOUND, CONFLICT."""
        ...

    async def get(self, key: str) -> KeyValue | None: ...

    async def list(self, prefix: str, *, revision: int = 0, start: str = "", limit: int = 0) -> Page:
        """Keys with `prefix`, from `start` on, at `revision` (0: newest). COMPACTED, FUTURE_REVISION."""
        ...

    async def history(self, prefix: str, *, after: int, until: int) -> Events:
        """Events with after < revision <= until. COMPACTED when `after` is below the compacted revision."""
        ...

    def listen(self, listener: Listener, lost: Callable[[], None] | None = None) -> Callable[[], None]:
        """Receive every event committed from now on; returns the function that stops it.

        `lost` is called when others have written what can no longer be told, because history was compacted meanwhile:
        the next events are those after `revision`, and what stands at it has to be listed."""

    async def compact(self, revision: int) -> None:
        """Give up history up to `revision`; the state at it can still be listed. Less than before changes nothing.

        FUTURE_REVISION."""

    async def sync(self) -> int:
        """The newest revision any writer of this store has committed; listeners have seen it on return.

        An embedded back end answers without waiting."""
        ...

    async def check(self) -> None:
        """Raise StorageError(UNAVAILABLE) when the store cannot serve (health check)."""

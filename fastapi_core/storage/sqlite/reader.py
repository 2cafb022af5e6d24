"""Reads from the database: committed state, on a thread and connection of their own.

A long read never holds up a commit. Every answer carries the revision of the snapshot it was read from; the store gives
it out only when listeners have seen that revision.

A list in the past is one query: what is live and unchanged since, and for the keys that changed since, the revision
that their first change after it replaced (`previous <= N < revision` is true of exactly that change).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fastapi_core.storage.interface import Code, Event, Events, KeyValue, Page, StorageError
from fastapi_core.storage.keys import check_revision, prefix_end
from fastapi_core.storage.sqlite import schema

_GET = (
    "SELECT c.key, h.value, c.created, c.revision FROM current c JOIN history h ON h.revision = c.revision "
    "WHERE c.key = ?"
)

_NOW = "SELECT key, revision FROM current WHERE key >= :low AND key < :high"
_PAST = (
    "SELECT key, revision FROM current WHERE key >= :low AND key < :high AND revision <= :at "
    "UNION ALL "
    "SELECT key, previous FROM history WHERE revision > :at AND previous > 0 AND previous <= :at "
    "AND key >= :low AND key < :high"
)
#: Keys are sorted and cut before any value is read; CROSS JOIN keeps that order.
_PAGE = (
    "SELECT s.key, h.value, h.created, h.revision FROM ({source} ORDER BY key LIMIT :limit) s "
    "CROSS JOIN history h ON h.revision = s.revision"
)
_COUNT = "SELECT count(*) FROM ({source})"

_HISTORY = (
    "SELECT e.key, e.revision, e.created, e.value, e.previous, p.created, p.value "
    "FROM history e LEFT JOIN history p ON p.revision = e.previous "
    "WHERE e.revision > :after AND e.revision <= :until AND e.key >= :low AND e.key < :high ORDER BY e.revision"
)


class Reader:
    """Blocking reads on the connection of the reader thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="storage-reader")

    def close(self) -> None:
        """Runs on the reader thread, after the last read."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def get(self, key: str) -> KeyValue | None:
        with self._snapshot() as connection:
            row = connection.execute(_GET, (key,)).fetchone()
            return None if row is None else KeyValue(*row)

    def list(self, prefix: str, revision: int, start: str, limit: int) -> Page:
        with self._snapshot() as connection:
            counts = schema.read_counts(connection)
            at = revision or counts.revision
            check_revision(at, newest=counts.revision, compacted=counts.compacted)
            source = _NOW if at == counts.revision else _PAST
            bounds = {"low": max(prefix, start), "high": prefix_end(prefix), "at": at, "limit": limit or -1}
            items = list(map(_item, connection.execute(_PAGE.format(source=source), bounds)))
            remaining = 0
            if limit and len(items) == limit:
                bounds["low"] = items[-1].key
                (remaining,) = connection.execute(_COUNT.format(source=source), bounds).fetchone()
                remaining -= 1
        items.sort(key=_key)
        return Page(items, at, remaining)

    def history(self, prefix: str, after: int, until: int) -> Events:
        with self._snapshot() as connection:
            counts = schema.read_counts(connection)
            if after < counts.compacted:
                raise StorageError(Code.COMPACTED, revision=counts.compacted)
            bounds = {"after": after, "until": min(until, counts.revision), "low": prefix, "high": prefix_end(prefix)}
            return [_event(*row) for row in connection.execute(_HISTORY, bounds)]

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        try:
            if self._connection is None:
                self._connection = schema.open_reader(self._path)
            connection = self._connection
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise schema.unusable(self._path, error) from error


_item: Callable[[Iterable[Any]], KeyValue] = partial(tuple.__new__, KeyValue)
"""A row as it is: what the class itself would call is written in Python."""


def _key(item: KeyValue) -> str:
    return item.key


def _event(
    key: str, revision: int, created: int, value: bytes | None, previous: int, before: int, old: bytes | None
) -> Event:
    return Event(
        key,
        revision,
        None if value is None else KeyValue(key, value, created, revision),
        None if old is None else KeyValue(key, old, before, previous),
    )

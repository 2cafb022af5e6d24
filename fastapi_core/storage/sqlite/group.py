"""One group of writes: judged one after the other, committed together.

Each write is judged against the state the writes before it in the group leave, so a refused write costs nothing but
itself. The statements then handle many rows each: every call into SQLite gives up the interpreter lock, and taking it
back from a busy event loop costs more than the row.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from fastapi_core.storage.interface import Code, Event, KeyValue, StorageError

#: Rows per statement: the powers of two up to this, so that few statements serve every group size.
_MOST_ROWS = 64


class Write(NamedTuple):
    """One requested change. `value` None deletes; `expected` None creates."""

    key: str
    value: bytes | None
    expected: int | None
    expiry: float | None
    """Wall clock time at which the key ends, None for never."""
    future: asyncio.Future[int] | None
    """Resolved on the loop; None for a change the store makes itself."""


class Outcome(NamedTuple):
    """What became of a group: the events in revision order, and an answer for each write in its order."""

    events: list[Event]
    answers: list[int | StorageError]


def judge(connection: sqlite3.Connection, writes: Sequence[Write], revision: int) -> Outcome:
    """Decide each write; the first accepted one takes `revision` + 1. Changes nothing."""
    state: dict[str, KeyValue | None] = _load(connection, [w.key for w in writes])
    events: list[Event] = []
    answers: list[int | StorageError] = []
    for write in writes:
        key, value, expected = write.key, write.value, write.expected
        existing = state.get(key)
        if expected is None:
            if existing is not None:
                answers.append(StorageError(Code.KEY_EXISTS, key, existing.revision))
                continue
        elif existing is None:
            answers.append(StorageError(Code.KEY_NOT_FOUND, key))
            continue
        elif existing.revision != expected:
            answers.append(StorageError(Code.CONFLICT, key, existing.revision))
            continue
        revision += 1
        new = None
        if value is not None:
            new = KeyValue(key, value, revision if existing is None else existing.created, revision)
        state[key] = new
        events.append(Event(key, revision, new, existing))
        answers.append(revision)
    return Outcome(events, answers)


def commit(connection: sqlite3.Connection, writes: Sequence[Write], outcome: Outcome) -> None:
    """Make the accepted changes durable in one transaction; on an error none of them happened."""
    history: list[Any] = []
    live: dict[str, tuple[str, int, int, float | None]] = {}
    dead: dict[str, None] = {}
    events = iter(outcome.events)
    for write, answer in zip(writes, outcome.answers, strict=True):
        if not isinstance(answer, int):
            continue
        event = next(events)
        new, key = event.value, write.key
        previous = 0 if event.previous is None else event.previous.revision
        if new is None:
            history += (answer, key, 0, previous, None)
            live.pop(key, None)
            dead[key] = None
        else:
            history += (answer, key, new.created, previous, new.value)
            live[key] = (key, new.created, answer, write.expiry)
    connection.execute("BEGIN IMMEDIATE")
    try:
        _INSERT.run(connection, history)
        if dead:
            _DELETE.run(connection, list(dead))
        _REPLACE.run(connection, [item for row in live.values() for item in row])
        connection.execute("COMMIT")
    except BaseException:
        # SQLite ends the transaction itself after some errors.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _load(connection: sqlite3.Connection, keys: list[str]) -> dict[str, KeyValue | None]:
    state: dict[str, KeyValue | None] = {}
    for rows in _SELECT.fetch(connection, keys):
        for key, value, created, revision in rows:
            state[key] = KeyValue(key, value, created, revision)
    return state


class _Bulk:
    """A statement over any number of rows, as a few statements of fixed sizes that stay prepared."""

    def __init__(self, head: str, row: str, tail: str = "") -> None:
        self._width = row.count("?")
        self._statements = {}
        size = 1
        while size <= _MOST_ROWS:
            self._statements[size] = head + ",".join([row] * size) + tail
            size *= 2

    def run(self, connection: sqlite3.Connection, items: list[Any]) -> None:
        for statement, part in self._parts(items):
            connection.execute(statement, part)

    def fetch(self, connection: sqlite3.Connection, items: list[Any]) -> Iterator[list[Any]]:
        for statement, part in self._parts(items):
            yield connection.execute(statement, part).fetchall()

    def _parts(self, items: list[Any]) -> Iterator[tuple[str, list[Any]]]:
        left = len(items) // self._width
        at = 0
        while left:
            size = min(_MOST_ROWS, 1 << (left.bit_length() - 1))
            yield self._statements[size], items[at : at + size * self._width]
            left -= size
            at += size * self._width


_SELECT = _Bulk(
    "SELECT c.key, h.value, c.created, c.revision FROM current c JOIN history h ON h.revision = c.revision "
    "WHERE c.key IN (",
    "?",
    ")",
)
_INSERT = _Bulk("INSERT INTO history (revision, key, created, previous, value) VALUES ", "(?,?,?,?,?)")
_REPLACE = _Bulk("INSERT OR REPLACE INTO current (key, created, revision, expiry) VALUES ", "(?,?,?,?)")
_DELETE = _Bulk("DELETE FROM current WHERE key IN (", "?", ")")

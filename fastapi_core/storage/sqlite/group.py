"""One group of writes: judged one after the other, committed together.

Each write is judged against the state the writes before it in the group leave, so a refused write costs nothing but
itself.

A group is one INSERT into `history`, outside an explicit transaction; triggers bring `current` up to date, and keys
written lately are judged without a read. Fewer calls into SQLite are fewer times the thread has to get the interpreter
lock back (`turns`).
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from fastapi_core.storage.interface import Code, Event, KeyValue, StorageError

#: Most rows of one statement; a larger group takes several, in an explicit transaction.
MOST_ROWS = 64

#: Bytes of values that are kept because their keys were written lately.
RECENT_BYTES = 1 << 20

#: What a kept value takes beside its bytes, about.
_ENTRY_BYTES = 400


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
    rows: list[Any]
    """The history rows, one after the other."""


class Recent:
    """The newest state of keys written lately, so that writing them again needs no read. Right while it is the only
    writer's: every commit goes through `note`."""

    def __init__(self, limit: int = RECENT_BYTES) -> None:
        self._limit = limit
        self._size = 0
        self.items: dict[str, KeyValue] = {}

    def note(self, events: Sequence[Event]) -> None:
        """Take over what was committed; forget the keys not written for longest when there is too much."""
        items = self.items
        for event in events:
            known = items.pop(event.key, None)
            if known is not None:
                self._size -= len(known.value) + _ENTRY_BYTES
            if event.value is not None:
                items[event.key] = event.value
                self._size += len(event.value.value) + _ENTRY_BYTES
        while self._size > self._limit:
            oldest = items.pop(next(iter(items)))
            self._size -= len(oldest.value) + _ENTRY_BYTES


def judge(connection: sqlite3.Connection, recent: Recent, writes: Sequence[Write], revision: int) -> Outcome:
    """Decide each write; the first accepted one takes `revision` + 1. Changes nothing."""
    state = _load(connection, recent, writes)
    events: list[Event] = []
    answers: list[int | StorageError] = []
    rows: list[Any] = []
    for key, value, expected, expiry, _ in writes:
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
        previous = 0 if existing is None else existing.revision
        if value is None:
            new = None
            rows += (revision, key, 0, previous, None, None)
        else:
            new = KeyValue(key, value, revision if existing is None else existing.created, revision)
            rows += (revision, key, new.created, previous, expiry, value)
        state[key] = new
        events.append(Event(key, revision, new, existing))
        answers.append(revision)
    return Outcome(events, answers, rows)


def commit(connection: sqlite3.Connection, outcome: Outcome) -> None:
    """Make the accepted changes durable in one transaction; on an error none of them happened."""
    rows, count = outcome.rows, len(outcome.events)
    if count <= MOST_ROWS:
        connection.execute(_insert(count), rows)
        return
    width = len(rows) // count
    connection.execute("BEGIN IMMEDIATE")
    try:
        for at in range(0, count, MOST_ROWS):
            part = rows[at * width : (at + MOST_ROWS) * width]
            connection.execute(_insert(len(part) // width), part)
        connection.execute("COMMIT")
    except BaseException:
        # SQLite ends the transaction itself after some errors.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _load(connection: sqlite3.Connection, recent: Recent, writes: Sequence[Write]) -> dict[str, KeyValue | None]:
    """The state of the keys written: what is known, the rest from the database."""
    state: dict[str, KeyValue | None] = {}
    unknown: list[str] = []
    known = recent.items
    for write in writes:
        key = write.key
        found = known.get(key)
        if found is None:
            unknown.append(key)
        else:
            state[key] = found
    for at in range(0, len(unknown), MOST_ROWS):
        part = unknown[at : at + MOST_ROWS]
        for row in connection.execute(_select(len(part)), part).fetchall():
            state[row[0]] = KeyValue(*row)
    return state


@lru_cache(maxsize=MOST_ROWS)
def _insert(count: int) -> str:
    return "INSERT INTO history (revision, key, created, previous, expiry, value) VALUES " + ",".join(
        ["(?,?,?,?,?,?)"] * count
    )


@lru_cache(maxsize=MOST_ROWS)
def _select(count: int) -> str:
    return (
        "SELECT c.key, h.value, c.created, c.revision FROM current c JOIN history h ON h.revision = c.revision "
        "WHERE c.key IN (" + ",".join("?" * count) + ")"
    )

"""Upkeep of the database file in small steps: compaction of history, then return of free pages.

A step is one short transaction; the caller decides when the next one may run, so writes go between. Progress is part of
each transaction: a process killed in the middle goes on where it was.
"""

from __future__ import annotations

import sqlite3
import time
from enum import Enum, auto

#: A step aims to last this long, seconds; the number of rows or pages of the next one follows from the last.
#: Below the smallest size, waiting for the disk is most of it and smaller steps would only mean more waiting.
STEP_SECONDS = 0.004

_SMALLEST, _LARGEST = 64, 2048

#: Free pages are returned to the file system when there are more than this, and more than a quarter of the file:
#: a store with steady traffic reuses its free pages and would only grow the file again.
VACUUM_PAGES = 256


class _Work(Enum):
    NONE = auto()
    HISTORY = auto()
    PAGES = auto()


class Sweeper:
    """Deletes history that compaction has released, from `swept` up to `target`."""

    def __init__(self, connection: sqlite3.Connection, *, swept: int, target: int) -> None:
        self._connection = connection
        self.swept = swept
        self.target = target
        self._size = 64
        # A process may have ended between sweeping and returning pages.
        self._work = _Work.HISTORY if swept < target else _Work.PAGES

    @property
    def active(self) -> bool:
        """Whether there is a next step."""
        return self._work is not _Work.NONE

    def compact(self, revision: int) -> None:
        """Release history up to `revision`; durable on return, deletion follows in steps."""
        if revision <= self.target:
            return
        self._connection.execute("UPDATE meta SET value = ? WHERE name = 'compacted'", (revision,))
        self.target = revision
        self._work = _Work.HISTORY

    def step(self) -> None:
        """Do the next piece of work."""
        began = time.perf_counter()
        if self._work is _Work.HISTORY:
            self._sweep()
        elif self._work is _Work.PAGES:
            self._vacuum()
        took = time.perf_counter() - began
        if took > 2 * STEP_SECONDS:
            self._size = max(_SMALLEST, self._size // 2)
        elif took < STEP_SECONDS:
            self._size = min(_LARGEST, self._size * 2)

    def _sweep(self) -> None:
        """Delete what the next changes replaced, and those of them that are deletions."""
        connection = self._connection
        rows = connection.execute(
            "SELECT revision, previous, created FROM history WHERE revision > ? AND revision <= ? "
            "ORDER BY revision LIMIT ?",
            (self.swept, self.target, self._size),
        ).fetchall()
        done = rows[-1][0] if len(rows) == self._size else self.target
        gone = [(previous,) for _, previous, _ in rows if previous]
        gone += [(revision,) for revision, _, created in rows if not created]
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany("DELETE FROM history WHERE revision = ?", gone)
            connection.execute("UPDATE meta SET value = ? WHERE name = 'swept'", (done,))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self.swept = done
        if done == self.target:
            self._work = _Work.PAGES

    def _vacuum(self) -> None:
        (free,) = self._connection.execute("PRAGMA freelist_count").fetchone()
        (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
        if free <= max(VACUUM_PAGES, pages // 4):
            self._work = _Work.NONE
            return
        # The pragma gives a row without columns per page, which `execute` takes for its end after the first.
        self._connection.executescript(f"PRAGMA incremental_vacuum({min(self._size, free)})")

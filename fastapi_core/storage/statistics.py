"""Counters of a back end, for metrics: plain numbers, read at any time on the event loop."""

from __future__ import annotations

from bisect import bisect_left

from fastapi_core.records import dataclass

#: Upper bounds of the batch size histogram (writes per commit); one more bucket holds what is larger.
BATCH_BOUNDS = (1, 2, 4, 8, 16, 32, 64, 128, 256)

#: Upper bounds of the commit time histogram, seconds; one more bucket holds what is slower.
SECONDS_BOUNDS = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


@dataclass(frozen=True, slots=True)
class Statistics:
    """A snapshot. Bucket tuples are per bucket (not cumulative) and one longer than their bounds."""

    commits: int = 0
    writes: int = 0
    """Writes committed; refused ones (conflicts and so on) are not counted."""
    failures: int = 0
    """Groups that could not be committed (disk full, I/O error)."""
    expired: int = 0
    """Keys deleted because their time to live had passed."""
    batch_buckets: tuple[int, ...] = (0,) * (len(BATCH_BOUNDS) + 1)
    commit_buckets: tuple[int, ...] = (0,) * (len(SECONDS_BOUNDS) + 1)
    commit_seconds: float = 0.0
    database_bytes: int = 0
    wal_bytes: int = 0
    history_rows: int = 0
    """Changes that are still in the history (revisions above the compacted one)."""


class Counters:
    """The counters behind a `Statistics`; one thread adds, any thread may read."""

    def __init__(self) -> None:
        self.commits = 0
        self.writes = 0
        self.failures = 0
        self.expired = 0
        self.commit_seconds = 0.0
        self._batches = [0] * (len(BATCH_BOUNDS) + 1)
        self._seconds = [0] * (len(SECONDS_BOUNDS) + 1)

    def commit(self, writes: int, seconds: float) -> None:
        """Count one commit of `writes` changes that took `seconds`."""
        self.commits += 1
        self.writes += writes
        self.commit_seconds += seconds
        self._batches[bisect_left(BATCH_BOUNDS, writes)] += 1
        self._seconds[bisect_left(SECONDS_BOUNDS, seconds)] += 1

    def snapshot(self, *, database_bytes: int = 0, wal_bytes: int = 0, history_rows: int = 0) -> Statistics:
        """The counters and the sizes only the caller knows."""
        return Statistics(
            commits=self.commits,
            writes=self.writes,
            failures=self.failures,
            expired=self.expired,
            batch_buckets=tuple(self._batches),
            commit_buckets=tuple(self._seconds),
            commit_seconds=self.commit_seconds,
            database_bytes=database_bytes,
            wal_bytes=wal_bytes,
            history_rows=history_rows,
        )

"""Settings of the SQLite store."""

from __future__ import annotations

from pathlib import Path

from fastapi_core.records import dataclass
from fastapi_core.storage.sqlite.schema import FILE_NAME


@dataclass(frozen=True, slots=True)
class Settings:
    directory: Path
    """Holds the database, its log and the lock; made when absent."""
    expire_seconds: float = 1.0
    """Shortest time between two searches for keys past their time to live."""
    quiet_seconds: float = 1.0
    """Without writes for this long, the write-ahead log is moved into the database and emptied."""
    retry_seconds: float = 5.0
    """Pause of upkeep after it failed."""
    check_seconds: float = 2.0
    """A store that has not answered a health check after this is unavailable (the reference's etcd check timeout)."""
    switch_seconds: float = 0.00002
    """The interpreter's thread switch interval is set to this when it is longer (for the whole process)."""
    max_pages: int = 0
    """Largest database, pages of 4 KiB; 0 for SQLite's own limit."""

    @property
    def path(self) -> Path:
        """The database file."""
        return self.directory / FILE_NAME

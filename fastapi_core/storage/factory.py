"""Which back end a server uses."""

from __future__ import annotations

from pathlib import Path

from fastapi_core.storage.memory import MemoryStorage
from fastapi_core.storage.sqlite.settings import Settings
from fastapi_core.storage.sqlite.store import SqliteStorage


def make_storage(data_dir: Path | None) -> SqliteStorage | MemoryStorage:
    """SQLite in `data_dir`; in memory, and gone with the process, when it is None. The result is not open yet."""
    return MemoryStorage() if data_dir is None else SqliteStorage(Settings(data_dir))

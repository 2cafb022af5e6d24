"""Which back end a server uses, and who gives up its history."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fastapi_core.storage.compactor import Compactor
from fastapi_core.storage.interface import Storage
from fastapi_core.storage.memory import MemoryStorage
from fastapi_core.storage.sqlite.settings import Settings
from fastapi_core.storage.sqlite.store import SqliteStorage

if TYPE_CHECKING:
    from fastapi_core.storage.etcd import settings as etcd_settings
    from fastapi_core.storage.etcd.compaction import TurnCompactor


def make_storage(data_dir: Path | None, etcd: etcd_settings.Settings | None = None) -> Storage:
    """In etcd where one is named; else SQLite in `data_dir`; in memory, and gone with the process, when that is None.

    The result is not open yet."""
    if etcd is not None:
        from fastapi_core.storage.etcd.store import EtcdStorage

        return EtcdStorage(etcd)
    return MemoryStorage() if data_dir is None else SqliteStorage(Settings(data_dir))


def make_compactor(storage: Storage, interval: float) -> Compactor | TurnCompactor:
    """What keeps the history of `storage` to about `interval` seconds; 0: all of it."""
    if shared(storage):
        from fastapi_core.storage.etcd.compaction import TurnCompactor
        from fastapi_core.storage.etcd.store import EtcdStorage

        assert isinstance(storage, EtcdStorage)
        return TurnCompactor(storage, interval=interval)
    return Compactor(storage, window=interval)


def shared(storage: Storage) -> bool:
    """Whether other processes write to it as well."""
    return not isinstance(storage, MemoryStorage | SqliteStorage)

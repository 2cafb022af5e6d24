"""The database file: layout, settings, and what is checked when it is opened.

`history` holds every change with its value under its revision; `current` says which revision a live key is at. A value
is therefore stored once. Storing it in both tables was measured against this (32 writes per commit, 4 KiB pages, random
keys): CPU per write 17 us against 41 us at 200 bytes, 24 against 85 at 1,000 bytes, 36 against 119 at 5,000 bytes, and
twice the file, because a value in the key-ordered table rewrites a random page per write while history only appends.
The price is a lookup by rowid per key in a list: 10,000 objects of 5,000 bytes are listed in 66 ms of CPU.

Only `history` is written; triggers derive `current` from it. A deletion is a history row without value and with
`created` 0. `previous` links a change to the revision it replaced (0: the key did not exist), which makes events with
their previous state, lists in the past and compaction plain range scans by revision, without one more index.

The revision counter needs no row of its own: it is the larger of the newest history row and the compacted revision,
and compaction records its revision in the transaction that first deletes a row.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from fastapi_core.records import dataclass
from fastapi_core.storage.interface import Code, StorageError
from fastapi_core.storage.keys import FIRST_REVISION
from fastapi_core.storage.sqlite.group import MOST_ROWS

FILE_NAME = "store.db"
SCHEMA_VERSION = 1

#: Marks the file as ours ("fcor"), so that another program's database is not mistaken for an empty store.
APPLICATION_ID = 0x66636F72

#: Pages of write-ahead log after which a commit moves them into the database (4 MiB: a stall of a few milliseconds).
WAL_PAGES = 1000

#: The log file is cut back to this size, bytes, whenever it starts over.
WAL_LIMIT = 16 << 20

#: Page cache of each connection, KiB.
CACHE_KIB = 4096

_TABLES = """
CREATE TABLE history (
    revision INTEGER PRIMARY KEY, key TEXT NOT NULL, created INTEGER NOT NULL, previous INTEGER NOT NULL,
    expiry REAL, value BLOB
);
CREATE TABLE current (
    key TEXT PRIMARY KEY, created INTEGER NOT NULL, revision INTEGER NOT NULL, expiry REAL
) WITHOUT ROWID;
CREATE TRIGGER creation AFTER INSERT ON history WHEN new.previous = 0 BEGIN
    INSERT INTO current (key, created, revision, expiry)
    VALUES (new.key, new.created, new.revision, new.expiry);
END;
CREATE TRIGGER modification AFTER INSERT ON history WHEN new.previous > 0 AND new.created > 0 BEGIN
    UPDATE current SET revision = new.revision, expiry = new.expiry WHERE key = new.key;
END;
CREATE TRIGGER deletion AFTER INSERT ON history WHEN new.created = 0 BEGIN
    DELETE FROM current WHERE key = new.key;
END;
CREATE INDEX expiring ON current (expiry) WHERE expiry IS NOT NULL;
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('compacted', 0), ('swept', 0);
"""


@dataclass(frozen=True, slots=True)
class Counts:
    """What the file says about itself."""

    revision: int
    compacted: int
    swept: int
    """Compaction has deleted what it may delete up to this revision."""


def open_writer(path: Path) -> sqlite3.Connection:
    """Open, create or refuse the database. StorageError(UNAVAILABLE) says what is wrong with the file."""
    # The store holds secrets; the log and index files SQLite makes take over the mode of this one.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, isolation_level=None, cached_statements=2 * MOST_ROWS + 32, timeout=0)
    try:
        _prepare(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise unusable(path, error) from error
    except StorageError:
        connection.close()
        raise
    return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """A second connection that only reads: committed state, beside the writer, never in its way."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=5, check_same_thread=False)
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    connection.execute("PRAGMA query_only = 1")
    return connection


def read_counts(connection: sqlite3.Connection) -> Counts:
    """The counters as of the connection's snapshot."""
    meta = dict(connection.execute("SELECT name, value FROM meta WHERE name IN ('compacted', 'swept')"))
    (newest,) = connection.execute("SELECT max(revision) FROM history").fetchone()
    revision = max(newest or 0, meta["compacted"], FIRST_REVISION)
    return Counts(revision, meta["compacted"], meta["swept"])


def unusable(path: Path, error: sqlite3.Error) -> StorageError:
    """A failed SQLite call in words for the person who runs the server."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        text = f"the database {path} is damaged ({error}); restore a backup"
    elif name.startswith("SQLITE_FULL"):
        text = f"no space left for the database {path}"
    else:
        text = f"the database {path} failed: {error} ({name})" if name else f"the database {path} failed: {error}"
    return StorageError(Code.UNAVAILABLE, message=text)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if version > SCHEMA_VERSION and application == APPLICATION_ID:
        raise StorageError(
            Code.UNAVAILABLE,
            message=f"the database {path} has schema version {version}, this program knows {SCHEMA_VERSION}: "
            "it was written by a newer version",
        )
    if tables and application != APPLICATION_ID:
        raise StorageError(Code.UNAVAILABLE, message=f"{path} is a database of another program")
    if not tables:
        # Has to come before the first page is written.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StorageError(Code.UNAVAILABLE, message=f"the file system of {path} does not support a write-ahead log")
    connection.execute("PRAGMA synchronous = FULL")
    # Some builds of SQLite overwrite what is deleted with zeros; that makes compaction write what it gives up.
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA secure_delete = OFF")
    connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT}")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    if not tables:
        connection.executescript(
            f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {SCHEMA_VERSION}; "
            f"PRAGMA application_id = {APPLICATION_ID}; COMMIT;"
        )

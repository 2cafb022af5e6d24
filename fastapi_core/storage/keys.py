"""Key ranges and the size limit every back end applies.

Keys are compared as UTF-8 bytes, which is also the order of Python strings. The size limit and its text are etcd's
(`--max-request-bytes`, 1.5 MiB), because clients know that message.
"""

from __future__ import annotations

from fastapi_core.storage.interface import Code, StorageError

#: Largest key + value that a store takes, bytes.
MAX_REQUEST_BYTES = 1_572_864

#: Revision of an empty store; the first write gets the next one, so 0 never names a state.
FIRST_REVISION = 1

#: Sorts after every key: no key can contain it twice.
_LAST = "\U0010ffff"


def prefix_end(prefix: str) -> str:
    """The smallest string above every key with `prefix` (exclusive end of the range)."""
    for at in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[at])
        if code < 0x10FFFF:
            # The surrogates have no UTF-8 form, so they are no key.
            return prefix[:at] + chr(0xE000 if code == 0xD7FF else code + 1)
    return _LAST * 2


def check_write(key: str, value: bytes) -> None:
    """Refuse what no back end can store: TOO_LARGE, or UnicodeEncodeError for a key without a UTF-8 form."""
    size = len(key) if key.isascii() else len(key.encode())
    if size + len(value) > MAX_REQUEST_BYTES:
        raise StorageError(Code.TOO_LARGE, key, message="etcdserver: request is too large")


def check_revision(revision: int, *, newest: int, compacted: int) -> None:
    """Refuse a read at a revision the store cannot show."""
    if revision > newest:
        raise StorageError(Code.FUTURE_REVISION, revision=newest)
    if revision < compacted:
        raise StorageError(Code.COMPACTED, revision=compacted)

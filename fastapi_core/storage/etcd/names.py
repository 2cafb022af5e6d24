"""Keys as the store is asked for them and as etcd has them, and what etcd answers in the store's terms."""

from __future__ import annotations

from fastapi_core.storage.etcd.messages import DELETE, Tree, range_end
from fastapi_core.storage.interface import Event, KeyValue


class Names:
    """`root` is the folder of all keys in this process, `prefix` what stands for it in etcd."""

    def __init__(self, root: str, prefix: str) -> None:
        self.root = root
        self._cut = len(root)
        self._prefix = prefix.encode()
        self._size = len(self._prefix)

    def key(self, key: str) -> bytes:
        """The key in etcd. UnicodeEncodeError for one that has no UTF-8 form, ValueError for one not of this store."""
        if not key.startswith(self.root):
            raise ValueError(f"{key} is not below {self.root}")
        return self._prefix + key[self._cut :].encode()

    def span(self, prefix: str) -> tuple[bytes, bytes]:
        """First key and end of what begins with `prefix`."""
        first = self._prefix if len(prefix) <= self._cut and self.root.startswith(prefix) else self.key(prefix)
        return first or b"\0", range_end(first)

    def name(self, key: bytes) -> str | None:
        """The key in this process; None for what belongs to others or is no text."""
        if not key.startswith(self._prefix):
            return None
        try:
            return self.root + key[self._size :].decode()
        except UnicodeDecodeError:
            return None

    def item(self, raw: Tree) -> KeyValue | None:
        """A key value of an answer."""
        key = self.name(raw.get("key", b""))
        if key is None:
            return None
        return KeyValue(key, raw.get("value", b""), raw.get("create_revision", 0), raw.get("mod_revision", 0))

    def event(self, raw: Tree) -> Event | None:
        """An event of a watch."""
        found: Tree = raw["kv"]
        key = self.name(found.get("key", b""))
        if key is None:
            return None
        revision = found["mod_revision"]
        before = raw.get("prev_kv")
        previous = None if before is None else self.item(before)
        if raw.get("type") == DELETE:
            return Event(key, revision, None, previous)
        return Event(
            key, revision, KeyValue(key, found.get("value", b""), found["create_revision"], revision), previous
        )

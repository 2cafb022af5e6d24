"""Cached objects and the documents assembled from them.

An object is kept as `body`: its canonical JSON in the storage version from behind kind and apiVersion to the closing
brace (typed objects: from `"metadata":` on), with the resource version already spliced in. What precedes it (`head`,
e.g. `{"kind":"Pod","apiVersion":"v1",`) is per resource and version, and shared. So a GET is head + body, a typed list
item is `{` + body, and none of them is ever encoded twice. Custom resources have sorted keys: when other members stand
before apiVersion or kind, `head` is `{` and `body` all the rest, so use an object's own head for them.
"""

from collections.abc import Hashable, Sequence
from typing import Any, final

@final
class CachedObject:
    """One committed object at one revision; immutable but for its memo slots."""

    key: str
    """Storage key."""
    namespace: str
    name: str
    revision: int
    """Revision of the last change (mod revision); 0 for what was never committed: no resourceVersion is shown then."""
    created: int
    """Revision of the creation."""
    head: bytes
    body: bytes
    memo: dict[Hashable, Any]
    """Encodings in other versions or forms (Table row, PartialObjectMetadata), made on first use; lazily created."""

    def __init__(self, key: str, namespace: str, name: str, value: bytes, revision: int, created: int) -> None:
        """`value` is the stored JSON: compact, without resourceVersion; line ends behind it are dropped.

        Raises ValueError when it is not an object with metadata."""
    def json(self) -> bytes:
        """head + body: the object as served by GET, without trailing newline."""
    def metadata(self) -> bytes:
        """The value of the metadata member with its resourceVersion, cut out undecoded. ValueError when broken."""
    def stored(self) -> bytes:
        """The stored value again (resourceVersion cut out)."""
    def tree(self) -> dict[str, Any]:
        """A fresh decoded tree, resourceVersion included."""
    def tree_without(self, name: bytes) -> dict[str, Any]:
        """The same with null in place of the value of each member called `name` behind metadata's opening, however
        deep it is: values that are large and not wanted are not decoded. `name` needs no escapes in JSON."""
    def labels(self) -> dict[str, str]:
        """Parsed on first use, kept and shared: do not change it. Raises ValueError when they are broken."""
    def at_revision(self, revision: int) -> CachedObject:
        """The same content under another revision: what a DELETED event carries."""

def split_head(value: bytes) -> tuple[bytes, int]:
    """(head, offset where the resourceVersion member belongs) of a stored value; ValueError as for CachedObject."""

def list_document(head: bytes, objects: Sequence[CachedObject], tail: bytes, *, whole: bool) -> bytes:
    """`head` + items joined by commas + `tail` in one allocation.

    An item is `{` + body; with `whole` its own head + body (custom resources)."""

def watch_frame(event: str, head: bytes, body: bytes, *, chunked: bool = True) -> bytes:
    """`{"type":EVENT,"object":head+body}\\n`, with HTTP chunk framing when `chunked`."""

def live() -> dict[str, int]:
    """How many objects of the module's classes exist now, by class name."""

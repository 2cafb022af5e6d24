"""Table rows as bytes: cells are encoded once per object, ages are filled in when a table is rendered.

A row is kept in the object's memo as the byte segments around its time-dependent cells, so a table of known objects
costs a join and one small look-up per age.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from json import JSONDecoder
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi_core.codec.json import encode
from fastapi_core.meta.names import TEMPLATE_GENERATION
from fastapi_core.meta.time import human_duration
from fastapi_core.records import dataclass

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject

Tree = dict[str, Any]


class Age(NamedTuple):
    """A cell that shows the time since `since` (seconds of the epoch) between two fixed texts."""

    since: float
    before: str = ""
    after: str = ""


Cell = str | int | float | bool | None | Age
Conditions = list[dict[str, str]]
RowFunction = Callable[[Tree], "tuple[Sequence[Cell], Conditions | None]"]
"""Reads an object tree: its cells, and the conditions of its row if there are any."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its definition, and how its cell is read from an object tree (None: the row function makes it)."""

    name: str
    cell: Callable[[Tree], Cell] | None = None
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    def definition(self) -> dict[str, Any]:
        """The `TableColumnDefinition` tree."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


class Row(NamedTuple):
    """Encoded row up to the `object` member: `parts[0] age[0] parts[1] ...`."""

    parts: tuple[bytes, ...]
    ages: tuple[float, ...]


LONGEST = 9223372036  # seconds in the largest Go duration; longer times are cut to it
_ages: dict[int, bytes] = {}
_AGES_KEPT = 100_000


def age_text(seconds: float) -> bytes:
    """The JSON-escaped human duration of so many seconds."""
    whole = int(max(-LONGEST, min(seconds, LONGEST)))
    text = _ages.get(whole)
    if text is None:
        if len(_ages) >= _AGES_KEPT:
            _ages.clear()
        text = _ages[whole] = encode(human_duration(whole))[1:-1]
    return text


def epoch(stamp: str) -> float:
    """Seconds of the epoch of an RFC 3339 text."""
    return datetime.fromisoformat(stamp).timestamp()


def since(stamp: str | None) -> Age | str:
    """The age cell of a time stamp; an absent one is unknown."""
    return Age(epoch(stamp)) if stamp else "<unknown>"


def compile_row(cells: Sequence[Cell], conditions: Conditions | None = None) -> Row:
    """Encode a row's cells, leaving gaps at its ages."""
    parts: list[bytes] = []
    ages: list[float] = []
    text = b'{"cells":['
    comma = b""
    for cell in cells:
        text += comma
        comma = b","
        if isinstance(cell, Age):
            parts.append(text + encode(cell.before)[:-1])
            ages.append(cell.since)
            text = encode(cell.after)[1:]
        else:
            text += encode(cell)
    text += b"]"
    if conditions:
        text += b',"conditions":' + encode(conditions)
    parts.append(text + b',"object":')
    return Row(tuple(parts), tuple(ages))


_PREFIX = '"metadata":'
_decode = JSONDecoder().raw_decode


def inner_metadata(obj: CachedObject) -> Tree | None:
    """Metadata of an object whose annotations hold what is a field inside the reference, without it; None for all others.

    Only daemon sets are such: the generation of their template is an annotation in the objects of apps/v1 alone.
    """
    if obj.key.split("/", 3)[2:3] != ["daemonsets"]:
        return None
    metadata: Tree = obj.tree()["metadata"]
    annotations = {
        name: text for name, text in (metadata.get("annotations") or {}).items() if name != TEMPLATE_GENERATION
    }
    return {
        name: annotations if name == "annotations" else value
        for name, value in metadata.items()
        if name != "annotations" or annotations
    }


def _metadata_member(obj: CachedObject) -> bytes:
    """`"metadata":{...}` of an object, cut out of its bytes when it stands first (in all but odd custom resources)."""
    inner = inner_metadata(obj)
    if inner is not None:
        return _PREFIX.encode() + encode(inner)
    body = obj.body.decode()
    if not body.startswith(_PREFIX):
        return _PREFIX.encode() + encode(obj.tree()["metadata"])
    _, end = _decode(body, len(_PREFIX))
    return body[:end].encode()


def partial_metadata(obj: CachedObject, version: str = "v1") -> bytes:
    """The object as a PartialObjectMetadata document of meta.k8s.io/`version`; kept in the object's memo."""
    memo = obj.memo
    key = ("partial", version)
    kept: bytes | None = memo.get(key)
    if kept is None:
        kept = memo[key] = partial_head(version) + _metadata_member(obj) + b"}"
    return kept


def partial_head(version: str) -> bytes:
    """Opening of a PartialObjectMetadata, up to its metadata member."""
    return b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%b",' % version.encode()


class Printer:
    """Prints objects of one kind as table rows.

    `row` reads one object tree (in the storage version) and returns its cells, and the row's conditions if any.
    """

    __slots__ = ("_definitions", "_row", "columns")

    def __init__(self, columns: Sequence[Column], row: RowFunction | None = None) -> None:
        self.columns = tuple(columns)
        self._row = row or self._from_columns
        self._definitions = encode([column.definition() for column in self.columns])

    def _from_columns(self, tree: Tree) -> tuple[Sequence[Cell], Conditions | None]:
        return [column.cell(tree) if column.cell else None for column in self.columns], None

    def cells(self, tree: Tree) -> Sequence[Cell]:
        """The cells of an object; for tests and tools."""
        return self._row(tree)[0]

    def row(self, obj: CachedObject) -> Row:
        """The object's row, kept in its memo."""
        memo = obj.memo
        row: Row | None = memo.get(self)
        if row is None:
            row = memo[self] = compile_row(*self._row(obj.tree()))
        return row

    def render_rows(
        self,
        objects: Sequence[CachedObject],
        now: float,
        include_object: str = "Metadata",
        version: str = "v1",
        whole: Sequence[CachedObject] | None = None,
    ) -> bytes:
        """The rows of `objects` at time `now` (seconds of the epoch), as a JSON array.

        `include_object` is Metadata, Object or None; `version` that of meta.k8s.io. With Object the rows hold the
        objects of `whole` (the same ones in the version asked for), or `objects` themselves.
        """
        out: list[bytes] = []
        add = out.append
        metadata = include_object == "Metadata"
        partial = ("partial", version)
        for position, obj in enumerate(objects):
            memo = obj.memo
            row = memo.get(self) or self.row(obj)
            parts, ages = row
            add(b",")
            add(parts[0])
            for index, stamp in enumerate(ages, 1):
                seconds = now - stamp
                add(_ages.get(int(seconds)) or age_text(seconds))
                add(parts[index])
            if metadata:
                add(memo.get(partial) or partial_metadata(obj, version))
            elif include_object == "Object":
                shown = obj if whole is None else whole[position]
                add(shown.head)
                add(shown.body)
            else:
                add(b"null")
            add(b"}")
        if not out:
            return b"[]"
        out[0] = b"["
        add(b"]")
        return b"".join(out)

    def render_tree(self, tree: Tree, now: float, body: bytes = b"null") -> bytes:
        """The row of an object that is not cached, as a JSON array of one; `body` is its `object` member."""
        parts, ages = compile_row(*self._row(tree))
        out = [b"[", parts[0]]
        for index, stamp in enumerate(ages, 1):
            out += [age_text(now - stamp), parts[index]]
        return b"".join([*out, body, b"}]"])

    def table(self, metadata: bytes, rows: bytes, *, columns: bool = True, version: str = "v1") -> bytes:
        """The Table document (no newline) from its list metadata and rows.

        `columns` False prints no column definitions, as in all watch events but the first.
        """
        definitions = self._definitions if columns else b"null"
        return b'{"kind":"Table","apiVersion":"meta.k8s.io/%b","metadata":%b,"columnDefinitions":%b,"rows":%b}' % (
            version.encode(),
            metadata,
            definitions,
            rows,
        )

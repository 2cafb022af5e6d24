"""What the reference's struct decoder makes of keys given twice; taken only when there are any.

A struct given twice is filled twice, so its members are merged; so are the elements of a list at the same place, and
the entries of a map by key, where a repeated entry starts afresh. Scalars and special forms take the last value. A null
leaves a plain member as it is and unsets a pointer, list or map. Complaints come in the order of the text, and only
about members the type knows: nothing inside an unknown member or an untyped value is looked at.
"""

from __future__ import annotations

from typing import Any

from fastapi_core.codec import json as codec
from fastapi_core.errors import go_quote
from fastapi_core.schema.types import Field, Type


class Pairs(list[tuple[str, Any]]):
    """A JSON object with its members in order, repeated ones included."""


def fold(body: bytes, type_: Type) -> codec.Parsed:
    """Decode a body with repeated keys; `complaints` holds those about unknown members as well."""
    document = codec.lenient(body, Pairs)
    if not isinstance(document, Pairs):
        return codec.Parsed(plain(document), [], [])
    folding = _Folding()
    tree = folding.struct(type_, None, document, "")
    complaints = list(dict.fromkeys(folding.complaints))[:100]
    return codec.Parsed(tree, list(dict.fromkeys(folding.duplicates))[:100], complaints)


def plain(value: Any) -> Any:
    """The tree in which the last of repeated keys wins."""
    if isinstance(value, Pairs):
        return {key: plain(item) for key, item in value}
    return [plain(item) for item in value] if isinstance(value, list) else value


class _Folding:
    def __init__(self) -> None:
        self.duplicates: list[str] = []
        self.complaints: list[str] = []

    def _duplicate(self, path: str) -> None:
        self.duplicates.append(path)
        self.complaints.append(codec.duplicate(path))

    def struct(self, type_: Type, old: Any, pairs: Pairs, path: str) -> dict[str, Any]:
        out = dict(old) if isinstance(old, dict) else {}
        seen: set[str] = set()
        for key, value in pairs:
            place = f"{path}.{key}" if path else key
            field = type_.fields.get(key)
            if field is None and not (type_.kind and key in ("kind", "apiVersion")):
                self.complaints.append(f"unknown field {go_quote(place)}")
                continue
            if key in seen:
                self._duplicate(place)
            seen.add(key)
            out[key] = plain(value) if field is None else self.member(field, out.get(key), value, place)
        return out

    def member(self, field: Field, old: Any, value: Any, path: str) -> Any:
        if value is None:
            special = field.type is not None and field.type.json
            return None if field.pointer or field.card or special else old
        if field.card == "list" and type(value) is list:
            known = old if isinstance(old, list) else []
            return [
                self.element(field, known[i] if i < len(known) else None, item, f"{path}[{i}]")
                for i, item in enumerate(value)
            ]
        if field.card == "map" and isinstance(value, Pairs):
            out = dict(old) if isinstance(old, dict) else {}
            seen: set[str] = set()
            for key, item in value:
                if key in seen:
                    self._duplicate(f"{path}.{key}")
                seen.add(key)
                out[key] = self.element(field, None, item, f"{path}.{key}")
            return out
        return plain(value) if field.card else self.element(field, old, value, path)

    def element(self, field: Field, old: Any, value: Any, path: str) -> Any:
        type_ = field.type
        if type_ is None or type_.json or not isinstance(value, Pairs):
            return old if value is None else plain(value)
        return self.struct(type_, old, value, path)

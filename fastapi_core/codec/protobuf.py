"""Protobuf as the reference reads and writes it: an envelope that names the kind, around the message of the object.

The tree of a message is the one its JSON has. What is read holds the members the wire holds, to be normalised like a
JSON body; what is written takes a normalised tree. The walk is compiled (`_ext/protoread.pyx`, `_ext/protowrite.pyx`);
this module turns type tables into its messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from fastapi_core._ext import jsonscan, protoread, protowire, protowrite
from fastapi_core.codec import json
from fastapi_core.meta import time as times
from fastapi_core.schema.errors import DecodeError
from fastapi_core.schema.tables import type_for, type_of
from fastapi_core.schema.types import Field, Type

MAGIC: Final = b"k8s\x00"
#: What follows the object in an envelope: no content encoding, no content type.
ENVELOPE_END: Final = b"\x1a\x00\x22\x00"

_RAW_NUMBER: Final = 2
"""The object of an envelope, the items of a list and the object of a watch event all have this field number."""

_SCALARS: Final = {
    "string": protowire.STRING,
    "bool": protowire.BOOL,
    "int32": protowire.INT32,
    "int64": protowire.INT64,
    "double": protowire.DOUBLE,
    "bytes": protowire.BYTES,
}
_CARDS: Final = {"": protowire.SINGLE, "list": protowire.LIST, "map": protowire.MAP}


class Envelope(NamedTuple):
    """What a body says it is, and the message in it."""

    api_version: str
    kind: str
    message: bytes


def open_envelope(body: bytes) -> Envelope:
    """The envelope of a request body; DecodeError when it is none."""
    if not body:
        raise DecodeError("empty data")
    if not body.startswith(MAGIC):
        numbers = " ".join(str(byte) for byte in MAGIC)
        raise DecodeError(f"provided data does not appear to be a protobuf message, expected prefix [{numbers}]")
    if len(body) == len(MAGIC):
        raise DecodeError("empty body")
    found = _decode(_ENVELOPE, body[len(MAGIC) :])
    meta = found.get("typeMeta", {})
    return Envelope(meta.get("apiVersion", ""), meta.get("kind", ""), found.get("raw", b""))


def decode(type_: Type, message: bytes) -> dict[str, Any]:
    """The tree of a message, fit for `schema.normalize`; DecodeError with the reference's text."""
    return _decode(message_of(type_), message)


def _decode(message: protowire.Message, data: bytes) -> dict[str, Any]:
    try:
        return protoread.decode(message, data, json.MAX_DEPTH)
    except ValueError as error:
        raise DecodeError(str(error)) from None


def encode(type_: Type, tree: dict[str, Any]) -> bytes:
    """The message of a normalised tree, without its envelope."""
    return protowrite.encode(message_of(type_), tree)


def chunk(message: bytes, number: int = _RAW_NUMBER) -> bytes:
    """A message as a list and an envelope hold it: behind its tag and length."""
    return protowrite.opening(number, len(message)) + message


@lru_cache(maxsize=1024)
def envelope_start(api_version: str, kind: str) -> bytes:
    """What stands before the `chunk` of an object in an envelope; `ENVELOPE_END` stands behind it."""
    return MAGIC + protowrite.encode(_ENVELOPE_START, {"typeMeta": {"apiVersion": api_version, "kind": kind}})


def document(type_: Type, tree: dict[str, Any]) -> bytes:
    """A tree with its kind and version, in an envelope."""
    start = envelope_start(tree.get("apiVersion", ""), tree.get("kind", ""))
    return start + chunk(encode(type_, tree)) + ENVELOPE_END


def answer(tree: dict[str, Any]) -> bytes:
    """A document by the kind it names: a Status, a review, a discovery document, partial metadata."""
    group, _, version = tree.get("apiVersion", "").rpartition("/")
    type_ = type_for(group, version, tree["kind"])
    if type_ is None:
        raise LookupError(f"no message is known for {tree['kind']} of {tree.get('apiVersion')}")
    return document(type_, tree)


def list_document(
    api_version: str, kind: str, metadata: dict[str, Any], items: Iterable[bytes], *, metadata_last: bool = False
) -> bytes:
    """A list of objects, each as its `chunk`. `metadata_last`: the two fields have each other's number."""
    meta = encode(type_of("meta/v1.ListMeta"), metadata)
    parts = [*items, chunk(meta, 2)] if metadata_last else [chunk(meta, 1), *items]
    opening = protowrite.opening(_RAW_NUMBER, sum(map(len, parts)))
    return b"".join([envelope_start(api_version, kind), opening, *parts, ENVELOPE_END])


def watch_frame(event: str, body: bytes) -> bytes:
    """An event of a watch: its size in four bytes, its type, the enveloped object."""
    frame = chunk(event.encode(), 1) + chunk(chunk(body, 1))
    return len(frame).to_bytes(4, "big") + frame


def message_of(type_: Type) -> protowire.Message:
    """The compiled message of a type, made once."""
    found = _messages.get(type_.ref)
    if found is None:
        members = [_member(field) for field in type_.declared]
        found = _messages.setdefault(type_.ref, protowire.Message(type_.name, members))
    return found


_messages: Final[dict[str, protowire.Message]] = {}


def _raw(data: bytes, levels: int) -> Any:
    """The JSON text a message carries."""
    _, care = jsonscan.inspect(data, levels)
    try:
        return json.lenient(data, None) if care else orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.lenient(data, None)


def _moment(text: str) -> tuple[int, int]:
    """Seconds since 1970 and microseconds of a time."""
    when = times.parse(text)
    return int(when.replace(microsecond=0).timestamp()), when.microsecond


_FORMS: Final[dict[str, tuple[int, Callable[..., Any] | None, Callable[[Any], Any] | None]]] = {
    "time": (protowire.TIME, None, _moment),
    "microtime": (protowire.MICROTIME, None, _moment),
    "duration": (protowire.DURATION, times.format_duration, times.parse_duration),
    "quantity": (protowire.QUANTITY, None, None),
    "intOrString": (protowire.INT_OR_STRING, None, None),
    "rawObject": (protowire.RAW, _raw, json.encode),
    "rawAny": (protowire.RAW, _raw, json.encode),
    "fields": (protowire.RAW, _raw, json.encode),
    "list": (protowire.STRINGS, None, None),
    "schemaOrBool": (protowire.SCHEMA_OR_BOOL, None, None),
    "schemaOrSchemaList": (protowire.SCHEMA_OR_SCHEMAS, None, None),
    "schemaOrStringList": (protowire.SCHEMA_OR_STRINGS, None, None),
}


def _member(field: Field) -> protowire.Member:
    target = field.type
    convert = revert = make = None
    if target is None:
        op = _SCALARS[field.scalar]
    elif target.json:
        op, convert, revert = _FORMS[target.json]
        if target.json.startswith("schema"):
            make = _maker(next(member.type for member in target.declared if member.type is not None))
    else:
        op, make = protowire.INLINE if field.inline else protowire.STRUCT, _maker(target)
    return protowire.Member(
        field.name, field.number, op, _CARDS[field.card], field.pointer, convert=convert, revert=revert, make=make
    )


def _maker(type_: Type) -> Callable[[], protowire.Message]:
    return lambda: message_of(type_)


def _envelope() -> tuple[protowire.Message, protowire.Message]:
    """The envelope for reading, and its beginning for writing."""
    kind = protowire.Message(
        "TypeMeta",
        [protowire.Member("apiVersion", 1, protowire.STRING), protowire.Member("kind", 2, protowire.STRING)],
    )
    meta = protowire.Member("typeMeta", 1, protowire.STRUCT, make=lambda: kind)
    rest = [
        protowire.Member("raw", _RAW_NUMBER, protowire.OCTETS),
        protowire.Member("contentEncoding", 3, protowire.STRING),
        protowire.Member("contentType", 4, protowire.STRING),
    ]
    return protowire.Message("Unknown", [meta, *rest]), protowire.Message("Unknown", [meta])


_ENVELOPE, _ENVELOPE_START = _envelope()

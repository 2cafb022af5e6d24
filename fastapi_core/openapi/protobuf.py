"""The documents as protobuf, in the messages of gnostic's openapi_v2 and openapi_v3 packages.

A message is a table from JSON members to encoders; an encoder turns a JSON value into one tagged field. Members that
begin with `x-` go to the message's extension field, as YAML text (JSON is YAML).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import orjson

Encoder = Callable[[Any], bytes]


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SIZES = [varint(size) for size in range(1 << 12)]


def _size(payload: bytes) -> bytes:
    size = len(payload)
    return _SIZES[size] if size < len(_SIZES) else varint(size)


def _framed(number: int, payload: bytes) -> bytes:
    return _SIZES[number << 3 | 2] + _size(payload) + payload


def text(number: int) -> Encoder:
    return lambda value: _framed(number, value.encode())


def texts(number: int) -> Encoder:
    return lambda value: b"".join(_framed(number, item.encode()) for item in value)


def boolean(number: int) -> Encoder:
    return lambda value: varint(number << 3) + (b"\x01" if value else b"\x00")


def number(number: int) -> Encoder:
    """A double."""
    return lambda value: varint(number << 3 | 1) + struct.pack("<d", value)


def whole(number: int) -> Encoder:
    """An int64 that is not negative."""
    return lambda value: varint(number << 3) + varint(value)


def any_value(number: int) -> Encoder:
    """An `Any`: its second field is the value as YAML."""
    return lambda value: _framed(number, _framed(2, orjson.dumps(value)))


def each(encoder: Encoder) -> Encoder:
    """A repeated field."""
    return lambda value: b"".join(map(encoder, value))


def inside(number: int, encoder: Encoder) -> Encoder:
    """A message with one field."""
    return lambda value: _framed(number, encoder(value))


def named(number: int, value_encoder: Encoder) -> Encoder:
    """A JSON object as a repeated message of name (1) and value, which `value_encoder` writes as field 2."""
    return lambda value: b"".join(
        _framed(number, _framed(1, name.encode()) + value_encoder(item)) for name, item in value.items()
    )


def members(number: int, value_encoder: Encoder) -> Encoder:
    """A JSON object as a message whose field 1 is the repeated message of `named`."""
    return inside(number, named(1, value_encoder))


class Message:
    """Encoders of a message's members; filled after construction where messages refer to each other."""

    __slots__ = ("extension", "fields")

    def __init__(self, extension: int = 0, fields: dict[str, Encoder] | None = None) -> None:
        self.extension = extension
        self.fields: dict[str, Encoder] = fields or {}

    def encode(self, value: dict[str, Any]) -> bytes:
        """The message without tag and length; members the message does not have are left out."""
        out = []
        for name, item in value.items():
            if name.startswith("x-"):
                out.append(_framed(self.extension, _framed(1, name.encode()) + _YAML(item)))
            elif (encoder := self.fields.get(name)) is not None:
                out.append(encoder(item))
        return b"".join(out)

    def __call__(self, number: int) -> Encoder:
        """This message as a field."""
        return lambda value: _framed(number, self.encode(value))


_YAML = any_value(2)

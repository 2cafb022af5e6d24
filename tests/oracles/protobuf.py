"""Protobuf of object trees, slow and obvious: straight from the type tables, one field at a time."""

from __future__ import annotations

import base64
import json
import struct
from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi_core.meta import time as times
from fastapi_core.schema.types import Field, Type

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FORMS_OF_RAW = ("rawObject", "rawAny", "fields")


class BrokenError(Exception):
    """The bytes are no message of the type."""


# Writing


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = b""
    while number >= 128:
        out += bytes([number % 128 + 128])
        number //= 128
    return out + bytes([number])


def field(number: int, wire: int, content: bytes) -> bytes:
    return varint(number * 8 + wire) + (varint(len(content)) if wire == 2 else b"") + content


def message(type_: Type, tree: dict[str, Any]) -> bytes:
    return b"".join(member(f, tree) for f in sorted(type_.declared, key=lambda f: f.number))


def member(f: Field, tree: dict[str, Any]) -> bytes:
    if f.inline:
        assert f.type is not None
        return field(f.number, 2, message(f.type, tree))
    value = tree.get(f.name)
    if f.card == "list":
        return b"".join(single(f, f.number, item) for item in value or [])
    if f.card == "map":
        pairs = sorted((value or {}).items(), key=lambda pair: pair[0].encode())
        return b"".join(field(f.number, 2, field(1, 2, k.encode()) + single(f, 2, v)) for k, v in pairs)
    if value is None and (f.pointer or f.scalar == "bytes" or (f.type is not None and f.type.json == "list")):
        return b""
    return single(f, f.number, value)


def single(f: Field, number: int, value: Any) -> bytes:
    if f.scalar == "string":
        return field(number, 2, (value or "").encode())
    if f.scalar == "bytes":
        return b"" if value is None else field(number, 2, base64.b64decode(value))
    if f.scalar == "double":
        return field(number, 1, struct.pack("<d", value or 0))
    if f.scalar:
        return field(number, 0, varint(int(value or 0)))
    assert f.type is not None
    return field(number, 2, special(f.type, value) if f.type.json else message(f.type, value or {}))


def special(type_: Type, value: Any) -> bytes:
    form = type_.json
    if form in ("time", "microtime"):
        if value is None:
            return b""
        moment = times.parse(value)
        seconds = (moment.replace(microsecond=0) - EPOCH) // timedelta(seconds=1)
        nanos = moment.microsecond * 1000 if form == "microtime" else 0
        return field(1, 0, varint(seconds)) + field(2, 0, varint(nanos))
    if form == "duration":
        return field(1, 0, varint(times.parse_duration(value or "0s")))
    if form == "quantity":
        return field(1, 2, (value or "0").encode())
    if form == "intOrString":
        number, text = (0, value) if isinstance(value, str) else (value or 0, "")
        kind = int(isinstance(value, str))
        return field(1, 0, varint(kind)) + field(2, 0, varint(number)) + field(3, 2, text.encode())
    if form in FORMS_OF_RAW:
        return (
            b"" if value is None else field(1, 2, json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
        )
    if form == "list":
        return b"".join(field(1, 2, item.encode()) for item in value or [])
    schema = next(f.type for f in type_.declared if f.type is not None)
    if form == "schemaOrBool":
        whole = field(2, 2, message(schema, value)) if isinstance(value, dict) else b""
        return field(1, 0, varint(bool(whole) or value is True)) + whole
    if isinstance(value, dict):
        return field(1, 2, message(schema, value))
    if form == "schemaOrStringList":
        return b"".join(field(2, 2, item.encode()) for item in value or [])
    return b"".join(field(2, 2, message(schema, item)) for item in value or [])


# Reading


def take_varint(data: bytes) -> tuple[int, bytes]:
    value = 0
    for place in range(10):
        if place >= len(data):
            raise BrokenError("short")
        value += (data[place] & 127) << (7 * place)
        if data[place] < 128:
            return value % 2**64, data[place + 1 :]
    raise BrokenError("long number")


def take(data: bytes) -> tuple[int, int, Any, bytes]:
    """(number, wire type, value, what follows) of the first field."""
    tag, rest = take_varint(data)
    number, wire = tag // 8 % 2**32, tag % 8
    if wire == 4 or not 0 < number < 2**31:
        raise BrokenError("tag")
    value, rest = take_value(wire, rest)
    return number, wire, value, rest


def take_value(wire: int, rest: bytes) -> tuple[Any, bytes]:
    if wire == 0:
        return take_varint(rest)
    if wire == 3:
        while True:
            tag, rest = take_varint(rest)
            if tag % 8 == 4:
                return None, rest
            _, rest = take_value(tag % 8, rest)
    if wire == 2:
        size, rest = take_varint(rest)
    elif wire in (1, 5):
        size = 8 if wire == 1 else 4
    else:
        raise BrokenError("wire type")
    if size > len(rest):
        raise BrokenError("short")
    return rest[:size], rest[size:]


def fields(data: bytes) -> list[tuple[int, int, Any]]:
    out = []
    while data:
        number, wire, value, data = take(data)
        out.append((number, wire, value))
    return out


def text(data: bytes) -> str:
    return data.decode("utf-8", "fastapi_core_go")


def signed(value: int, bits: int) -> int:
    value %= 2**bits
    return value - 2**bits if value >= 2 ** (bits - 1) else value


def read(type_: Type, data: bytes, into: dict[str, Any] | None = None) -> dict[str, Any]:
    out = {} if into is None else into
    known = {f.number: f for f in type_.declared}
    for number, wire, value in fields(data):
        f = known.get(number)
        if f is not None:
            read_field(f, wire, value, out)
    return out


def read_field(f: Field, wire: int, value: Any, out: dict[str, Any]) -> None:
    expected = {"varint": 0, "fixed64": 1, "len": 2}[f.wire]
    if f.card == "list" and wire == 2 and expected != 2:
        items = out.setdefault(f.name, [])
        while value:
            item, value = take_value(expected, value)
            items.append(read_single(f, item))
        return
    if wire != (2 if f.card == "map" else expected):
        raise BrokenError("wire type")
    if f.card == "list":
        out.setdefault(f.name, []).append(read_single(f, value))
    elif f.card == "map":
        key, content = "", None
        for number, inner, part in fields(value):
            if number in (1, 2) and inner != (2 if number == 1 else expected):
                raise BrokenError("wire type")
            if number == 1:
                key = text(part)
            elif number == 2:
                content = read_single(f, part)
        out.setdefault(f.name, {})[key] = empty(f) if content is None else content
    elif f.inline:
        assert f.type is not None
        read(f.type, value, out)
    elif f.type is not None and not f.type.json:
        read(f.type, value, out.setdefault(f.name, {}))
    else:
        decoded = read_single(f, value)
        if not decoded and not f.pointer and f.scalar not in ("", "bytes"):
            out.pop(f.name, None)
        else:
            out[f.name] = decoded


def empty(f: Field) -> Any:
    if f.type is not None:
        return {"": {}, "list": [], "quantity": "0", "intOrString": 0}.get(f.type.json)
    return {"string": "", "bytes": "", "bool": False}.get(f.scalar, 0)


def read_single(f: Field, value: Any) -> Any:
    if f.scalar == "string":
        return text(value)
    if f.scalar == "bytes":
        return base64.b64encode(value).decode()
    if f.scalar == "bool":
        return value != 0
    if f.scalar == "double":
        real = struct.unpack("<d", value)[0]
        if real != real or real in (float("inf"), float("-inf")):
            raise BrokenError("no JSON number")
        return real
    if f.scalar:
        return signed(value, 32 if f.scalar == "int32" else 64)
    assert f.type is not None
    return read_special(f.type, value) if f.type.json else read(f.type, value)


def read_special(type_: Type, data: bytes) -> Any:
    form = type_.json
    if not data and form in ("time", "microtime"):
        return None
    wires = {f.number: (f, {"varint": 0, "fixed64": 1, "len": 2}[f.wire]) for f in type_.declared}
    raw: dict[int, list[Any]] = {}
    for number, wire, value in fields(data):
        if number in wires:
            if wire != wires[number][1]:
                raise BrokenError("wire type")
            raw.setdefault(number, []).append(value)
    last = {number: values[-1] for number, values in raw.items()}
    if form in ("time", "microtime"):
        return moment(signed(last.get(1, 0), 64), signed(last.get(2, 0), 32), micro=form == "microtime")
    if form == "duration":
        return times.format_duration(signed(last.get(1, 0), 64))
    if form == "quantity":
        return text(last[1]) if 1 in last else "0"
    if form == "intOrString":
        if last.get(1, 0) > 1:
            raise BrokenError("kind")
        return text(last.get(3, b"")) if last.get(1) else signed(last.get(2, 0), 32)
    if form in FORMS_OF_RAW:
        if not last.get(1):
            return None
        try:
            return json.loads(last[1])
        except ValueError as error:
            raise BrokenError("JSON") from error
    if form == "list":
        return [text(item) for item in raw.get(1, [])]
    return read_schema(type_, form, raw)


def read_schema(type_: Type, form: str, raw: dict[int, list[Any]]) -> Any:
    schema = next(f.type for f in type_.declared if f.type is not None)
    place = 2 if form == "schemaOrBool" else 1
    whole: dict[str, Any] | None = None
    for part in raw.get(place, []):
        whole = read(schema, part, {} if whole is None else whole)
    if form == "schemaOrBool":
        return raw.get(1, [0])[-1] != 0 if whole is None else whole
    items = [text(item) if form == "schemaOrStringList" else read(schema, item) for item in raw.get(2, [])]
    return items or whole


def moment(seconds: int, nanos: int, *, micro: bool) -> str | None:
    micros = (abs(nanos) // 1000) * (1 if nanos >= 0 else -1) if micro else 0
    try:
        when = EPOCH + timedelta(seconds=seconds, microseconds=micros)
    except OverflowError as error:
        raise BrokenError("year") from error
    if when == times.ZERO:
        return None
    return times.format_micro(when) if micro else times.format_time(when)

"""What expressions yield, as plain JSON trees: for patches, messages and mapped identities."""

from __future__ import annotations

import base64
from typing import Any

from fastapi_core.cel import times
from fastapi_core.cel.errors import EvalError
from fastapi_core.cel.values import (
    NONE,
    Duration,
    MessageValue,
    Opaque,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    type_name,
)
from fastapi_core.errors import go_quote


def to_json(value: Any) -> Any:
    """The JSON tree of a value; EvalError for one that JSON cannot hold. Containers are new, values are shared."""
    kind = type(value)
    if value is None or kind in (str, bool, int, float):
        return value
    if isinstance(value, dict):
        return {_key(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if kind is UInt:
        return int(value)
    if kind is Timestamp:
        return times.format_timestamp(value)
    if kind is Duration:
        return times.format_duration(value)
    if kind is bytes:
        return base64.b64encode(value).decode()
    if kind is Optional:
        return None if value is NONE else to_json(value.value)
    if isinstance(value, Opaque | TypeValue):
        raise EvalError(f"unsupported conversion of {type_name(value)}")
    raise EvalError(f"unsupported type {type_name(value)}")


def _key(key: Any) -> str:
    if type(key) is not str:
        raise EvalError(f"map key {key} is not string")
    return key


def misnamed(message: MessageValue) -> list[str]:
    """What is wrong with the names of messages inside one: each is called after the path of its field."""
    found: list[str] = []
    _check(message, message.cel_type, found)
    return found


def _check(value: Any, name: str, found: list[str]) -> None:
    if isinstance(value, MessageValue):
        if value.cel_type != name:
            found.append(
                f"unexpected type name {go_quote(value.cel_type)}, expected {go_quote(name)},"
                " which matches field name path from root Object type"
            )
        for field, inner in value.items():
            _check(inner, f"{name}.{field}", found)
    elif isinstance(value, dict):
        for inner in value.values():
            _check(inner, name, found)
    elif isinstance(value, list):
        for inner in value:
            _check(inner, name, found)

"""Normalisation of object trees, slow and obvious: straight from the type tables, one decision at a time."""

from __future__ import annotations

import base64
import re
from typing import Any

from fastapi_core.meta import quantity, time
from fastapi_core.schema.types import Field, Type

INT_LIMITS = {"int32": 2**31, "int64": 2**63}


class RefusedError(Exception):
    """The tree does not fit the type."""


def normalize(type_: Type, tree: Any) -> tuple[dict[str, Any], list[str]]:
    unknown: list[str] = []
    return struct(type_, tree, "", unknown), list(dict.fromkeys(unknown))[:100]


def struct(type_: Type, tree: Any, path: str, unknown: list[str] | None) -> dict[str, Any]:
    if not isinstance(tree, dict):
        raise RefusedError(path)
    fields = dict(type_.fields)
    if type_.kind:
        fields = {"kind": Field("kind", scalar="string"), "apiVersion": Field("apiVersion", scalar="string"), **fields}
    decoded: dict[str, Any] = {}
    for name, value in tree.items():
        place = f"{path}.{name}" if path else name
        if name in fields:
            if value is not None:
                decoded[name] = member(fields[name], value, place, unknown)
        elif unknown is not None:
            unknown.append(place)
    json_stored = type_.ref.startswith("apiextensions.k8s.io/")
    out = {}
    for name, field in fields.items():
        if (type_.ref, name) == ("autoscaling/v2.HPAScalingRules", "policies") and decoded.get(name) == []:
            printed, value = True, []
        else:
            printed, value = show(field, decoded.get(name), name in decoded, json_stored)
        if printed:
            out[name] = value
    return out


def show(field: Field, value: Any, given: bool, json_stored: bool) -> tuple[bool, Any]:
    """Whether a member is printed, and as what."""
    if field.card:
        if not given or not value:
            return field.omit == "", value if given and json_stored else None
        return True, value
    if field.pointer:
        return given or field.omit == "", value
    if not given:
        value = zero(field)
    form = field.type.json if field.type is not None else ""
    is_struct = field.type is not None and form != "list"
    if is_struct:
        return not (field.omit == "empty+zero" and value is None), value
    if value in ("", 0, None, []):
        empty = value if given and json_stored else None
        return field.omit == "", empty if field.scalar == "bytes" or form == "list" else value
    return True, value


def zero(field: Field) -> Any:
    if field.type is None:
        return {"string": "", "bool": False, "bytes": "" if field.card else None}.get(field.scalar, 0)
    form = field.type.json
    if not form:
        return struct(field.type, {}, "", None)
    return {"duration": "0s", "quantity": "0", "intOrString": 0, "schemaOrBool": False}.get(form)


def member(field: Field, value: Any, path: str, unknown: list[str] | None) -> Any:
    if field.card == "list":
        if not isinstance(value, list):
            raise RefusedError(path)
        return [one(field, item, f"{path}[{i}]", unknown) for i, item in enumerate(value)]
    if field.card == "map":
        if not isinstance(value, dict):
            raise RefusedError(path)
        out = {key: one(field, item, f"{path}.{key}", unknown) for key, item in value.items()}
        return dict(sorted(out.items()))
    return one(field, value, path, unknown)


def one(field: Field, value: Any, path: str, unknown: list[str] | None) -> Any:
    if value is None:
        return zero(field)
    if field.type is None:
        return scalar(field.scalar, value, path)
    form = field.type.json
    if not form:
        return struct(field.type, value, path, unknown)
    if form.startswith("schema"):
        return schema(field.type, form, value, path)
    return special(form, value, path, milli=field.alias == "core/v1.ResourceList")


def scalar(name: str, value: Any, path: str) -> Any:
    if name == "string" and isinstance(value, str):
        return value
    if name == "bool" and isinstance(value, bool):
        return value
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if name in INT_LIMITS and is_integer and -INT_LIMITS[name] <= value < INT_LIMITS[name]:
        return value
    if name == "double" and isinstance(value, int | float) and not isinstance(value, bool):
        return int(value) if isinstance(value, int) or (value.is_integer() and abs(value) < 2**53) else value
    if name == "bytes" and isinstance(value, str):
        text = re.sub(r"[\r\n]", "", value)
        if re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", text) and len(text) % 4 == 0:
            return base64.b64encode(base64.b64decode(text)).decode()
    raise RefusedError(path)


def special(form: str, value: Any, path: str, *, milli: bool) -> Any:
    if form in ("rawObject", "rawAny", "fields"):
        return value
    if form == "list" and isinstance(value, list):
        return [scalar("string", "" if item is None else item, path) for item in value]
    if form == "intOrString":
        return value if isinstance(value, str) else scalar("int32", value, path)
    if form == "quantity" and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise RefusedError(path)
    try:
        if form == "quantity":
            parsed = quantity.parse(value.strip())
            return str(parsed.round_up(-3) if milli else parsed)
        if form == "duration":
            return time.format_duration(time.parse_duration(value))
        when = time.parse(value) if form == "time" else time.parse_micro(value)
    except ValueError:
        raise RefusedError(path) from None
    if when == time.ZERO:
        return None
    return time.format_time(when) if form == "time" else time.format_micro(when)


def schema(type_: Type, form: str, value: Any, path: str) -> Any:
    inner = next(field.type for field in type_.declared if field.type is not None)
    if isinstance(value, dict):
        return struct(inner, value, path, None)
    if form == "schemaOrBool":
        if isinstance(value, bool):
            return value
        raise RefusedError(path)
    if not isinstance(value, list) or not value:
        return None
    if form == "schemaOrStringList":
        return [scalar("string", "" if item is None else item, path) for item in value]
    return [struct(inner, {} if item is None else item, path, None) for item in value]

"""What a structural schema does to an object, slow and obvious: straight over the schema's JSON, nothing kept."""

from __future__ import annotations

import json
import re
from typing import Any

META = ("apiVersion", "kind", "metadata")
Schema = dict[str, Any]


def _member(schema: Schema | None, name: str) -> tuple[bool, Schema | None]:
    """(known, schema) of a member."""
    if schema is None:
        return False, None
    if name in (schema.get("properties") or {}):
        return True, schema["properties"][name]
    extra = schema.get("additionalProperties")
    return extra is not None, extra if isinstance(extra, dict) else None


def prune(value: Any, schema: Schema | None, path: str = "", *, root: bool = True, keep: bool = False) -> list[str]:
    """Paths of what was unknown, which is dropped; `keep`: unknown members of this value stay."""
    keep = keep or bool((schema or {}).get("x-kubernetes-preserve-unknown-fields"))
    unknown: list[str] = []
    if isinstance(value, dict):
        embedded = root or bool((schema or {}).get("x-kubernetes-embedded-resource"))
        for name in list(value):
            if embedded and name in META:
                continue
            at = f"{path}.{name}" if path else name
            known, inner = _member(schema, name)
            if known:
                unknown += prune(value[name], inner, at, root=False)
            elif not keep:
                del value[name]
                unknown.append(at)
    elif isinstance(value, list):
        items = None if schema is None else schema.get("items")
        if items is not None or not keep:
            for index, item in enumerate(value):
                unknown += prune(item, items, f"{path}[{index}]", root=False, keep=keep)
    return unknown


def drop_nulls(value: Any, schema: Schema | None) -> None:
    if isinstance(value, dict):
        for name in list(value):
            inner = _member(schema, name)[1]
            if value[name] is None and inner is not None and not inner.get("nullable") and inner.get("default") is None:
                del value[name]
            else:
                drop_nulls(value[name], inner)
    elif isinstance(value, list):
        for item in value:
            drop_nulls(item, None if schema is None else schema.get("items"))


def default(value: Any, schema: Schema | None) -> None:
    if schema is None:
        return

    def replaced(inner: Schema) -> Any:
        return json.loads(json.dumps(inner.get("default")))

    if isinstance(value, dict):
        for name, inner in (schema.get("properties") or {}).items():
            if inner.get("default") is not None and (
                name not in value or (value[name] is None and not inner.get("nullable"))
            ):
                value[name] = replaced(inner)
        for name in list(value):
            if name in (schema.get("properties") or {}):
                default(value[name], schema["properties"][name])
            elif isinstance(schema.get("additionalProperties"), dict):
                extra = schema["additionalProperties"]
                if value[name] is None and not extra.get("nullable"):
                    value[name] = replaced(extra)
                default(value[name], extra)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            if item is None and not schema["items"].get("nullable"):
                value[index] = replaced(schema["items"])
            default(value[index], schema["items"])


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int):
        return "integer" if -(2**63) <= value < 2**63 else "number"
    return {float: "number", list: "array", dict: "object"}[type(value)]


def _same(left: Any, right: Any) -> bool:
    return _kind(left) == _kind(right) and json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def _types(schema: Schema) -> list[str]:
    if schema.get("x-kubernetes-int-or-string"):
        return ["integer", "string"]
    return [schema["type"]] if schema.get("type") else []


def valid(value: Any, schema: Schema) -> bool:
    """Whether a value has no errors (formats are not in it)."""
    kind, types = _kind(value), _types(schema)
    if value is None:
        return (not types or bool(schema.get("nullable"))) and not schema.get("enum")
    whole = kind == "number" and float(value).is_integer() and abs(value) < 2**53
    if (
        types
        and kind not in types
        and not (kind == "integer" and "number" in types)
        and not (whole and "integer" in types)
    ):
        return False
    if schema.get("enum") and not any(_equal_in_enum(value, item) for item in schema["enum"]):
        return False
    return (
        _alternatives(value, schema)
        and (kind != "string" or _string(value, schema))
        and (kind not in ("integer", "number") or _number(value, schema))
        and (kind != "array" or _array(value, schema))
        and (kind != "object" or _object(value, schema))
    )


def _equal_in_enum(value: Any, item: Any) -> bool:
    numbers = (int, float)
    if type(value) in numbers and type(item) in numbers:
        return int(value) == item if type(item) is int else float(value) == item
    if type(value) is int and isinstance(item, str):
        return 0 <= value < 0x110000 and chr(value) == item
    return _same(value, item)


def _alternatives(value: Any, schema: Schema) -> bool:
    return (
        all(valid(value, inner) for inner in schema.get("allOf") or ())
        and (not schema.get("anyOf") or any(valid(value, inner) for inner in schema["anyOf"]))
        and (not schema.get("oneOf") or [valid(value, inner) for inner in schema["oneOf"]].count(True) == 1)
        and (schema.get("not") is None or not valid(value, schema["not"]))
    )


def _string(value: str, schema: Schema) -> bool:
    return (
        len(value) <= schema.get("maxLength", 10**9)
        and len(value) >= schema.get("minLength", 0)
        and (not schema.get("pattern") or re.search(schema["pattern"], value) is not None)
    )


def _number(value: float, schema: Schema) -> bool:
    if _types(schema) == ["integer"] and not (float(value).is_integer() and -(2**63) <= value < 2**63):
        return False
    least, most, factor = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if least is not None and (value < least or (value == least and schema.get("exclusiveMinimum"))):
        return False
    if most is not None and (value > most or (value == most and schema.get("exclusiveMaximum"))):
        return False
    return factor is None or value % factor == 0


def _array(value: list[Any], schema: Schema) -> bool:
    mode, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    told: list[Any] = value
    if mode == "map":
        if any(item is not None and not isinstance(item, dict) for item in value):
            return False
        told = [{key: (item or {})[key] for key in keys if key in (item or {})} for item in value]
    if mode in ("set", "map") and any(_same(a, b) for at, a in enumerate(told) for b in told[:at]):
        return False
    return schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 10**9) and (
        "items" not in schema or all(valid(item, schema["items"]) for item in value)
    )


def _resource(value: dict[str, Any]) -> bool:
    """Whether an object inside of another says what it is. Of metadata only the values of labels are looked at here."""
    version, kind = value.get("apiVersion"), value.get("kind")
    return (
        isinstance(version, str)
        and re.fullmatch("[^/]+(/[^/]*)?", version) is not None
        and isinstance(kind, str)
        and re.fullmatch("[A-Za-z][A-Za-z0-9-]*", kind) is not None
        and all(re.fullmatch("[a-z0-9]*", label) for label in value.get("metadata", {}).get("labels", {}).values())
    )


def _object(value: dict[str, Any], schema: Schema) -> bool:
    if schema.get("x-kubernetes-embedded-resource") and not _resource(value):
        return False
    if not schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", 10**9):
        return False
    if any(name not in value for name in schema.get("required") or ()):
        return False
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, inner in value.items():
        if name in properties:
            if not valid(inner, properties[name]):
                return False
        elif extra is False or (isinstance(extra, dict) and not valid(inner, extra)):
            return False
    return True

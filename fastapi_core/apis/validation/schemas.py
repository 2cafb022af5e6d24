"""Schemas of custom resources: which keywords may be used where, so that a schema tells the structure of objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fastapi_core.apis.validation import schema_rules
from fastapi_core.apis.validation.rules import Report, Tree

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED: Final = ("$ref", "definitions", "dependencies", "patternProperties", "additionalItems", "id")
_JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
_ROOT_FIELDS: Final = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations"
)
_ROOT_ALLOWED: Final = frozenset(
    {
        "description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
        "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items",
        "properties", "externalDocs", "example", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations",
    }
)  # fmt: skip
_STATUS: Final = "if the status subresource is enabled"
#: Keywords that only describe, and so have no place inside logic: (name, what they must be).
_PLAIN_ONLY: Final = (
    ("type", "must be empty to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
)
_LIST, _MAP, _KEYS = "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-list-map-keys"
_INT_OR_STRING, _PRESERVE = "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"


def children(schema: Tree) -> Iterator[tuple[str, Tree]]:
    """The schemas of members and items, with their part of the path."""
    for name, member in (schema.get("properties") or {}).items():
        if isinstance(member, dict):
            yield f".properties[{name}]", member
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        yield ".additionalProperties", extra
    items = schema.get("items")
    if isinstance(items, dict):
        yield ".items", items


def _junctors(schema: Tree) -> Iterator[tuple[str, Tree]]:
    for name in _JUNCTORS:
        for index, item in enumerate(schema.get(name) or ()):
            yield f".{name}[{index}]", item
    if schema.get("not") is not None:
        yield ".not", schema["not"]


def has_defaults(schema: Tree) -> bool:
    return schema.get("default") is not None or any(has_defaults(child) for _, child in children(schema))


def validate_root(schema: Tree, path: str, report: Report, *, status: bool) -> None:
    """The whole schema of a version; `status`: it has the status subresource."""
    kind = schema.get("type") or ""
    if status:
        extra = [
            name for name, value in schema.items() if name not in _ROOT_ALLOWED and value not in (None, False, [], {})
        ]
        if extra or any(schema.get(name) is not None for name in _TOUCHY):
            text = f"only [{_ROOT_FIELDS}] fields are allowed at the root of the schema {_STATUS}"
            report.invalid(path, schema, text)
        if kind and kind != "object":
            text = f'only "object" is allowed as the type at the root of the schema {_STATUS}'
            report.invalid(path + ".type", kind, text)
    if schema.get("nullable"):
        report.forbidden(path + ".nullable", "nullable cannot be true at the root")
    sound = len(report)
    _keywords(schema, path, report)
    if not kind:
        report.required(path + ".type", "must not be empty at the root")
    elif kind != "object":
        report.invalid(path + ".type", kind, "must be object at the root")
    _structure(schema, path, report)
    schema_rules.shape(schema, path, report)
    if len(report) == sound:
        schema_rules.expressions(schema, path, report)


#: Root keywords whose mere presence counts.
_TOUCHY: Final = ("not", _LIST, _MAP, "maxProperties", "minProperties", "$ref")


def _keywords(schema: Tree, path: str, report: Report) -> None:
    for name in _UNSUPPORTED:
        value = schema.get(name)
        if value is not None and not (name == "id" and not value):
            report.forbidden(f"{path}.{name}", f"{name} is not supported")
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        report.forbidden(path + ".uniqueItems", text)
    if isinstance(schema.get("items"), list):
        report.forbidden(path + ".items", "items must be a schema object and not an array")
    if schema.get("additionalProperties") not in (None, False) and schema.get("properties"):
        text = "additionalProperties and properties are mutual exclusive"
        report.forbidden(path + ".additionalProperties", text)
    for part, child in children(schema):
        _keywords(child, path + part, report)


def _structure(schema: Tree, path: str, report: Report) -> None:
    kind = schema.get("type") or ""
    if kind and kind not in _TYPES:
        report.unsupported(path + ".type", kind, _TYPES)
    if schema.get(_PRESERVE) is False:
        report.invalid(f"{path}.{_PRESERVE}", False, "must be true or undefined")
    _embedded(schema, kind, path, report)
    _lists(schema, kind, path, report)
    _maps(schema, kind, path, report)
    for part, inner in _junctors(schema):
        if schema.get(_INT_OR_STRING):
            inner = _without_types(part, inner)
        _logic(inner, path + part, report)
    for part, child in children(schema):
        if not child.get("type") and not child.get(_INT_OR_STRING) and not child.get(_PRESERVE):
            what = "array items" if part == ".items" else "object fields"
            report.required(f"{path}{part}.type", f"must not be empty for specified {what}")
        _structure(child, path + part, report)


_INTEGER_OR_STRING = [{"type": "integer"}, {"type": "string"}]


def _without_types(part: str, inner: Tree) -> Tree:
    """An int-or-string may say so again, and only there are types allowed: in its anyOf, or in that of its first allOf."""
    if part.startswith(".anyOf[") and inner in _INTEGER_OR_STRING:
        return {}
    if part == ".allOf[0]" and inner.get("anyOf") == _INTEGER_OR_STRING:
        return {name: value for name, value in inner.items() if name != "anyOf"}
    return inner


def _embedded(schema: Tree, kind: str, path: str, report: Report) -> None:
    if not schema.get(_EMBEDDED):
        return
    if not schema.get("properties") and not schema.get(_PRESERVE):
        text = f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}"
        report.required(path + ".properties", text)
    if kind != "object":
        text = f"must be object if {_EMBEDDED} is true"
        if kind:
            report.invalid(path + ".type", kind, text)
        else:
            report.required(path + ".type", text)


def _typed(kind: str, wanted: str, marker: str, path: str, report: Report) -> None:
    text = f"must be {wanted} if {marker} is specified"
    if not kind:
        report.required(path + ".type", text)
    elif kind != wanted:
        report.invalid(path + ".type", kind, text)


def _lists(schema: Tree, kind: str, path: str, report: Report) -> None:
    mode, keys, items = schema.get(_LIST), schema.get(_KEYS) or [], schema.get("items")
    if mode is not None:
        _typed(kind, "array", _LIST, path, report)
        if mode not in ("atomic", "set", "map"):
            report.unsupported(f"{path}.{_LIST}", mode, ("atomic", "set", "map"))
    if mode == "set" and isinstance(items, dict) and items.get("type") == "object" and items.get(_MAP) != "atomic":
        text = f"must be atomic as item of a list with {_LIST}=set"
        report.invalid(f"{path}.items.{_MAP}", items.get(_MAP), text)
    if keys and mode != "map":
        text = f"must be map if {_KEYS} is non-empty"
        if mode is None:
            report.required(f"{path}.{_LIST}", text)
        else:
            report.invalid(f"{path}.{_LIST}", mode, text)
    if kind == "array" and items is None:
        report.required(path + ".items", "must be specified")
    if mode == "map":
        _list_map(keys, items, path, report)


def _list_map(keys: list[str], items: Any, path: str, report: Report) -> None:
    if not keys:
        report.required(f"{path}.{_KEYS}", f"must not be empty if {_LIST} is map")
    if not isinstance(items, dict):
        report.required(path + ".items", f"must have a schema if {_LIST} is map")
        return
    if items.get("type") != "object":
        text = f"must be object if parent array's {_LIST} is map"
        report.invalid(path + ".items.type", items.get("type") or "", text)
    members = items.get("properties") or {}
    if items.get("type") == "object" and any(key not in members for key in keys):
        report.invalid(f"{path}.{_KEYS}", keys, "entries must all be names of item properties")
    if len(set(keys)) < len(keys):
        report.invalid(f"{path}.{_KEYS}", keys, "must not contain duplicate entries")
    for key in dict.fromkeys(keys):
        if key in members and key not in (items.get("required") or ()) and members[key].get("default") is None:
            text = f"this property is in {_KEYS}, so it must have a default or be a required property"
            report.required(f"{path}.items.properties[{key}].default", text)


def _maps(schema: Tree, kind: str, path: str, report: Report) -> None:
    mode = schema.get(_MAP)
    if mode is None:
        return
    _typed(kind, "object", _MAP, path, report)
    if mode not in ("atomic", "granular"):
        report.unsupported(f"{path}.{_MAP}", mode, ("atomic", "granular"))


def _logic(schema: Tree, path: str, report: Report) -> None:
    """Inside of allOf, anyOf, oneOf and not: only what restricts values."""
    for name, text in _PLAIN_ONLY:
        if schema.get(name) not in (None, False, ""):
            report.forbidden(f"{path}.{name}", text)
    for part, child in [*children(schema), *_junctors(schema)]:
        if part != ".additionalProperties":
            _logic(child, path + part, report)


def find(schema: Tree, place: str) -> Tree | None:
    """The schema at a plain path like `.spec.a`; None when there is none."""
    current: Tree = schema
    for step in place[1:].split("."):
        found = (current.get("properties") or {}).get(step)
        if not isinstance(found, dict):
            return None
        current = found
    return current

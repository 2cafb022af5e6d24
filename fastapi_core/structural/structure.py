"""Whether a schema is structural: every member has a type, and alternatives only restrict what is declared outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastapi_core.errors import FieldError

Tree = Mapping[str, Any]

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"
MAP_TYPE: Final = "x-kubernetes-map-type"
RULES: Final = "x-kubernetes-validations"
JUNCTORS: Final = ("allOf", "anyOf", "oneOf")

_ROOT, _ITEM, _FIELD = "at the root", "for specified array items", "for specified object fields"
_UNSUPPORTED: Final = (
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additionalItems", "additionalItems"),
    ("definitions", "definitions"),
)
_PRESENT: Final = frozenset({"additionalItems"})
_INTEGER_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
#: Keywords that have no place inside alternatives: (name, what they must be).
_PLAIN_ONLY: Final = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (PRESERVE, "must be false to be structural"),
    (EMBEDDED, "must be false to be structural"),
    (INT_OR_STRING, "must be false to be structural"),
    (LIST_KEYS, "must be empty to be structural"),
    (LIST_TYPE, "must be undefined to be structural"),
    (MAP_TYPE, "must be undefined to be structural"),
    (RULES, "must be empty to be structural"),
)
#: Of these, anything that is set counts.
_POINTERS: Final = frozenset({"default", LIST_TYPE, MAP_TYPE})
_ONLY_NAMES: Final = "must not specify anything other than name and generateName, but metadata is implicitly specified"
_NESTED_METADATA: Final = "must not be specified in a nested context"
_NO_PRESERVE: Final = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"


def members(schema: Tree) -> list[tuple[str, Tree]]:
    """The schemas of named members."""
    found = schema.get("properties")
    return [item for item in found.items() if isinstance(item[1], dict)] if isinstance(found, dict) else []


def part(schema: Tree, name: str) -> Tree | None:
    """A keyword that is a schema."""
    found = schema.get(name)
    return found if isinstance(found, dict) else None


def alternatives(schema: Tree) -> Iterator[tuple[str, Tree]]:
    """The schemas inside of logic, with their part of a path."""
    for name in JUNCTORS:
        for index, item in enumerate(schema.get(name) or ()):
            if isinstance(item, dict):
                yield f"{name}[{index}]", item
    inner = part(schema, "not")
    if inner is not None:
        yield "not", inner


def walk(schema: Tree) -> Iterator[Tree]:
    """A schema and all in it."""
    yield schema
    for _, member in members(schema):
        yield from walk(member)
    for name in ("additionalProperties", "items"):
        inner = part(schema, name)
        if inner is not None:
            yield from walk(inner)
    for _, inner in alternatives(schema):
        yield from walk(inner)


def obstacle(schema: Tree) -> str:
    """Why a schema cannot be read as a structure at all; empty when it can."""
    for inner in walk(schema):
        for name, shown in _UNSUPPORTED:
            value = inner.get(name)
            if value is not None if name in _PRESENT else value:
                return f"OpenAPIV3Schema '{shown}' is not supported"
        if isinstance(inner.get("items"), list) and inner["items"]:
            return "OpenAPIV3Schema 'items' must be a schema, but is an array"
        if inner.get(PRESERVE) is False:
            return f"internal error: '{PRESERVE}' must be true or undefined"
    return ""


def problems(schema: Tree, path: str) -> list[FieldError]:
    """What keeps a schema from being structural, sorted by text."""
    found: list[FieldError] = []
    _invariants(schema, _ROOT, path, found)
    for name, inner in alternatives(schema):
        _complete(inner, schema, path, f"{path}.{name}", found)
    return sorted(found, key=str)


def _invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError("Invalid value", path, detail, value)


def _invariants(schema: Tree, level: str, path: str, found: list[FieldError]) -> None:
    kind = schema.get("type") or ""
    items, extra = part(schema, "items"), schema.get("additionalProperties")
    if kind == "array" and items is None:
        found.append(FieldError("Required value", f"{path}.items", "must be specified"))
    if items is not None:
        _invariants(items, _ITEM, f"{path}.items", found)
    for name, member in members(schema):
        _invariants(member, _FIELD, f"{path}.properties[{name}]", found)
    if extra is not None:
        if level is _ROOT:
            found.append(FieldError("Forbidden", f"{path}.additionalProperties", "must not be used at the root"))
        if isinstance(extra, dict):
            _invariants(extra, _FIELD, f"{path}.additionalProperties", found)
    _extensions(schema, path, found)
    _values(schema, path, found)
    _type(schema, kind, level, path, found)
    if schema.get(EMBEDDED) and extra is not None:
        text = f"must not be used if {EMBEDDED} is set"
        found.append(FieldError("Forbidden", f"{path}.additionalProperties", text))
    if level is _ROOT and kind and kind != "object":
        found.append(_invalid(f"{path}.type", kind, "must be object at the root"))
    _metadata(schema, level is _ROOT, path, found)
    if schema.get(EMBEDDED) and not schema.get(PRESERVE) and not schema.get("properties"):
        found.append(FieldError("Required value", f"{path}.properties", _NO_PRESERVE))


def _type(schema: Tree, kind: str, level: str, path: str, found: list[FieldError]) -> None:
    if schema.get(EMBEDDED) and kind != "object":
        text = f"must be object if {EMBEDDED} is true"
        if kind:
            found.append(_invalid(f"{path}.type", kind, text))
        else:
            found.append(FieldError("Required value", f"{path}.type", text))
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        found.append(FieldError("Required value", f"{path}.type", f"must not be empty {level}"))


def _extensions(schema: Tree, path: str, found: list[FieldError]) -> None:
    if schema.get(INT_OR_STRING):
        for name in (PRESERVE, EMBEDDED):
            if schema.get(name):
                found.append(_invalid(f"{path}.{name}", True, f"must be false if {INT_OR_STRING} is true"))


def _metadata(schema: Tree, root: bool, path: str, found: list[FieldError]) -> None:
    properties = dict(members(schema))
    checked = root or bool(schema.get(EMBEDDED))
    if checked:
        for name in ("kind", "apiVersion"):
            if name in properties and properties[name].get("type") != "string":
                kind = properties[name].get("type") or ""
                found.append(_invalid(f"{path}.properties[{name}].type", kind, "must be string"))
    metadata = properties.get("metadata")
    if metadata is None:
        return
    at = f"{path}.properties[metadata]"
    if checked and metadata.get("type") != "object":
        found.append(_invalid(f"{at}.type", metadata.get("type") or "", "must be object"))
    if root:
        inner = metadata.get("properties") or {}
        rest = {name: value for name, value in metadata.items() if name not in ("type", "default")}
        if inner and set(inner) <= {"name", "generateName"}:
            rest.pop("properties")
        if any(_is_set(name, value) for name, value in rest.items()):
            found.append(FieldError("Forbidden", at, _ONLY_NAMES))


def _is_set(name: str, value: Any) -> bool:
    if name in ("additionalProperties", "additionalItems"):
        return value is not None
    return value is not None and value is not False and value not in ("", [], {})


def _values(schema: Tree, path: str, found: list[FieldError]) -> None:
    """The keywords about values of a node: alternatives, and the pattern."""
    any_of, all_of = schema.get("anyOf") or [], schema.get("allOf") or []
    for name, inner in alternatives(schema):
        if name.startswith("anyOf[") and any_of == _INTEGER_OR_STRING:
            continue
        if name == "allOf[0]" and all_of[0].get("anyOf") == _INTEGER_OR_STRING:
            inner = {key: value for key, value in inner.items() if key != "anyOf"}
        _nested(inner, f"{path}.{name}", found)
    pattern = schema.get("pattern")
    if pattern:
        problem = _pattern_problem(pattern)
        if problem:
            text = f"must be a valid regular expression, but isn't: {problem}"
            found.append(_invalid(f"{path}.pattern", pattern, text))


def _pattern_problem(pattern: str) -> str:
    from fastapi_core.cel.regex import compile_pattern
    from fastapi_core.cel.regex_translate import PatternError

    try:
        compile_pattern(pattern)
    except PatternError as error:
        return str(error)
    return ""


def _nested(schema: Tree, path: str, found: list[FieldError]) -> None:
    """Inside of alternatives: only what restricts values."""
    _values(schema, path, found)
    items = part(schema, "items")
    if items is not None:
        _nested(items, f"{path}.items", found)
    for name, member in members(schema):
        _nested(member, f"{path}.properties[{name}]", found)
    for name, text in _PLAIN_ONLY:
        value = schema.get(name)
        if value is not None and (name in _POINTERS or value not in (False, "", [])):
            found.append(FieldError("Forbidden", f"{path}.{name}", text))
    if "metadata" in (schema.get("properties") or {}):
        found.append(FieldError("Forbidden", f"{path}.properties[metadata]", _NESTED_METADATA))


def _complete(inner: Tree, schema: Tree | None, path: str, at: str, found: list[FieldError]) -> None:
    """What the alternatives of the root speak of is declared outside of them."""
    if schema is None:
        found.append(FieldError("Required value", path, f"because it is defined in {at}"))
        return
    for name, nested in alternatives(inner):
        _complete(nested, schema, path, f"{at}.{name}", found)
    items = part(inner, "items")
    if items is not None:
        _complete(items, part(schema, "items"), f"{path}.items", f"{at}.items", found)
    properties = dict(members(schema))
    for name, member in members(inner):
        _complete(member, properties.get(name), f"{path}.properties[{name}]", f"{at}.properties[{name}]", found)

"""Which keywords may be used where, and the list and map types; expressions are compiled along the way."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from fastapi_core.errors import FieldError, go_quote
from fastapi_core.records import dataclass
from fastapi_core.structural import fieldpath, goform, structure
from fastapi_core.structural.structure import LIST_KEYS, LIST_TYPE, MAP_TYPE, PRESERVE, RULES, Tree, members, part

if TYPE_CHECKING:
    from fastapi_core.structural.definition import Options
    from fastapi_core.structural.expressions import Context, Costs

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_META: Final = frozenset({"metadata", "kind", "apiVersion"})
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_INSIDE_MAP: Final = "inside additionalProperties applying to object metadata"
_UNIQUE: Final = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
_KEY_VALUE: Final = f"this property is in {LIST_KEYS}, so it must have a default or be a required property"
_KEY_NULL: Final = f"this property is in {LIST_KEYS}, so it cannot be nullable"


@dataclass(slots=True)
class Found:
    """Errors of schemas come before those of expressions."""

    schema: list[FieldError] = field(default_factory=list)
    expressions: list[FieldError] = field(default_factory=list)

    def extend(self, other: Found) -> None:
        self.schema += other.schema
        self.expressions += other.expressions


@dataclass(frozen=True, slots=True)
class _Place:
    """What holds where a schema stands."""

    options: Options
    root: bool = False
    no_defaults: str | None = None
    """Why there may be no default; None when there may."""
    in_metadata: bool = False
    uncorrelated: str = ""
    """The schema around whose parts have no old value; empty when there is none."""


def problems(schema: Tree, path: str, options: Options, costs: Costs | None) -> list[FieldError]:
    """The errors of a whole schema. `costs` adds up what expressions cost; None: they are not looked at."""
    context = None if costs is None else costs.context(schema)
    found = _problems(schema, path, _Place(options, root=True), context)
    return found.schema + found.expressions


def _invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError("Invalid value", path, detail, value)


def _required(path: str, detail: str) -> FieldError:
    return FieldError("Required value", path, detail)


def _forbidden(path: str, detail: str) -> FieldError:
    return FieldError("Forbidden", path, detail)


def _unsupported(path: str, value: Any, values: tuple[str, ...]) -> FieldError:
    return FieldError("Unsupported value", path, "supported values: " + ", ".join(map(go_quote, values)), value)


def _problems(schema: Tree, path: str, place: _Place, context: Context | None) -> Found:
    found = Found(_keywords(schema, path, place))
    if schema.get("uniqueItems"):
        found.schema.append(_forbidden(f"{path}.uniqueItems", _UNIQUE))
    _below(schema, path, replace(place, root=False), place.root, context, found)
    if schema.get(PRESERVE) is False:
        found.schema.append(_invalid(f"{path}.{PRESERVE}", False, "must be true or undefined"))
    found.schema += _map_type(schema, path)
    found.schema += _list_type(schema, path, place.options)
    found.schema += _list_map(schema, path)
    if place.options.map_keys:
        found.schema += key_problems(schema, path)
    rules = schema.get(RULES) or []
    for index, rule in enumerate(rules):
        found.schema += _rule(rule, schema, f"{path}.{RULES}[{index}]")
    if rules and not found.schema and context is not None:
        found.expressions += context.problems(path, place.options, place.uncorrelated)
    return found


# Inside


def _below(schema: Tree, path: str, place: _Place, root: bool, context: Context | None, found: Found) -> None:
    extra = schema.get("additionalProperties")
    if extra is not None:
        if schema.get("properties") and extra is not True:
            text = "additionalProperties and properties are mutual exclusive"
            found.schema.append(_forbidden(f"{path}.additionalProperties", text))
        inner = replace(place, no_defaults=_INSIDE_MAP) if place.in_metadata else place
        if isinstance(extra, dict):
            found.extend(_problems(extra, f"{path}.additionalProperties", inner, context and context.extra(extra)))
    for name, member in sorted(members(schema)):
        inner = _member_place(schema, name, path, place, root)
        at = f"{path}.properties[{name}]"
        found.extend(_problems(member, at, inner, context and context.member(name, member)))
    for name, nested in _other(schema):
        found.extend(_problems(nested, f"{path}.{name}", place, None))
    items = schema.get("items")
    if items is not None and schema.get(LIST_TYPE) != "map" and not place.uncorrelated:
        place = replace(place, uncorrelated=path)
    if isinstance(items, dict):
        found.extend(_problems(items, f"{path}.items", place, context and context.items(items)))
    elif isinstance(items, list):
        for index, item in enumerate(items):
            if isinstance(item, dict):
                found.extend(_problems(item, f"{path}.items[{index}]", place, None))


def _member_place(schema: Tree, name: str, path: str, place: _Place, root: bool) -> _Place:
    inner = place
    if schema.get(MAP_TYPE) not in (None, "granular", "atomic") and not inner.uncorrelated:
        inner = replace(inner, uncorrelated=path)
    if (root or schema.get(structure.EMBEDDED)) and name in _META:
        inner = replace(inner, in_metadata=True)
        if root:
            inner = replace(inner, no_defaults=f"in top-level {name}")
    return inner


def _other(schema: Tree) -> list[tuple[str, Tree]]:
    """Schemas that are no structure, in the reference's order."""
    nested = dict(structure.alternatives(schema))
    order = [name for start in ("not", "allOf", "oneOf", "anyOf") for name in nested if name.startswith(start)]
    found = [(name, nested[name]) for name in order]
    definitions = schema.get("definitions")
    if isinstance(definitions, dict):
        found += [
            (f"definitions[{name}]", inner) for name, inner in sorted(definitions.items()) if isinstance(inner, dict)
        ]
    return found


# Keywords


def has_valid_type(schema: Tree) -> bool:
    kind = schema.get("type") or ""
    return not kind or kind in _TYPES


def _keywords(schema: Tree, path: str, place: _Place) -> list[FieldError]:
    found: list[FieldError] = []
    if place.options.valid_types and not has_valid_type(schema):
        found.append(_unsupported(f"{path}.type", schema["type"], _TYPES))
    if schema.get("default") is not None and place.no_defaults is not None:
        found.append(_forbidden(f"{path}.default", f"must not be set {place.no_defaults}"))
    if schema.get("id"):
        found.append(_forbidden(f"{path}.id", "id is not supported"))
    for name in ("additionalItems", "patternProperties", "definitions", "dependencies", "$ref"):
        value = schema.get(name)
        if value is not None and (value or name in ("additionalItems", "dependencies", "$ref")):
            found.append(_forbidden(f"{path}.{name}", f"{name} is not supported"))
    if schema.get("type") == "null":
        text = "type cannot be set to null, use nullable as an alternative"
        found.append(_forbidden(f"{path}.type", text))
    if isinstance(schema.get("items"), list) and schema["items"]:
        found.append(_forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if place.in_metadata and schema.get(structure.EMBEDDED):
        text = "must not be used inside of resource meta"
        found.append(_forbidden(f"{path}.{structure.EMBEDDED}", text))
    return found


def _typed(schema: Tree, wanted: str, marker: str, path: str) -> list[FieldError]:
    kind = schema.get("type") or ""
    text = f"must be {wanted} if {marker} is specified"
    if not kind:
        return [_required(f"{path}.type", text)]
    return [] if kind == wanted else [_invalid(f"{path}.type", kind, text)]


def _map_type(schema: Tree, path: str) -> list[FieldError]:
    mode = schema.get(MAP_TYPE)
    if mode is None:
        return []
    found = _typed(schema, "object", MAP_TYPE, path)
    if mode not in ("atomic", "granular"):
        found.append(_unsupported(f"{path}.{MAP_TYPE}", mode, ("atomic", "granular")))
    return found


def _list_type(schema: Tree, path: str, options: Options) -> list[FieldError]:
    mode, keys = schema.get(LIST_TYPE), schema.get(LIST_KEYS) or []
    found: list[FieldError] = []
    if mode is not None:
        found += _typed(schema, "array", LIST_TYPE, path)
        if not found and options.atomic_sets:
            found += set_problem(schema, path)
        if mode not in ("atomic", "set", "map"):
            found.append(_unsupported(f"{path}.{LIST_TYPE}", mode, ("atomic", "set", "map")))
    if keys and mode != "map":
        text = f"must be map if {LIST_KEYS} is non-empty"
        at = f"{path}.{LIST_TYPE}"
        found.append(_required(at, text) if mode is None else _invalid(at, mode, text))
    return found


def set_problem(schema: Tree, path: str) -> list[FieldError]:
    """Items of sets are compared as a whole."""
    items = part(schema, "items")
    if schema.get(LIST_TYPE) != "set" or items is None:
        return []
    text = f"must be atomic as item of a list with {LIST_TYPE}=set"
    if items.get("type") == "array" and items.get(LIST_TYPE) not in (None, "atomic"):
        return [_invalid(f"{path}.items.{LIST_TYPE}", items.get(LIST_TYPE), text)]
    if items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        return [_invalid(f"{path}.items.{MAP_TYPE}", items.get(LIST_TYPE), text)]
    return []


def _list_map(schema: Tree, path: str) -> list[FieldError]:
    if schema.get(LIST_TYPE) != "map":
        return []
    found: list[FieldError] = []
    keys, items = schema.get(LIST_KEYS) or [], schema.get("items")
    if not keys:
        found.append(_required(f"{path}.{LIST_KEYS}", f"must not be empty if {LIST_TYPE} is map"))
    if items is None:
        found.append(_required(f"{path}.items", f"must have a schema if {LIST_TYPE} is map"))
    elif not isinstance(items, dict):
        text = f"must only have a single schema if {LIST_TYPE} is map"
        found.append(_invalid(f"{path}.items", goform.items(items), text))
    elif items.get("type") != "object":
        text = f"must be object if parent array's {LIST_TYPE} is map"
        found.append(_invalid(f"{path}.items.type", items.get("type") or "", text))
    else:
        found += _keys(keys, items, path)
    return found


def _keys(keys: list[str], items: Tree, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    properties = dict(members(items))
    seen: set[str] = set()
    for key in keys:
        if key not in properties:
            found.append(_invalid(f"{path}.{LIST_KEYS}", keys, "entries must all be names of item properties"))
        elif properties[key].get("type") in ("array", "object"):
            text = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            found.append(_invalid(f"{path}.items.properties[{key}].type", items.get("type"), text))
        if key in seen:
            found.append(_invalid(f"{path}.{LIST_KEYS}", keys, "must not contain duplicate entries"))
        seen.add(key)
    return found


def key_problems(schema: Tree, path: str) -> list[FieldError]:
    """Items of sets and maps are never null, and keys always there."""
    mode, items = schema.get(LIST_TYPE), part(schema, "items")
    if items is None or mode not in ("set", "map"):
        return []
    found: list[FieldError] = []
    if items.get("nullable"):
        found.append(_forbidden(f"{path}.items.nullable", f"cannot be nullable when {LIST_TYPE} is {mode}"))
    properties = dict(members(items))
    for key in schema.get(LIST_KEYS) or () if mode == "map" else ():
        if key in properties:
            at = f"{path}.items.properties[{key}]"
            if key not in (items.get("required") or ()) and properties[key].get("default") is None:
                found.append(_required(f"{at}.default", _KEY_VALUE))
            if properties[key].get("nullable"):
                found.append(_forbidden(f"{at}.nullable", _KEY_NULL))
    return found


# Rules


def _rule(rule: Tree, schema: Tree, path: str) -> list[FieldError]:
    """The members of a rule; what its expressions mean comes later."""
    text, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
    found: list[FieldError] = []
    if not text:
        found.append(_required(f"{path}.rule", "rule is not specified"))
    elif message and not message.strip():
        found.append(_invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif _has_lines(message.strip()):
        found.append(_invalid(f"{path}.message", message, "must not contain line breaks"))
    elif _has_lines(text) and not message.strip():
        found.append(_required(f"{path}.message", "message must be specified if rule contains line breaks"))
    expression = rule.get("messageExpression") or ""
    if expression and not expression.strip():
        found.append(_required(f"{path}.messageExpression", "messageExpression must be non-empty if specified"))
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        found.append(_unsupported(f"{path}.reason", reason, _REASONS))
    return found + _rule_path(rule.get("fieldPath") or "", schema, f"{path}.fieldPath")


def _rule_path(place: str, schema: Tree, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if place and not place.strip():
        found.append(_invalid(path, place, "must be non-empty if specified"))
    if _has_lines(place):
        found.append(_invalid(path, place, "must not contain line breaks"))
    if place and not structure.obstacle(schema) and fieldpath.resolve(place, schema) is None:
        found.append(_invalid(path, place, "must be a valid path"))
    return found


def _has_lines(text: str) -> bool:
    return "\n" in text or "\r" in text

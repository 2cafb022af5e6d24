"""Schemas and rules as the reference prints them inside of messages: its own structs, members unset or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

#: (member of the struct, keyword, what it is when unset).
_PLAIN: Final = (
    ("ID", "id", ""),
    ("Schema", "$schema", ""),
    ("Ref", "$ref", None),
    ("Description", "description", ""),
    ("Type", "type", ""),
    ("Nullable", "nullable", False),
    ("Format", "format", ""),
    ("Title", "title", ""),
    ("Default", "default", None),
    ("Maximum", "maximum", None),
    ("ExclusiveMaximum", "exclusiveMaximum", False),
    ("Minimum", "minimum", None),
    ("ExclusiveMinimum", "exclusiveMinimum", False),
    ("MaxLength", "maxLength", None),
    ("MinLength", "minLength", None),
    ("Pattern", "pattern", ""),
    ("MaxItems", "maxItems", None),
    ("MinItems", "minItems", None),
    ("UniqueItems", "uniqueItems", False),
    ("MultipleOf", "multipleOf", None),
    ("Enum", "enum", None),
    ("MaxProperties", "maxProperties", None),
    ("MinProperties", "minProperties", None),
    ("Required", "required", None),
)
_EXTENSIONS: Final = (
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", None),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", False),
    ("XIntOrString", "x-kubernetes-int-or-string", False),
    ("XListMapKeys", "x-kubernetes-list-map-keys", None),
    ("XListType", "x-kubernetes-list-type", None),
    ("XMapType", "x-kubernetes-map-type", None),
)
_RULE: Final = (
    ("Rule", "rule", ""),
    ("Message", "message", ""),
    ("MessageExpression", "messageExpression", ""),
    ("Reason", "reason", None),
    ("FieldPath", "fieldPath", ""),
    ("OptionalOldSelf", "optionalOldSelf", None),
)

_COLUMN: Final = (
    ("Name", "name", ""),
    ("Type", "type", ""),
    ("Format", "format", ""),
    ("Description", "description", ""),
    ("Priority", "priority", 0),
    ("JSONPath", "jsonPath", ""),
)
_SCALE: Final = (
    ("SpecReplicasPath", "specReplicasPath", ""),
    ("StatusReplicasPath", "statusReplicasPath", ""),
    ("LabelSelectorPath", "labelSelectorPath", None),
)
_VERSION: Final = (
    ("Name", "name", ""),
    ("Served", "served", False),
    ("Storage", "storage", False),
    ("Deprecated", "deprecated", False),
    ("DeprecationWarning", "deprecationWarning", None),
)

Form = dict[str, Any]


def _pick(tree: Mapping[str, Any], names: tuple[tuple[str, str, Any], ...]) -> Form:
    return {name: default if tree.get(key) is None else tree[key] for name, key, default in names}


def rule(tree: Mapping[str, Any]) -> Form:
    """A rule of x-kubernetes-validations."""
    return _pick(tree, _RULE)


def schema(tree: Mapping[str, Any] | None) -> Form | None:
    """A schema with everything in it."""
    if not isinstance(tree, Mapping):
        return None
    docs = tree.get("externalDocs")
    rules = tree.get("x-kubernetes-validations")
    return {
        **_pick(tree, _PLAIN),
        "Items": items(tree.get("items")),
        **{name: _several(tree.get(key)) for name, key in (("AllOf", "allOf"), ("OneOf", "oneOf"), ("AnyOf", "anyOf"))},
        "Not": schema(tree.get("not")),
        "Properties": _named(tree.get("properties")),
        "AdditionalProperties": _or_bool(tree.get("additionalProperties")),
        "PatternProperties": _named(tree.get("patternProperties")),
        "Dependencies": _dependencies(tree.get("dependencies")),
        "AdditionalItems": _or_bool(tree.get("additionalItems")),
        "Definitions": _named(tree.get("definitions")),
        "ExternalDocs": None if docs is None else _pick(docs, (("Description", "description", ""), ("URL", "url", ""))),
        "Example": tree.get("example"),
        **_pick(tree, _EXTENSIONS),
        "XValidations": None if rules is None else [rule(item) for item in rules],
    }


def items(value: Any) -> Form | None:
    """A schema or a list of them."""
    if value is None:
        return None
    if isinstance(value, list):
        return {"Schema": None, "JSONSchemas": _several(value)}
    return {"Schema": schema(value), "JSONSchemas": None}


def _several(value: Any) -> list[Form | None] | None:
    return [schema(item) for item in value] if isinstance(value, list) else None


def _named(value: Any) -> Form | None:
    return {name: schema(value[name]) for name in sorted(value)} if isinstance(value, Mapping) else None


def _dependencies(value: Any) -> Form | None:
    if not isinstance(value, Mapping):
        return None
    return {
        name: {"Schema": schema(inner), "Property": inner if isinstance(inner, list) else None}
        for name, inner in sorted(value.items())
    }


def _or_bool(value: Any) -> Form | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return {"Allows": value, "Schema": None}
    return {"Allows": True, "Schema": schema(value)}


def versions(trees: Sequence[Mapping[str, Any]]) -> list[Form]:
    """The versions of a definition."""
    return [_version(tree) for tree in trees]


def _version(tree: Mapping[str, Any]) -> Form:
    holder, parts = tree.get("schema"), tree.get("subresources")
    columns, fields = tree.get("additionalPrinterColumns"), tree.get("selectableFields")
    scale = None if parts is None else parts.get("scale")
    return {
        **_pick(tree, _VERSION),
        "Schema": None if holder is None else {"OpenAPIV3Schema": schema(holder.get("openAPIV3Schema"))},
        "Subresources": None
        if parts is None
        else {"Status": parts.get("status"), "Scale": None if scale is None else _pick(scale, _SCALE)},
        "AdditionalPrinterColumns": None if columns is None else [_pick(column, _COLUMN) for column in columns],
        "SelectableFields": None
        if fields is None
        else [_pick(field, (("JSONPath", "jsonPath", ""),)) for field in fields],
    }

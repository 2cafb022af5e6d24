"""Type tables as OpenAPI schemas, in the v3 and in the v2 dialect.

v2 has no `default`, puts a bare `$ref` where v3 wraps it in `allOf`, and knows no `oneOf`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fastapi_core.openapi.names import schema_name
from fastapi_core.schema.tables import enum_values, type_of
from fastapi_core.schema.types import ABSENT, Field, Type

if TYPE_CHECKING:
    from fastapi_core.openapi.custom import CustomKind

Schema = dict[str, Any]

_SCALARS: dict[str, Schema] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
}
_V2_SHAPES: dict[str, Schema] = {
    "quantity": {"type": "string"},
    "intOrString": {"type": "string", "format": "int-or-string"},
}
_SHAPELESS = frozenset({"rawAny", "schemaOrBool", "schemaOrSchemaList", "schemaOrStringList"})

#: Types that are served and have no table: ref -> names of members, `?` for optional ones.
_EXTRA = {
    "version.Info": "major minor emulationMajor? emulationMinor? minCompatibilityMajor? minCompatibilityMinor? "
    "gitVersion gitCommit gitTreeState buildDate goVersion compiler platform"
}
_EXTRA_NAMES = {"version.Info": "io.k8s.apimachinery.pkg.version.Info"}

#: Members that v3 refers to bare: the reference wraps a `$ref` only to say something beside it, and has nothing to
#: say about these.
_BARE = {
    "apiextensions.k8s.io/v1.JSONSchemaProps": frozenset(
        {"additionalItems", "additionalProperties", "example", "externalDocs", "items", "not"}
    ),
    "networking.k8s.io/v1.IngressRule": frozenset({"http"}),
}
#: Enums that only OpenAPI states: (type, member) -> named scalar of the elements.
_ENUMS = {("core/v1.PersistentVolumeClaimStatus", "allocatedResourceStatuses"): "core/v1.ClaimResourceStatus"}


class SchemaWriter:
    """Schemas of a document: those asked for and everything they refer to."""

    def __init__(self, *, v2: bool, everywhere: list[tuple[str, str]], custom: Iterable[CustomKind] = ()) -> None:
        self.v2 = v2
        self._custom = {ref: found for kind in custom for ref, found in kind.schemas().items()}
        self.everywhere = everywhere
        self.prefix = "#/definitions/" if v2 else "#/components/schemas/"
        self._names: dict[str, str] = {}

    def reference(self, ref: str) -> Schema:
        """A `$ref` to the type, which is thereby part of the document."""
        name = self._names.get(ref)
        if name is None:
            own = self._custom.get(ref)
            name = self._names[ref] = own[0] if own else _EXTRA_NAMES.get(ref) or schema_name(ref)
        return {"$ref": self.prefix + name}

    def collect(self) -> dict[str, Schema]:
        """Every schema referred to so far, with what those refer to; sorted by name."""
        done: dict[str, Schema] = {}
        while len(done) < len(self._names):
            for ref, name in list(self._names.items()):
                if name not in done:
                    done[name] = self._schema(ref)
        return dict(sorted(done.items()))

    def _schema(self, ref: str) -> Schema:
        own = self._custom.get(ref)
        if own is not None:
            return own[1](self)
        return _extra(ref, self.v2) if ref in _EXTRA else self._type(type_of(ref))

    def _type(self, type: Type) -> Schema:
        if type.json in _SHAPELESS:
            return {}
        if type.oa is not None:
            return dict(_V2_SHAPES.get(type.json, type.oa) if self.v2 else type.oa)
        if type.json == "list":
            return self._field(type.declared[0])
        schema: Schema = {"type": "object"}
        bare = _BARE.get(type.ref, frozenset())
        properties = {name: self._field(field, bare=name in bare) for name, field in type.fields.items()}
        for (ref, name), alias in _ENUMS.items():
            if ref == type.ref:
                properties[name]["additionalProperties"]["enum"] = sorted(enum_values(alias))
        if type.kind:
            properties |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
        if properties:
            schema["properties"] = dict(sorted(properties.items()))
        required = [name for name, field in type.fields.items() if field.required]
        if required:
            schema["required"] = required
        kinds = self._kinds(type)
        if kinds:
            schema["x-kubernetes-group-version-kind"] = kinds
        if type.map_type:
            schema["x-kubernetes-map-type"] = type.map_type
        if type.unions:
            schema["x-kubernetes-unions"] = type.unions
        return schema

    def _kinds(self, type: Type) -> list[Schema]:
        kinds = []
        for text in type.gvk:
            if text == "many":
                continue
            group_version, _, kind = text.rpartition("/")
            group, _, version = group_version.rpartition("/")
            kinds.append({"group": group, "kind": kind, "version": version})
        if "many" in type.gvk or type.ref == "meta/v1.WatchEvent":
            kinds += [{"group": group, "kind": type.name, "version": version} for group, version in self.everywhere]
        return kinds

    def _field(self, field: Field, *, bare: bool = False) -> Schema:
        value = self._value(field, bare=bare or bool(field.card))
        if field.card == "list":
            value = {"type": "array", "items": value}
        elif field.card == "map":
            value = {"type": "object", "additionalProperties": value}
        if field.default is not ABSENT and not self.v2:
            value["default"] = field.default
        if field.list_type:
            value["x-kubernetes-list-type"] = field.list_type
        if field.list_keys:
            value["x-kubernetes-list-map-keys"] = list(field.list_keys)
        if field.map_type:
            value["x-kubernetes-map-type"] = field.map_type
        if field.merge_key:
            value["x-kubernetes-patch-merge-key"] = field.merge_key
        if field.patch_strategy:
            value["x-kubernetes-patch-strategy"] = ",".join(field.patch_strategy)
        return value

    def _value(self, field: Field, *, bare: bool) -> Schema:
        """Schema of the value, or of one element of a list or map."""
        if field.scalar:
            schema = dict(_SCALARS[field.scalar])
            if field.enum:
                schema["enum"] = list(field.enum)
            return schema
        type = field.type
        assert type is not None
        if type.json == "list":
            return self._field(type.declared[0])
        reference = self.reference(type.ref)
        return reference if bare or self.v2 else {"allOf": [reference]}


def _extra(ref: str, v2: bool) -> Schema:
    names = _EXTRA[ref].split()
    plain: Schema = {"type": "string"}
    stated = plain if v2 else {"type": "string", "default": ""}
    return {
        "type": "object",
        "required": [name for name in names if not name.endswith("?")],
        "properties": {name.rstrip("?"): plain if name.endswith("?") else stated for name in names},
    }

"""Schemas of custom resources: as their definitions declare them, with the members every object has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from fastapi_core.records import dataclass

if TYPE_CHECKING:
    from fastapi_core.openapi.schemas import SchemaWriter
    from fastapi_core.registry.definition import ResourceDefinition

Schema = dict[str, Any]

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_KINDS: Final = "x-kubernetes-group-version-kind"
_SELECTABLE: Final = "x-kubernetes-selectable-fields"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_EITHER: Final[list[Schema]] = [{"type": "integer"}, {"type": "string"}]
_JUNCTORS: Final = ("allOf", "oneOf", "anyOf", "not")
_OBJECT_META, _LIST_META = "meta/v1.ObjectMeta", "meta/v1.ListMeta"


@dataclass(frozen=True, slots=True)
class CustomKind:
    """A served version of a definition, as documents need it."""

    definition: ResourceDefinition
    digest: str
    """Changes with everything that the documents tell of it."""
    schema: Callable[[], Schema | None]
    preserve: bool
    """Nothing is pruned, whatever the schema says."""

    @property
    def ref(self) -> str:
        return f"{self.definition.group}/{self.definition.version}.{self.definition.kind}"

    @property
    def list_ref(self) -> str:
        return f"{self.definition.group}/{self.definition.version}.{self.definition.list_kind}"

    def schemas(self) -> Mapping[str, tuple[str, Callable[[SchemaWriter], Schema]]]:
        """Reference -> name in documents, and what makes its schema."""
        definition = self.definition
        return {
            self.ref: (schema_name(definition, definition.kind), self._whole),
            self.list_ref: (schema_name(definition, definition.list_kind), self._list),
        }

    def _whole(self, writer: SchemaWriter) -> Schema:
        declared = self.schema()
        open_ended = declared is None or (writer.v2 and (self.preserve or bool(declared.get(_PRESERVE))))
        if open_ended:
            # Clients would take properties for all there may be.
            made: Schema = {"type": "object"}
        else:
            made = _published(declared or {}, writer)
            properties: Schema = made.get("properties") or {}
            properties |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
            properties["metadata"] = _reference(writer, _OBJECT_META)
            made["properties"] = dict(sorted(properties.items()))
        return self._named(made, self.definition.kind)

    def _list(self, writer: SchemaWriter) -> Schema:
        made: Schema = {
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": {"type": "string"},
                "items": {"type": "array", "items": writer.reference(self.ref)},
                "kind": {"type": "string"},
                "metadata": _reference(writer, _LIST_META),
            },
        }
        return self._named(made, self.definition.list_kind)

    def _named(self, schema: Schema, kind: str) -> Schema:
        definition = self.definition
        schema[_KINDS] = [{"group": definition.group, "kind": kind, "version": definition.version}]
        if definition.selectable_fields:
            schema[_SELECTABLE] = [{"fieldPath": path} for path in definition.selectable_fields]
        return schema


def schema_name(definition: ResourceDefinition, kind: str) -> str:
    """`com.example.v1.Widget` for a kind of `example.com/v1`."""
    return ".".join([*reversed(definition.group.split(".")), definition.version, kind])


def _reference(writer: SchemaWriter, ref: str) -> Schema:
    reference = writer.reference(ref)
    return reference if writer.v2 else {"allOf": [reference]}


def _published(schema: Schema, writer: SchemaWriter) -> Schema:
    """A declared schema, and those in it, as the dialect of the document has them."""
    made = dict(schema)
    if writer.v2:
        _simplify(made)
    elif made.get(_INT_OR_STRING):
        _unfold(made)
    properties = made.get("properties")
    if isinstance(properties, dict):
        made["properties"] = {name: _published(member, writer) for name, member in properties.items()}
    for name in ("items", "additionalProperties"):
        if isinstance(made.get(name), dict):
            made[name] = _published(made[name], writer)
    if made.get(_EMBEDDED) and not (writer.v2 and made.get(_PRESERVE)):
        members: Schema = dict(made.get("properties") or {})
        members |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
        members["metadata"] = _reference(writer, _OBJECT_META)
        made["properties"] = dict(sorted(members.items()))
        made["required"] = [*dict.fromkeys([*(made.get("required") or ()), "kind", "apiVersion"])]
    return made


def _unfold(schema: Schema) -> None:
    """What int-or-string stands for is said in words of the standard, unless the definition does so itself."""
    any_of, all_of = schema.get("anyOf") or [], schema.get("allOf") or []
    if any_of == _EITHER or (all_of and (all_of[0].get("anyOf") == _EITHER)):
        return
    if any_of:
        schema["allOf"] = [{"anyOf": _EITHER}, *all_of]
    else:
        schema["anyOf"] = _EITHER


def _simplify(schema: Schema) -> None:
    """What the older dialect cannot say is left unsaid: logic, defaults, null, and the type of what may be anything."""
    for name in (*_JUNCTORS, "default"):
        schema.pop(name, None)
    nullable, preserve = schema.pop("nullable", False), schema.get(_PRESERVE)
    if nullable or preserve:
        schema.pop("items", None)
        schema.pop("properties", None)
    if nullable or (schema.get("type") == "array" and "items" not in schema):
        schema.pop("type", None)
    if preserve and schema.get("type") == "object":
        del schema["type"]
    required = schema.get("required")
    if required:
        properties = schema.get("properties") or {}
        kept = [name for name in required if not (properties.get(name) or {}).get("nullable")]
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict) and extra.get("nullable"):
            kept = []
        schema["required"] = kept
        if not kept:
            del schema["required"]

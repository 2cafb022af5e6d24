"""Pydantic models as kinds. Pydantic is imported by whoever has such a model, never by the framework.

`metadata` is an `ObjectMeta` here, too. JSON names are those of pydantic: use `alias_generator=to_camel`.
"""

from __future__ import annotations

from typing import Any

from fastapi_core.extension.models.base import ANYTHING, Model, ModelError, Tree, whole
from fastapi_core.extension.models.dataclasses import dump_metadata, load_metadata

#: Keywords of JSON Schema that structural schemas do without.
_DROPPED = frozenset({"title", "$defs", "examples", "discriminator", "deprecated", "readOnly", "writeOnly"})


def model(source: Any, kind: str = "") -> Model[Any]:
    """The model of a pydantic class with a `metadata: ObjectMeta`."""
    name = kind or source.__name__
    if "metadata" not in source.model_fields:
        raise ModelError(f"{source.__name__} needs a field `metadata: ObjectMeta`")
    raw: Tree = source.model_json_schema(by_alias=True)
    definitions = raw.get("$defs") or {}
    plain = {**raw, "properties": {k: v for k, v in raw["properties"].items() if k != "metadata"}}
    schema = whole(_structural(plain, definitions, (), name))

    def load(tree: Tree) -> Any:
        members = {key: value for key, value in tree.items() if key not in ("apiVersion", "kind")}
        return source.model_validate({**members, "metadata": load_metadata(tree.get("metadata"))})

    def dump(value: Any) -> Tree:
        made: Tree = value.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"metadata"})
        return {"metadata": dump_metadata(value.metadata), **made}

    return Model(name, schema, load, dump)


def _structural(schema: Tree, definitions: Tree, outer: tuple[str, ...], where: str) -> Tree:
    """A JSON Schema of pydantic as a structural one: references in place, no null, no titles."""
    reference = schema.get("$ref")
    if reference is not None:
        name = reference.rpartition("/")[2]
        if name in outer:
            raise ModelError(f"{where}: {name} contains itself, which no structural schema can say; use Any inside")
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_structural(definitions[name], definitions, (*outer, name), where), **_plain(beside)}
    made = _plain(schema)
    made |= _alternatives(schema, definitions, outer, where)
    if "const" in made:
        made["enum"] = [made.pop("const")]
    for bound in ("Minimum", "Maximum"):
        if f"exclusive{bound}" in made:
            made[bound.lower()] = made[f"exclusive{bound}"]
            made[f"exclusive{bound}"] = True
    if "prefixItems" in made:
        raise ModelError(f"{where}: tuples of a fixed length have no schema")
    properties = schema.get("properties")
    if properties is not None:
        made["properties"] = {
            name: _structural(member, definitions, outer, f"{where}.{name}") for name, member in properties.items()
        }
        made.pop("additionalProperties", None)
    elif isinstance(schema.get("additionalProperties"), dict):
        made["additionalProperties"] = _structural(schema["additionalProperties"], definitions, outer, where)
    elif made.get("type") == "object":
        made.pop("additionalProperties", None)
        made["x-kubernetes-preserve-unknown-fields"] = True
    if "items" in schema:
        made["items"] = _structural(schema["items"], definitions, outer, where)
    if made.get("default", ...) is None:
        del made["default"]
    return made if "type" in made or "x-kubernetes-int-or-string" in made else {**made, **ANYTHING}


def _plain(schema: Tree) -> Tree:
    return {
        key: value for key, value in schema.items() if key not in _DROPPED and key not in ("anyOf", "allOf", "oneOf")
    }


def _alternatives(schema: Tree, definitions: Tree, outer: tuple[str, ...], where: str) -> Tree:
    """`X | None` is X, `int | str` the type of ports; nothing else has a structural schema."""
    for word in ("anyOf", "allOf", "oneOf"):
        members = [member for member in schema.get(word) or () if member.get("type") != "null"]
        if len(members) == 1:
            return _structural(members[0], definitions, outer, where)
        if members and {member.get("type") for member in members} == {"integer", "string"}:
            return {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
        if members:
            raise ModelError(f"{where}: a union has no schema: one type and None, or int | str")
    return {}

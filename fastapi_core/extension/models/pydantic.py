"""Pydantic models as kinds. Pydantic is imported by whoever has such a model, never by the framework.

`metadata` is an `ObjectMeta` here, too. JSON names are those of pydantic: use `alias_generator=to_camel`.
"""

from __future__ import annotations

import importlib
from typing import Any

from fastapi_core.errors import OMITTED, FieldError
from fastapi_core.extension.models.base import ANYTHING, LoadError, Model, ModelError, Tree, path_of, whole
from fastapi_core.extension.models.dataclasses import dump_metadata, load_metadata
from fastapi_core.extension.models.generating import generator, go_form, spans_of
from fastapi_core.extension.models.values import keyed, timedelta_of

LIST_KEYS = "x-kubernetes-list-map-keys"
#: Keywords of JSON Schema that structural schemas do without.
_DROPPED = frozenset({"title", "$defs", "examples", "discriminator", "deprecated", "readOnly", "writeOnly"})


def model(source: Any, kind: str = "") -> Model[Any]:
    """The model of a pydantic class with a `metadata: ObjectMeta`."""
    name = kind or source.__name__
    if "metadata" not in source.model_fields:
        raise ModelError(f"{source.__name__} needs a field `metadata: ObjectMeta`")
    raw: Tree = source.model_json_schema(by_alias=True, schema_generator=generator())
    definitions = raw.get("$defs") or {}
    if "properties" not in raw:
        raise ModelError(f"{source.__name__} contains itself, which no structural schema can say; use Any inside")
    plain = {**raw, "properties": {k: v for k, v in raw["properties"].items() if k != "metadata"}}
    schema = whole(_structural(plain, definitions, (), name))
    # Whoever writes the object does not write its status: no default may put one into it.
    status = schema["properties"].get("status")
    if isinstance(status, dict):
        status.pop("default", None)
    spans = spans_of(schema)
    failure: type[Exception] = importlib.import_module("pydantic").ValidationError

    def load(tree: Tree) -> Any:
        members = {key: value for key, value in tree.items() if key not in ("apiVersion", "kind", "metadata")}
        if spans is not None:
            members = spans(members, timedelta_of)
        members["metadata"] = load_metadata(tree.get("metadata"))
        try:
            return source.model_validate(members)
        except failure as error:
            raise LoadError(_told(error)) from error

    def dump(value: Any) -> Tree:
        made: Tree = value.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"metadata"})
        if spans is not None:
            made = spans(made, go_form)
        return {"metadata": dump_metadata(value.metadata), **made}

    return Model(name, schema, load, dump)


def _told(error: Any) -> list[FieldError]:
    """The errors of a pydantic ValidationError, with the paths of what was sent."""
    found = []
    for one in error.errors(include_url=False, include_context=False):
        steps, text = one["loc"], one["msg"].removeprefix("Value error, ")
        missing = one["type"] == "missing"
        shown = one["input"] if isinstance(one["input"], str | int | float) else OMITTED
        found.append(
            FieldError("Required value", path_of(steps)) if missing else
            FieldError("Invalid value", path_of(steps), text, shown)
        )  # fmt: skip
    return found


def _structural(schema: Tree, definitions: Tree, outer: tuple[str, ...], where: str) -> Tree:
    """A JSON Schema of pydantic as a structural one: references in place, no null, no titles."""
    reference = schema.get("$ref")
    if reference is not None:
        name = reference.rpartition("/")[2]
        if name in outer:
            raise ModelError(f"{where}: {name} contains itself, which no structural schema can say; use Any inside")
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _settled({**_structural(definitions[name], definitions, (*outer, name), where), **_plain(beside)})
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
    _inside(made, schema, definitions, outer, where)
    _settled(made)
    return made if "type" in made or "x-kubernetes-int-or-string" in made else {**made, **ANYTHING}


def _settled(made: Tree) -> Tree:
    """Its default as it would be sent: without null, durations in Go's form."""
    default = _without_none(made.pop("default", None))
    if default is not None:
        spans = spans_of(made)
        made["default"] = default if spans is None else spans(default, go_form)
    return made


def _inside(made: Tree, schema: Tree, definitions: Tree, outer: tuple[str, ...], where: str) -> None:
    """Members, items and values, in place."""
    properties = schema.get("properties")
    if properties is not None:
        made["properties"] = {
            name: _structural(member, definitions, outer, f"{where}.{name}") for name, member in properties.items()
        }
        made.pop("additionalProperties", None)
    elif isinstance(schema.get("additionalProperties"), dict):
        made["additionalProperties"] = _structural(schema["additionalProperties"], definitions, outer, where)
    elif (
        made.get("type") == "object"
        and not isinstance(made.get("additionalProperties"), dict)
        and "properties" not in made
    ):
        made.pop("additionalProperties", None)
        made["x-kubernetes-preserve-unknown-fields"] = True
    if "items" in schema:
        made["items"] = _structural(schema["items"], definitions, outer, where)
    if made.get(LIST_KEYS):
        try:
            made["items"] = keyed(made.get("items") or {}, tuple(made[LIST_KEYS]))
        except ModelError as error:
            raise ModelError(f"{where}: {error}") from None


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    return [_without_none(inner) for inner in value] if isinstance(value, list) else value


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

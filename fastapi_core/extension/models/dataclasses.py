"""Dataclasses as kinds: a schema from their annotations, and objects to trees and back.

Names are the Python names in camelCase. A field without a default is required; one whose value is None or empty and
that has a default is left out of the tree.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any, get_type_hints

from fastapi_core.extension.models.base import LoadError, Model, ModelError, Tree, whole
from fastapi_core.extension.models.values import Codec, Codecs, same
from fastapi_core.extension.objects import Field, ObjectMeta


def model(source: type, kind: str = "") -> Model[Any]:
    """The model of a dataclass with a `metadata: ObjectMeta`."""
    name = kind or source.__name__
    members = {field.name for field in dataclasses.fields(source)}
    if "metadata" not in members or _hints(source)["metadata"] is not ObjectMeta:
        raise ModelError(f"{source.__name__} needs a field `metadata: ObjectMeta`")
    if members & {"kind", "api_version"}:
        raise ModelError(f"{source.__name__}: kind and apiVersion are the framework's, leave the fields out")
    codec = structure(source)
    schema = whole(codec.schema)
    # Whoever writes the object does not write its status: no default may put one into it.
    status = schema["properties"].get("status")
    if isinstance(status, dict):
        status.pop("default", None)
    return Model(name, schema, codec.load, codec.dump)


def load_metadata(tree: Any) -> ObjectMeta:
    """`metadata` of a tree."""
    made: ObjectMeta = structure(ObjectMeta).load(tree or {})
    return made


def dump_metadata(metadata: ObjectMeta) -> Tree:
    """The tree of `metadata`."""
    made: Tree = structure(ObjectMeta).dump(metadata)
    return made


def camel(name: str) -> str:
    """`owner_references` as `ownerReferences`."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


class _Member:
    """One field: where it stands in a tree, and when it is left out there."""

    __slots__ = ("codec", "field", "json", "optional")

    def __init__(self, field: dataclasses.Field[Any], codec: Codec, json: str) -> None:
        self.field = field
        self.codec = codec
        self.json = json
        missing = dataclasses.MISSING
        self.optional = field.default is not missing or field.default_factory is not missing

    def default(self) -> Any:
        """What a schema states as default, nothing for empty values; {} where a structure has defaults of its own."""
        field = self.field
        if field.default is not dataclasses.MISSING:
            value = field.default
            if value is None or value in ("", (), frozenset()):
                return None
            return self.codec.dump(value)
        return None if field.default_factory is dataclasses.MISSING else self._made(field.default_factory)

    def _made(self, factory: Callable[[], Any]) -> Any:
        """What a factory makes, unless it is something else each time (the time, a number by chance)."""
        codec = self.codec
        made, again = codec.dump(factory()), codec.dump(factory())
        if made != again:
            return {} if codec.structure and not codec.schema.get("required") else None
        if not codec.structure:
            return None if made in ("", [], {}) else made
        if codec.schema.get("required"):
            return made or None
        return {} if made == codec.dump(codec.load({})) else made


@cache
def structure(source: type) -> Codec:
    """The schema and the conversions of a dataclass. Raises ModelError for what a schema cannot say."""
    return _structure(source, ())


def _structure(source: type, outer: tuple[type, ...]) -> Codec:
    if source in outer:
        raise ModelError(f"{source.__name__} contains itself, which no structural schema can say; use Any inside")
    codecs = Codecs(lambda inner: _structure(inner, (*outer, source)))
    hints = _hints(source)
    members: list[tuple[_Member, Any]] = []
    properties: Tree = {}
    required: list[str] = []
    for field in dataclasses.fields(source):
        if not field.init:
            continue
        try:
            codec = codecs.of(hints[field.name])
        except ModelError as error:
            raise ModelError(f"{source.__name__}.{field.name}: {error}") from None
        json = codec.name or camel(field.name)
        member = _Member(field, codec, json)
        schema = dict(codec.schema)
        default = member.default()
        members.append((member, default))
        if default is not None:
            schema["default"] = default
        if not member.optional:
            required.append(json)
        properties[json] = schema
    made: Tree = {"type": "object", "properties": properties}
    said = _description(source)
    if said:
        made["description"] = said
    if required:
        made["required"] = required
    return Codec(made, _loader(source, [member for member, _ in members]), _dumper(members), structure=True)


def _hints(source: type) -> dict[str, Any]:
    try:
        return get_type_hints(source, include_extras=True)
    except NameError as error:
        raise ModelError(
            f"{source.__name__}: {error}; classes that annotations name stand at the top of a module"
        ) from None


def _description(source: type) -> str:
    """The docstring, unless it is the one that every dataclass gets."""
    text = source.__doc__ or ""
    return "" if text.startswith(f"{source.__name__}(") else " ".join(text.split())


def _loader(source: type, members: list[_Member]) -> Any:
    def load(tree: Tree) -> Any:
        found = {}
        for member in members:
            value = tree.get(member.json)
            if value is not None:
                try:
                    found[member.field.name] = member.codec.load(value)
                except Exception as error:
                    raise LoadError.of(error, value, member.json) from error
            elif not member.optional:
                found[member.field.name] = None
        return source(**found)

    return load


def _dumper(members: list[tuple[_Member, Any]]) -> Any:
    # Objects of a list are dumped one after the other: what can be known before is.
    plan = [
        (
            member.field.name,
            member.json,
            None if member.codec.dump is same else member.codec.dump,
            member.optional and member.codec.emptiable and not default,
            member.optional and member.codec.structure and not default,
        )
        for member, default in members
    ]

    def dump(value: Any) -> Tree:
        tree: Tree = {}
        for name, json, convert, emptiable, structured in plan:
            found = getattr(value, name)
            if found is None or (emptiable and not found):
                continue
            if convert is not None:
                found = convert(found)
                if structured and not found:
                    continue
            tree[json] = found
        return tree

    return dump


__all__ = ["Field", "camel", "dump_metadata", "load_metadata", "model", "structure"]

"""The built-in resources: `data/resources.json` made into `ResourceDefinition`s at start.

The data leaves out what follows from the rest (see `tools/make_resources.py`). Type tables are looked up when a
definition's `type` is first asked for, so that start-up reads only the groups that are used.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from fastapi_core.apis import conversions
from fastapi_core.apis.strategies import strategy_for
from fastapi_core.registry.conversion import CONVERTERS
from fastapi_core.registry.definition import ResourceDefinition, Subresource
from fastapi_core.schema.tables import type_of
from fastapi_core.schema.types import Type

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class BuiltinDefinition(ResourceDefinition):
    """A definition whose type table is read on first use."""

    __slots__ = ("_type",)
    _type: Type

    @property
    def type(self) -> Type:
        try:
            return self._type
        except AttributeError:
            object.__setattr__(self, "_type", type_of(self.type_ref))
            return self._type

    @type.setter
    def type(self, value: object) -> None:
        """The generated constructor assigns every field; there is nothing to keep."""

    @property
    def type_ref(self) -> str:
        """Name of the type table entry, `core/v1.Pod`."""
        return f"{self.group or 'core'}/{self.version}.{self.kind}"


def _definition(record: dict[str, Any]) -> BuiltinDefinition:
    group, version, plural, kind = record["group"], record["version"], record["plural"], record["kind"]
    own = f"{group}/{version}" if group else version
    storage_group, _, storage_version = record.get("storage", own).rpartition("/")
    virtual = record.get("virtual", False)
    return BuiltinDefinition(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        singular=record.get("singular") or kind.lower(),
        namespaced=not record.get("cluster", False),
        verbs=tuple(record["verbs"]) if "verbs" in record else ALL_VERBS,
        type=None,  # type: ignore[arg-type]
        storage_group=storage_group,
        storage_version=storage_version,
        key_prefix="" if virtual else f"/registry/{record.get('prefix', plural)}/",
        short_names=tuple(record.get("short", ())),
        categories=tuple(record.get("categories", ())),
        subresources={
            name: Subresource(name, tuple(verbs), *kinds)
            for name, (verbs, *kinds) in record.get("subresources", {}).items()
        },
        selectable_fields={name: tuple((path or name).split(".")) for name, path in record.get("fields", {}).items()},
        storage_version_hash=record.get("hash", ""),
        list_kind=kind + "List",
        create_on_update=record.get("createOnUpdate", False),
        unconditional_update=record.get("unconditional", True),
        graceful=record.get("graceful", False),
        return_deleted=record.get("returnDeleted", False),
        default_propagation=record.get("propagation", "background"),
        initial_generation=record.get("generation", 0),
        bump_generation=record.get("bump", False),
        ttl=record.get("ttl", 0),
        strategy=strategy_for(
            group,
            kind,
            status="status" in record.get("subresources", ()),
            generation=record.get("generation", 0),
            bump=record.get("bump", False),
        ),
    )


#: (group, plural) -> Warning that every request for the resource gets.
_DEPRECATED = {
    ("", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ("", "componentstatuses"): "v1 ComponentStatus is deprecated in v1.19+",
}


def deprecation(definition: ResourceDefinition) -> str:
    """The deprecation warning of a built-in resource, empty for none."""
    return "" if definition.custom else _DEPRECATED.get((definition.group, definition.plural), "")


@lru_cache(maxsize=1)
def builtin() -> tuple[ResourceDefinition, ...]:
    """Every resource the reference serves by default, by group, version and name; registers their conversions.

    Resources that are only answered, never kept (bindings, reviews, componentstatuses), have an empty `key_prefix`.
    """
    conversions.register()
    return tuple(_definition(record) for record in _records("resources.json"))


@lru_cache(maxsize=1)
def optional() -> tuple[tuple[ResourceDefinition, str], ...]:
    """Resources in versions that are served when they are asked for, each with the feature gate that it needs too."""
    conversions.register()
    return tuple((_judged_as_stored(_definition(r)), r.get("gate", "")) for r in _records("optional.json"))


def _judged_as_stored(definition: ResourceDefinition) -> ResourceDefinition:
    """Rules are written for the newest version, and so are the paths in their errors, as in the reference."""
    stored = f"{definition.storage_group}/{definition.storage_version}"
    convert = CONVERTERS.get((definition.kind, definition.group_version, stored))
    if convert is None:
        return definition
    validate, warnings = definition.strategy.validate, definition.strategy.warnings
    strategy = replace(
        definition.strategy,
        validate=lambda new, old: validate(convert(new), None if old is None else convert(old)),
        warnings=lambda new, old: warnings(convert(new), None if old is None else convert(old)),
    )
    return replace(definition, strategy=strategy)


def _records(name: str) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = orjson.loads((Path(__file__).parent / "data" / name).read_bytes())
    return records

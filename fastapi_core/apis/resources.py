"""The built-in resources: `data/resources.json` made into `ResourceDefinition`s at start.

The data leaves out what follows from the rest (see `tools/make_resources.py`). Type table and strategy of a definition
are looked up when they are first asked for, so that a start loads only what is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from fastapi_core.apis import conversions
from fastapi_core.later import later
from fastapi_core.registry.conversion import CONVERTERS
from fastapi_core.registry.definition import ResourceDefinition, Strategy, Subresource
from fastapi_core.schema.tables import type_of
from fastapi_core.schema.types import Type

if TYPE_CHECKING:
    from fastapi_core.apis.strategies import table
else:
    table = later("fastapi_core.apis.strategies.table", soon=True)

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class BuiltinDefinition(ResourceDefinition):
    """A definition whose type table and strategy are loaded when they are first asked for.

    With both it becomes an ordinary definition. `strategy` is constructed as the function that makes it.
    """

    __slots__ = ()

    @property
    def type(self) -> Type:
        found: Type | None = _TYPE.__get__(self)
        if found is None:
            found = type_of(f"{self.group or 'core'}/{self.version}.{self.kind}")
            _TYPE.__set__(self, found)
            self._complete()
        return found

    @property
    def strategy(self) -> Strategy:
        found: Strategy | Callable[[], Strategy] = _STRATEGY.__get__(self)
        if not isinstance(found, Strategy):
            found = found()
            _STRATEGY.__set__(self, found)
            self._complete()
        return found

    def _complete(self) -> None:
        if _TYPE.__get__(self) is not None and isinstance(_STRATEGY.__get__(self), Strategy):
            object.__setattr__(self, "__class__", ResourceDefinition)

    def but(self, **changes: Any) -> ResourceDefinition:
        given = {name: slot.__get__(self) for name, slot in _SLOTS.items()}
        return BuiltinDefinition(**{**given, **changes})

    def revised(self, change: Callable[[Strategy], Strategy]) -> ResourceDefinition:
        return self.but(strategy=lambda: change(self.strategy))


_SLOTS: Final = {f.name: ResourceDefinition.__dict__[f.name] for f in fields(ResourceDefinition)}
_TYPE, _STRATEGY = _SLOTS["type"], _SLOTS["strategy"]


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
        strategy=lambda: table.strategy_for(  # type: ignore[arg-type]
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

    def judged(strategy: Strategy) -> Strategy:
        validate, warnings = strategy.validate, strategy.warnings
        return replace(
            strategy,
            validate=lambda new, old: validate(convert(new), None if old is None else convert(old)),
            warnings=lambda new, old: warnings(convert(new), None if old is None else convert(old)),
        )

    return definition.revised(judged)


def _records(name: str) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = orjson.loads((Path(__file__).parent / "data" / name).read_bytes())
    return records

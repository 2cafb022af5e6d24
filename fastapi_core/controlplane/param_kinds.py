"""What `rest/param_access.py` looks up: policies, and the resources that serve kinds of parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.registry.store import ResourceStore
from fastapi_core.rest.param_access import Known

_CUSTOM = "/registry/apiextensions.k8s.io/customresourcedefinitions/"


def known(definitions: Iterable[ResourceDefinition], stores: Mapping[str, ResourceStore]) -> Known:
    builtin = {(definition.group, definition.kind): definition.plural for definition in definitions}

    def policy(resource: str, name: str) -> Tree | None:
        store = stores.get(f"/registry/{resource}/")
        found = store.cache.get(store.key("", name)) if store is not None else None
        return found.tree() if found is not None else None

    def resource(group: str, kind: str) -> str:
        served = builtin.get((group, kind))
        return served if served is not None else _custom(stores.get(_CUSTOM), group, kind)

    return Known(policy, resource)


def _custom(store: ResourceStore | None, group: str, kind: str) -> str:
    """Definitions are called by their group, so that only those of this one are decoded."""
    if store is None or not group:
        return ""
    for found in store.cache.list().objects:
        if not found.name.endswith("." + group):
            continue
        names = (found.tree().get("status") or {}).get("acceptedNames") or {}
        if names.get("kind") == kind:
            return str(names.get("plural") or "")
    return ""

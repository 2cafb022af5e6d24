"""Objects that every server has: the system namespaces and the two system priority classes."""

from __future__ import annotations

from fastapi_core.errors import APIError
from fastapi_core.registry.definition import Tree
from fastapi_core.registry.lifecycle import before_create
from fastapi_core.registry.store import ResourceStore
from fastapi_core.rest.defaulting import apply_defaults
from fastapi_core.schema import normalize

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
PRIORITY_CLASSES = (
    ("system-node-critical", 2000001000, "Pods a node cannot do without."),
    ("system-cluster-critical", 2000000000, "Pods the cluster cannot do without; they may move to another node."),
)


async def ensure(store: ResourceStore, tree: Tree) -> None:
    """Create an object unless it is there."""
    definition = store.definition
    if store.cache.get(store.key(tree["metadata"].get("namespace", ""), tree["metadata"]["name"])) is not None:
        return
    full = normalize.normalize(
        definition.type, {"kind": definition.kind, "apiVersion": definition.group_version, **tree}
    ).tree
    apply_defaults(definition, full)
    before_create(definition, full)
    try:
        await store.create(full)
    except APIError as error:
        if error.reason != "AlreadyExists":
            raise


async def system_namespaces(namespaces: ResourceStore) -> None:
    for name in NAMESPACES:
        await ensure(namespaces, {"metadata": {"name": name}})


async def priority_classes(classes: ResourceStore) -> None:
    for name, value, description in PRIORITY_CLASSES:
        await ensure(classes, {"metadata": {"name": name}, "value": value, "description": description})

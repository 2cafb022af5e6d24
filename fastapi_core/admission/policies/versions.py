"""Objects of a request in the version a policy asks for."""

from __future__ import annotations

from fastapi_core.registry.conversion import CONVERTERS, converter
from fastapi_core.registry.definition import ResourceDefinition, Tree


def converted(tree: Tree | None, source: ResourceDefinition, target: ResourceDefinition) -> Tree | None:
    """`tree` of `source` as one of `target`, by way of the stored version when there is no direct one.

    What is not an object of the resource (the body of a subresource) stays what it is.
    """
    if tree is None or tree.get("kind") != source.kind:
        return tree
    home = f"{source.storage_group}/{source.storage_version}" if source.storage_group else source.storage_version
    for step in (home, target.group_version):
        here = tree["apiVersion"]
        if here == step:
            continue
        convert = CONVERTERS.get((source.kind, here, step))
        if convert is not None:
            tree = convert(tree)
    if tree["apiVersion"] == target.group_version:
        return tree
    plain = converter(source, target)
    return plain(tree) if plain is not None else tree

"""Conversion between the served and the stored version of a resource.

Versions that differ only in their name share one form; the ones with different fields register a pair of functions
in `CONVERTERS`, keyed by (group, kind, from group/version, to group/version).
"""

from __future__ import annotations

from collections.abc import Callable

from fastapi_core.registry.definition import ResourceDefinition, Tree

Convert = Callable[[Tree], Tree]

CONVERTERS: dict[tuple[str, str, str], Convert] = {}


def converter(source: ResourceDefinition, target: ResourceDefinition) -> Convert | None:
    """The function that turns a tree of `source` into one of `target`; None when they are the same version."""
    if source.group_version == target.group_version:
        return None
    known = CONVERTERS.get((source.kind, source.group_version, target.group_version))
    if known is not None:
        return known
    group_version = target.group_version

    def rename(tree: Tree) -> Tree:
        return {**tree, "apiVersion": group_version}

    return rename

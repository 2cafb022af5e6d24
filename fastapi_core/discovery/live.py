"""Discovery documents that change while the server runs: built-in groups, and groups of custom resources.

Documents belong to one group each; what lists all groups is joined from their bytes when somebody asks for it, so that
a change among thousands of groups costs what its own group costs.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import orjson

from fastapi_core.discovery.documents import DiscoveryDocuments, Document
from fastapi_core.registry.definition import ResourceDefinition

_LIST: Final = b'{"kind":"APIGroupList","apiVersion":"v1","groups":['
_NESTED: Final = b'{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":['
_END: Final = b"]}\n"
NOBODY: Final[frozenset[tuple[str, str]]] = frozenset()


class _Group(NamedTuple):
    """What a group adds to the lists of all groups."""

    entry: bytes
    nested: bytes


class LiveDocuments:
    """Stands where `DiscoveryDocuments` may stand. Groups of custom resources come behind the built-in ones, by name:
    all have the same priority."""

    def __init__(self, builtin: DiscoveryDocuments, definitions: Sequence[ResourceDefinition]) -> None:
        self._builtin = builtin
        self._own: dict[str, list[ResourceDefinition]] = {}
        for definition in definitions:
            self._own.setdefault(definition.group, []).append(definition)
        self._custom: dict[str, _Group] = {}
        self._order: list[str] = []
        self.versions: Mapping[str, tuple[str, ...]] = builtin.versions
        self.custom = NOBODY
        self.groups: dict[str, Document] = dict(builtin.groups)
        self.resource_lists: dict[tuple[str, str], Document] = dict(builtin.resource_lists)
        self._listed: Document | None = None
        self._nested: Document | None = None

    @property
    def core(self) -> Document:
        return self._builtin.core

    @property
    def aggregated_core(self) -> Document:
        return self._builtin.aggregated_core

    def rebase(self, builtin: DiscoveryDocuments) -> None:
        """Other documents of the same built-in groups."""
        self._builtin = builtin

    def put(self, group: str, definitions: Sequence[ResourceDefinition]) -> tuple[str, ...]:
        """The custom resources of a group, in all served versions (none: it has none any more); the versions that
        are made up of them, in order."""
        own = self._own.get(group, [])
        for key in [key for key in self.resource_lists if key[0] == group] if own else self._versions(group):
            self.resource_lists.pop(key, None)
        self._listed = self._nested = None
        everything = [*own, *definitions]
        if not everything:
            self._forget(group)
            return ()
        made = DiscoveryDocuments(everything)
        self.groups[group] = made.groups[group]
        self.resource_lists.update(made.resource_lists)
        entry = orjson.dumps(made.group_list.tree["groups"][0])
        nested = orjson.dumps(made.aggregated_groups.tree["items"][0])
        if group not in self._custom and not own:
            insort(self._order, group)
        self._custom[group] = _Group(entry, nested)
        return tuple(version for version in made.versions[group] if (group, version) in made.custom)

    def _versions(self, group: str) -> list[tuple[str, str]]:
        found = self._custom.get(group)
        if found is None:
            return []
        return [(group, entry["version"]) for entry in orjson.loads(found.entry)["versions"]]

    def _forget(self, group: str) -> None:
        if self._custom.pop(group, None) is not None:
            del self._order[bisect_left(self._order, group)]
            self.groups.pop(group, None)

    @property
    def group_list(self) -> Document:
        if self._listed is None:
            self._listed = Document(_LIST + b",".join(self._parts(nested=False)) + _END)
        return self._listed

    @property
    def aggregated_groups(self) -> Document:
        if self._nested is None:
            self._nested = Document(_NESTED + b",".join(self._parts(nested=True)) + _END)
        return self._nested

    def _parts(self, *, nested: bool) -> list[bytes]:
        tree = self._builtin.aggregated_groups.tree["items"] if nested else self._builtin.group_list.tree["groups"]
        parts = []
        for item in tree:
            changed = self._custom.get(item["metadata"]["name"] if nested else item["name"])
            if changed is None:
                parts.append(orjson.dumps(item))
            else:
                parts.append(changed.nested if nested else changed.entry)
        own = (self._custom[group] for group in self._order)
        parts += [group.nested if nested else group.entry for group in own]
        return parts

"""Discovery documents that change while the server runs: built-in groups, and groups of custom resources.

Documents belong to one group each; what lists all groups is joined from their bytes when somebody asks for it, so that
a change among thousands of groups costs what its own group costs.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import orjson

from fastapi_core.discovery.documents import DiscoveryDocuments, Document
from fastapi_core.registry.definition import ResourceDefinition

_LIST: Final = b'{"kind":"APIGroupList","apiVersion":"v1","groups":['
_NESTED: Final = b'{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":['
_END: Final = b"]}\n"
NOBODY: Final[frozenset[tuple[str, str]]] = frozenset()


class LiveDocuments:
    """Stands where `DiscoveryDocuments` may stand. Groups of custom resources come behind the built-in ones, by name:
    all have the same priority."""

    def __init__(self, builtin: DiscoveryDocuments, definitions: Sequence[ResourceDefinition]) -> None:
        self._builtin = builtin
        self._own: dict[str, list[ResourceDefinition]] = {}
        for definition in definitions:
            self._own.setdefault(definition.group, []).append(definition)
        self._groups: dict[str, _Group] = {}
        self._order: list[str] = []
        self.versions: Mapping[str, tuple[str, ...]] = builtin.versions
        self.custom = NOBODY
        self._builtin_parts: dict[str, bytes] = {}
        self._listeners: list[Callable[[str], object]] = []
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
        self._builtin_parts = {}
        self._listed = self._nested = None
        for group in builtin.versions:
            self._tell(group)

    def listen(self, changed: Callable[[str], object]) -> None:
        """Call with every group whose documents are others now."""
        self._listeners.append(changed)

    def _tell(self, group: str) -> None:
        for listener in self._listeners:
            listener(group)

    def put(self, group: str, definitions: Sequence[ResourceDefinition]) -> tuple[str, ...]:
        """The custom resources of a group, in all served versions (none: it has none any more); the versions that
        only they make up."""
        own = self._own.get(group, [])
        self._listed = self._nested = None
        known = self._groups.pop(group, None)
        if definitions:
            self._groups[group] = _Group([*own, *definitions])
        if not own:
            if definitions and known is None:
                insort(self._order, group)
            elif known is not None and not definitions:
                del self._order[bisect_left(self._order, group)]
        self._tell(group)
        builtin = {definition.version for definition in own}
        return tuple(dict.fromkeys(d.version for d in definitions if d.version not in builtin))

    def group(self, name: str) -> Document | None:
        found = self._groups.get(name)
        return self._builtin.group(name) if found is None else found.documents.group(name)

    def resource_list(self, group: str, version: str) -> Document | None:
        found = self._groups.get(group)
        documents = self._builtin if found is None else found.documents
        return documents.resource_list(group, version)

    @property
    def group_list(self) -> Document:
        if self._listed is None:
            builtin = self._builtin.group_list.tree["groups"]
            parts = [self._part(item["name"], item, nested=False) for item in builtin]
            parts += [self._groups[group].entry for group in self._order]
            self._listed = Document(_LIST + b",".join(parts) + _END)
        return self._listed

    @property
    def aggregated_groups(self) -> Document:
        if self._nested is None:
            builtin = self._builtin.aggregated_groups.tree["items"]
            parts = [self._part(item["metadata"]["name"], item, nested=True) for item in builtin]
            parts += [self._groups[group].nested for group in self._order]
            self._nested = Document(_NESTED + b",".join(parts) + _END)
        return self._nested

    def names(self) -> list[str]:
        """Of all groups."""
        return [*self._builtin.versions, *self._order]

    def nested(self, group: str) -> bytes:
        """What a group adds to the aggregated document; empty when there is none."""
        found = self._groups.get(group)
        if found is not None:
            return found.nested
        if not self._builtin_parts:
            items = self._builtin.aggregated_groups.tree["items"]
            self._builtin_parts = {item["metadata"]["name"]: orjson.dumps(item) for item in items}
        return self._builtin_parts.get(group, b"")

    def _part(self, group: str, item: object, *, nested: bool) -> bytes:
        """What a built-in group adds to a list, with the custom resources in it."""
        found = self._groups.get(group)
        if found is None:
            return orjson.dumps(item)
        return found.nested if nested else found.entry


class _Group:
    """A group with custom resources; everything is made when it is asked for."""

    __slots__ = ("_definitions", "_documents", "_entry", "_nested")

    def __init__(self, definitions: Sequence[ResourceDefinition]) -> None:
        self._definitions = definitions
        self._documents: DiscoveryDocuments | None = None
        self._entry = self._nested = b""

    @property
    def documents(self) -> DiscoveryDocuments:
        if self._documents is None:
            self._documents = DiscoveryDocuments(self._definitions)
        return self._documents

    @property
    def entry(self) -> bytes:
        """What it adds to the list of groups."""
        if not self._entry:
            self._entry = orjson.dumps(self.documents.group_list.tree["groups"][0])
        return self._entry

    @property
    def nested(self) -> bytes:
        """What it adds to the aggregated document."""
        if not self._nested:
            self._nested = orjson.dumps(self.documents.aggregated_groups.tree["items"][0])
        return self._nested

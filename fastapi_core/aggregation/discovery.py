"""Discovery of the whole server: the groups it serves itself, with what backends publish put in their place.

What a group adds is made again when something about the group has changed, by the next request, or beside them where very
much has changed; the lists are joined from these bytes. Nothing is asked for then.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from fastapi_core.aggregation.registration import OWN_GROUP
from fastapi_core.discovery import priorities
from fastapi_core.discovery.documents import Document
from fastapi_core.discovery.live import LiveDocuments

if TYPE_CHECKING:
    from fastapi_core.aggregation.directory import APIService, Directory
    from fastapi_core.aggregation.published import Published

Tree = dict[str, Any]
Services = tuple["APIService", ...]
Rank = tuple[int, str]

_LIST = b'{"kind":"APIGroupList","apiVersion":"v1","groups":['
_NESTED = b'{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":['
_END = b"]}\n"
#: Changed groups that are left to the next request; of more, pieces are seen to between requests, after a pause each (seconds).
_FEW, _PIECE, _PAUSE = 32, 8, 0.005


class Joined:
    """A list of what groups add to it, in order."""

    def __init__(self, head: bytes) -> None:
        self._head = head
        self._order: list[Rank] = []
        self._parts: dict[str, tuple[Rank, bytes]] = {}
        self._document: Document | None = None

    def put(self, group: str, rank: int, part: bytes) -> None:
        """Groups go by `rank`, then by name; one without a part is not there."""
        new = ((rank, group), part) if part else None
        old = self._parts.get(group)
        if old == new:
            return
        self._document = None
        if old is not None and (new is None or old[0] != new[0]):
            del self._order[bisect_left(self._order, old[0])]
            del self._parts[group]
        if new is not None:
            if group not in self._parts:
                insort(self._order, new[0])
            self._parts[group] = new

    @property
    def document(self) -> Document:
        if self._document is None:
            parts = [self._parts[group][1] for _, group in self._order]
            self._document = Document(self._head + b",".join(parts) + _END)
        return self._document


class DiscoveryView:
    """`/apis` and `/apis/GROUP` of this moment (`discovery.endpoints.Shown`)."""

    def __init__(self, documents: LiveDocuments, directory: Directory, published: Published) -> None:
        self._documents = documents
        self._directory = directory
        self._published = published
        self._groups: dict[str, Document] = {}
        self._listed = Joined(_LIST)
        self._nested = Joined(_NESTED)
        self._changed: set[str] = {*documents.names(), *directory.groups}
        self._soon: asyncio.TimerHandle | None = None
        documents.listen(self._note)
        published.listen(self._note)
        directory.listen_groups(self._note)
        self._see_to()

    def _note(self, group: str) -> None:
        self._changed.add(group)
        self._see_to()

    def _see_to(self) -> None:
        if self._soon is None and len(self._changed) > _FEW:
            self._soon = asyncio.get_running_loop().call_later(_PAUSE, self._ahead)

    def _ahead(self) -> None:
        """The first request after very many changes is not to pay for all of them."""
        self._soon = None
        for _ in range(min(_PIECE, len(self._changed))):
            self._renew(self._changed.pop())
        self._see_to()

    def __call__(self, documents: object) -> DiscoveryView:
        """What there is now. `documents` are those this was made for."""
        for group in self._changed:
            self._renew(group)
        self._changed.clear()
        return self

    @property
    def group_list(self) -> Document:
        return self._listed.document

    @property
    def aggregated_groups(self) -> Document:
        return self._nested.document

    def group(self, name: str) -> Document | None:
        """The document of a group: of its registered versions, else of what is served."""
        services = self._directory.group(name)
        if not services or name == OWN_GROUP:
            return self._documents.group(name)
        found = self._groups.get(name)
        if found is None:
            tree = {"kind": "APIGroup", "apiVersion": "v1", **_group(name, services)}
            found = self._groups[name] = Document(tree)
        return found

    def _renew(self, name: str) -> None:
        self._groups.pop(name, None)
        if not name:
            return  # the core group is in neither list
        services = self._directory.group(name)
        rank = -_rank(name, services)
        self._listed.put(name, rank, self._entry(name, services))
        local = self._documents.nested(name)
        if any(service.backing is not None for service in services):
            local = _together(name, local, services, self._published.entries)
        self._nested.put(name, rank, local)

    def _entry(self, name: str, services: Services) -> bytes:
        """What the group adds to the list of groups: only what is registered is there, and who registers."""
        if name != OWN_GROUP:
            return orjson.dumps(_group(name, services)) if services else b""
        own = self._documents.group(OWN_GROUP)
        if own is None:
            return b""
        return orjson.dumps({key: value for key, value in own.tree.items() if key not in ("kind", "apiVersion")})


def _together(group: str, local: bytes, services: Services, entries: Mapping[str, Tree]) -> bytes:
    """What a group adds whose versions are not all served here."""
    versions = {entry["version"]: entry for entry in orjson.loads(local)["versions"]} if local else {}
    for service in services:
        if service.backing is not None:
            stale = {"version": service.version, "freshness": "Stale"}
            versions[service.version] = entries.get(service.name, stale)
    return orjson.dumps({"metadata": {"name": group}, "versions": _in_order(group, versions, services)})


def _group(name: str, services: Services) -> Tree:
    versions = [{"groupVersion": f"{name}/{service.version}", "version": service.version} for service in services]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _rank(group: str, services: Services) -> int:
    if services and group != OWN_GROUP:
        return max(service.group_priority for service in services)
    return priorities.BUILTIN.get(group, priorities.DEFAULT).group


def _in_order(group: str, versions: Mapping[str, Tree], services: Services) -> list[Tree]:
    known = priorities.BUILTIN.get(group, priorities.CUSTOM)
    asked = {service.version: service.version_priority for service in services}

    def key(version: str) -> tuple[int, priorities.VersionKey]:
        number = asked.get(version, known.versions.get(version, known.other))
        return -number, priorities.version_key(version)

    return [versions[version] for version in sorted(versions, key=key)]

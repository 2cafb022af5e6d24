"""The discovery documents as trees and bytes, made once from resource definitions.

A `DiscoveryDocuments` is immutable. When a resource comes or goes a new one is made and put in its place, so that a
client never sees half of a change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import orjson

from fastapi_core.discovery import priorities
from fastapi_core.discovery.priorities import GroupPriority
from fastapi_core.later import later
from fastapi_core.registry.definition import ResourceDefinition, Subresource

if TYPE_CHECKING:
    from fastapi_core.codec import protobuf
else:
    protobuf = later("fastapi_core.codec.protobuf")

Tree = dict[str, Any]


class Document:
    """One document, made of a tree or of its JSON; every other form is made once, on first use."""

    __slots__ = ("_etag", "_pretty", "_protobuf", "json")

    def __init__(self, content: Tree | bytes) -> None:
        self.json = content if isinstance(content, bytes) else orjson.dumps(content) + b"\n"
        """Compact JSON with the newline the reference ends it with."""
        self._etag = ""
        self._pretty: bytes | None = None
        self._protobuf: bytes | None = None

    @property
    def tree(self) -> Tree:
        """A fresh tree of it."""
        made: Tree = orjson.loads(self.json)
        return made

    @property
    def etag(self) -> str:
        """Quoted, as it stands in the header."""
        if not self._etag:
            self._etag = f'"{hashlib.sha512(self.json).hexdigest().upper()}"'
        return self._etag

    @property
    def pretty(self) -> bytes:
        """Indented JSON."""
        if self._pretty is None:
            self._pretty = orjson.dumps(self.tree, option=orjson.OPT_INDENT_2)
        return self._pretty

    @property
    def protobuf(self) -> bytes:
        """The enveloped message. The oldest documents have no version there either."""
        if self._protobuf is None:
            self._protobuf = protobuf.answer(self.tree)
        return self._protobuf


class DiscoveryDocuments:
    """All discovery documents of one set of resources, made when they are first asked for.

    `server_address` (`host:port`) is what `/api` tells clients to use. `group_priorities` are numbers for groups
    besides the built-in ones.
    """

    def __init__(
        self,
        definitions: Iterable[ResourceDefinition],
        *,
        server_address: str = "",
        group_priorities: Mapping[str, GroupPriority] | None = None,
    ) -> None:
        known = {**priorities.BUILTIN, **(group_priorities or {})}
        served = _by_group_version(definitions)
        order = sorted(served, key=lambda group: (-_priority(known, group).group, group))
        ordered = {
            group: {
                version: served[group][version]
                for version in priorities.sorted_versions(
                    {v: all(d.custom for d in found) for v, found in served[group].items()}, _priority(known, group)
                )
            }
            for group in order
        }
        self.versions: Mapping[str, tuple[str, ...]] = {group: tuple(found) for group, found in ordered.items()}
        """Group -> versions in order of preference; the core group is ""."""
        self.custom: frozenset[tuple[str, str]] = frozenset(
            (group, version)
            for group, versions in ordered.items()
            for version, found in versions.items()
            if all(d.custom for d in found)
        )
        """Group versions that only custom resources make up."""
        self._ordered = ordered
        self._server_address = server_address

    @cached_property
    def _named(self) -> Mapping[str, Mapping[str, list[ResourceDefinition]]]:
        return {group: versions for group, versions in self._ordered.items() if group}

    @cached_property
    def core(self) -> Document:
        return Document(_api_versions(tuple(self._ordered.get("", ())), self._server_address))

    @cached_property
    def group_list(self) -> Document:
        return Document(_group_list(self._named))

    @cached_property
    def groups(self) -> Mapping[str, Document]:
        return {
            group: Document({"kind": "APIGroup", "apiVersion": "v1", **_group(group, tuple(versions))})
            for group, versions in self._named.items()
        }

    @cached_property
    def resource_lists(self) -> Mapping[tuple[str, str], Document]:
        return {
            (group, version): Document(_resource_list(group, version, found))
            for group, versions in self._ordered.items()
            for version, found in versions.items()
        }

    @cached_property
    def aggregated_core(self) -> Document:
        return Document(_aggregated({"": self._ordered[""]} if "" in self._ordered else {}))

    @cached_property
    def aggregated_groups(self) -> Document:
        return Document(_aggregated(self._named))

    def group(self, name: str) -> Document | None:
        """`/apis/NAME`."""
        return self.groups.get(name)

    def resource_list(self, group: str, version: str) -> Document | None:
        """What a group version serves."""
        return self.resource_lists.get((group, version))


def _priority(known: Mapping[str, GroupPriority], group: str) -> GroupPriority:
    return known.get(group, priorities.DEFAULT)


def _by_group_version(definitions: Iterable[ResourceDefinition]) -> dict[str, dict[str, list[ResourceDefinition]]]:
    served: dict[str, dict[str, list[ResourceDefinition]]] = {}
    for definition in definitions:
        served.setdefault(definition.group, {}).setdefault(definition.version, []).append(definition)
    for versions in served.values():
        for found in versions.values():
            found.sort(key=lambda definition: definition.plural)
    return served


def _verbs(definition: ResourceDefinition, verbs: Iterable[str]) -> list[str]:
    """Verbs are sorted, except for custom resources, where the reference has them in an order of its own."""
    return list(verbs) if definition.custom else sorted(verbs)


def _subresources(definition: ResourceDefinition) -> list[Subresource]:
    found = list(definition.subresources.values())
    return found if definition.custom else sorted(found, key=lambda sub: sub.name)


def _group(group: str, versions: tuple[str, ...]) -> Tree:
    entries = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": entries, "preferredVersion": entries[0]}


def _group_list(groups: Mapping[str, Mapping[str, Any]]) -> Tree:
    entries = [_group(group, tuple(versions)) for group, versions in groups.items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": entries}


def _api_versions(versions: tuple[str, ...], server_address: str) -> Tree:
    # The oldest documents have no apiVersion: clients of release 1.0 did not send or expect one.
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}] if server_address else []
    return {"kind": "APIVersions", "versions": list(versions), "serverAddressByClientCIDRs": addresses}


def _resource_list(group: str, version: str, definitions: list[ResourceDefinition]) -> Tree:
    resources: list[Tree] = []
    for definition in definitions:
        resources.append(_resource(definition))
        resources += [_subresource(definition, sub) for sub in _subresources(definition)]
    if not group:
        return {"kind": "APIResourceList", "groupVersion": version, "resources": resources}
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}",
        "resources": resources,
    }


def _resource(definition: ResourceDefinition) -> Tree:
    tree: Tree = {
        "name": definition.plural,
        "singularName": definition.singular,
        "namespaced": definition.namespaced,
        "kind": definition.kind,
        "verbs": _verbs(definition, definition.verbs),
    }
    tree |= _names(definition)
    if definition.storage_version_hash:
        tree["storageVersionHash"] = definition.storage_version_hash
    return tree


def _names(definition: ResourceDefinition) -> Tree:
    tree: Tree = {}
    if definition.short_names:
        tree["shortNames"] = list(definition.short_names)
    if definition.categories:
        tree["categories"] = list(definition.categories)
    return tree


def _subresource(definition: ResourceDefinition, sub: Subresource) -> Tree:
    tree: Tree = {
        "name": f"{definition.plural}/{sub.name}",
        "singularName": "",
        "namespaced": definition.namespaced,
    }
    if sub.group:
        tree["group"] = sub.group
    if sub.version:
        tree["version"] = sub.version
    return tree | {"kind": sub.kind, "verbs": _verbs(definition, sub.verbs)}


def _aggregated(groups: Mapping[str, Mapping[str, list[ResourceDefinition]]]) -> Tree:
    items: list[Tree] = []
    for group, versions in groups.items():
        entries = [
            {"version": version, "resources": [_nested(d) for d in found], "freshness": "Current"}
            for version, found in versions.items()
        ]
        items.append({"metadata": {"name": group} if group else {}, "versions": entries})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _nested(definition: ResourceDefinition) -> Tree:
    """A resource of an aggregated document, subresources below it. Only custom resources name their own group."""
    own = (definition.group, definition.version) if definition.custom else ("", "")
    tree: Tree = {
        "resource": definition.plural,
        "responseKind": _kind(*own, definition.kind),
        "scope": "Namespaced" if definition.namespaced else "Cluster",
        "singularResource": definition.singular,
        "verbs": _verbs(definition, definition.verbs),
    }
    tree |= _names(definition)
    subresources = [
        {
            "subresource": sub.name,
            "responseKind": _kind(*((sub.group, sub.version) if sub.group or sub.version else own), sub.kind),
            "verbs": _verbs(definition, sub.verbs),
        }
        for sub in _subresources(definition)
    ]
    if subresources:
        tree["subresources"] = subresources
    return tree


def _kind(group: str, version: str, kind: str) -> Tree:
    return {"group": group, "version": version, "kind": kind}

"""Who serves a path: aggregated servers, built-in resources, custom resources, nobody, in this order.

The seats of the chain are filled from the inside out when the server is composed, and the two outer ones go on changing
while it runs. A request sees one immutable `Snapshot`; a change makes another one and puts it in its place, copying only
the dictionary it touches, so that one custom resource definition among thousands costs what it itself needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from fastapi_core._ext.router import Match, Router
from fastapi_core.records import dataclass
from fastapi_core.request.context import Endpoint
from fastapi_core.request.routing import ANY, Route, Routes, resource_routes

if TYPE_CHECKING:
    from fastapi_core.registry.definition import ResourceDefinition

Methods = Mapping[str, Endpoint]
GroupVersion = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that is served at one moment; stands where a `Router` may stand."""

    builtin: Router[Endpoint]
    groups: frozenset[str]
    """Groups of the built-in seat."""
    aggregated: Mapping[GroupVersion, Router[Endpoint]] = field(default_factory=dict)
    """Group versions another server answers for, with all that is below them."""
    listed: Mapping[str, Router[Endpoint]] = field(default_factory=dict)
    """Documents of registered groups, `/apis/GROUP`, whoever serves their versions."""
    custom: Mapping[GroupVersion, Mapping[str, Routes]] = field(default_factory=dict)
    """Group version -> plural -> the routes of one custom resource."""
    documents: Mapping[str, Router[Endpoint]] = field(default_factory=dict)
    """Discovery of groups that are not built in, `/apis/GROUP` and its versions."""

    def lookup(self, path: str) -> Match[Endpoint] | None:
        """Route of a raw path, or None when nobody serves it."""
        if not path.startswith("/apis/"):
            match = self.builtin.lookup(path)
            if match is None and "%" in path:
                parts = unquote(path).split("/")
                return self._custom(parts, path) if len(parts) > 2 and parts[1] == "apis" else None
            return match
        # Decoded before it is divided, as the routers do: an encoded slash divides segments here and there alike.
        parts = (unquote(path) if "%" in path else path).split("/")
        if len(parts) == 3 or (len(parts) == 4 and not parts[3]):
            router = self.listed.get(parts[2])
        else:
            version = (parts[2], parts[3])
            router = self.aggregated.get(version)
            if router is None and len(parts) > 4 and parts[4] and version in self.custom:
                # Nothing built in is below a group version of custom resources.
                return _below(self.custom[version], parts, path)
        if router is not None:
            # The other server might resolve them, and serve what nobody was asked about here.
            return None if ".." in parts or "." in parts else router.lookup(path)
        match = self.builtin.lookup(path)
        return self._custom(parts, path) if match is None else match

    def _custom(self, parts: list[str], path: str) -> Match[Endpoint] | None:
        if len(parts) > 4 and parts[4]:
            resources = self.custom.get((parts[2], parts[3]))
            return None if resources is None else _below(resources, parts, path)
        documents = self.documents.get(parts[2])
        return documents.lookup(path) if documents is not None else None

    def known_group(self, group: str) -> bool:
        """Whether a miss below the group is a Status: below groups of custom resources it is a missing page."""
        return group in self.groups


def _below(resources: Mapping[str, Routes], parts: list[str], path: str) -> Match[Endpoint] | None:
    # Below a namespace first: "namespaces" may itself be the name of a custom resource, and so may "watch".
    places = (6, 4) if parts[4] == "namespaces" and len(parts) > 6 else (7, 5, 4) if parts[4] == "watch" else (4,)
    for at in places:
        router = resources.get(parts[at]) if at < len(parts) else None
        match = router.lookup(path) if router is not None else None
        if match is not None:
            return match
    return None


class Delegation:
    """Holds the snapshot of the moment, and changes it.

    All methods run on the loop. `current` goes to whoever dispatches requests (`lambda: delegation.current`).
    """

    def __init__(self) -> None:
        self.current = Snapshot(Router([]), frozenset())

    def lookup(self, path: str) -> Match[Endpoint] | None:
        return self.current.lookup(path)

    def known_group(self, group: str) -> bool:
        return self.current.known_group(group)

    # Built-in

    def set_builtin(self, routes: Iterable[Route], groups: Iterable[str]) -> None:
        """The routes of the composed server itself: built-in resources, discovery, health and all other paths."""
        self.current = replace(self.current, builtin=Router(routes), groups=frozenset(groups))

    # Custom resources

    def put_custom(self, definition: ResourceDefinition, endpoints: Mapping[str, Endpoint]) -> None:
        """Serve a custom resource in one version, or serve it otherwise than before.

        `endpoints` as for `request.routing.resource_routes`. Its group needs `put_documents` too.
        """
        key = (definition.group, definition.version)
        resources = {**self.current.custom.get(key, {}), definition.plural: _router(definition, endpoints)}
        self.current = replace(self.current, custom={**self.current.custom, key: resources})

    def put_routes(self, group: str, version: str, plural: str, routes: Routes) -> None:
        """Serve a custom resource in one version by routes of its own."""
        key = (group, version)
        resources = {**self.current.custom.get(key, {}), plural: routes}
        self.current = replace(self.current, custom={**self.current.custom, key: resources})

    def drop_custom(self, group: str, version: str, plural: str) -> None:
        """Serve it no longer; nothing happens when it was not served."""
        key = (group, version)
        resources = {name: router for name, router in self.current.custom.get(key, {}).items() if name != plural}
        custom = {other: found for other, found in self.current.custom.items() if other != key}
        self.current = replace(self.current, custom={**custom, key: resources} if resources else custom)

    def put_documents(self, group: str, routes: Iterable[Route]) -> None:
        """Discovery routes of a group that is not built in; no routes: the group is gone."""
        found = list(routes)
        documents = {name: router for name, router in self.current.documents.items() if name != group}
        if found:
            documents[group] = Router(found)
        self.current = replace(self.current, documents=documents)

    # Aggregated servers

    def put_aggregated(self, group: str, version: str, endpoint: Endpoint) -> None:
        """Hand everything at and below `/apis/GROUP/VERSION` to `endpoint`, whatever the method.

        It wins over built-in and custom resources. The group's own document (`/apis/GROUP`) stays ours.
        """
        root = f"/apis/{group}/{version}"
        methods = {ANY: endpoint}
        router = Router[Endpoint]([(root, methods), (root + "/{rest...}", methods)])
        self.current = replace(self.current, aggregated={**self.current.aggregated, (group, version): router})

    def put_listed(self, group: str, endpoint: Endpoint) -> None:
        """Let `endpoint` tell of the versions of a group, whoever answers for them."""
        methods = {ANY: endpoint}
        router = Router[Endpoint]([(f"/apis/{group}", methods), (f"/apis/{group}/", methods)])
        self.current = replace(self.current, listed={**self.current.listed, group: router})

    def drop_listed(self, group: str) -> None:
        """Take it back."""
        left = {name: router for name, router in self.current.listed.items() if name != group}
        self.current = replace(self.current, listed=left)

    def drop_aggregated(self, group: str, version: str) -> None:
        """Take it back: whoever stands further in answers again."""
        left = {key: router for key, router in self.current.aggregated.items() if key != (group, version)}
        self.current = replace(self.current, aggregated=left)


def _router(definition: ResourceDefinition, endpoints: Mapping[str, Endpoint]) -> Router[Endpoint]:
    return Router(resource_routes(definition, endpoints))

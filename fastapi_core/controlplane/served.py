"""Which resources are served at this moment, built in and custom ones, for those who look a kind up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from fastapi_core.admission.chain import AdmissionChain
from fastapi_core.later import later

if TYPE_CHECKING:
    from fastapi_core.admission import matching
    from fastapi_core.admission.matching import Equivalents
    from fastapi_core.registry.definition import ResourceDefinition
    from fastapi_core.registry.store import ResourceStore
    from fastapi_core.rest import scope as scopes
    from fastapi_core.rest.scope import Scope
else:
    matching = later("fastapi_core.admission.matching")
    scopes = later("fastapi_core.rest.scope")

Make = Callable[[], "Scope"]
"""The scope of a version, made when it is first asked for."""


class Served:
    """Resources by kind, and those that share their stored objects (`admission.policies.params.Directory`)."""

    def __init__(self, definitions: Iterable[ResourceDefinition], stores: Mapping[str, ResourceStore]) -> None:
        self._builtin = [(d, _reader(d, stores[d.key_prefix])) for d in definitions if d.key_prefix]
        self._custom: dict[str, list[tuple[ResourceDefinition, Make]]] = {}
        self._listeners: list[Callable[[], None]] = []
        self._known: dict[tuple[str, str, str], tuple[ResourceDefinition, Make]] | None = None
        """By kind, made anew when somebody asks after a change: a thousand definitions come one by one."""
        self._equivalents: Equivalents

    def put(self, name: str, versions: Iterable[tuple[ResourceDefinition, Make]]) -> None:
        """A custom resource is served in these versions from now on; `name` is that of its definition."""
        self._custom[name] = list(versions)
        self._changed()

    def drop(self, name: str) -> None:
        """It is served no longer; nothing happens when it was not served."""
        if self._custom.pop(name, None) is not None:
            self._changed()

    def listen(self, changed: Callable[[], None]) -> None:
        """Call this after each change."""
        self._listeners.append(changed)

    def find(self, group: str, version: str, kind: str) -> Scope | None:
        """The objects of a kind in a version."""
        found = self._kinds().get((group, version, kind))
        return found[1]() if found is not None else None

    def named(self, group: str, version: str, plural: str) -> list[ResourceDefinition]:
        """Resources of a name; an empty group stands for any."""
        return [
            definition
            for definition, _ in self._kinds().values()
            if (definition.version, definition.plural) == (version, plural) and group in ("", definition.group)
        ]

    def equivalents(self, definition: ResourceDefinition, subresource: str) -> Sequence[ResourceDefinition]:
        self._kinds()
        return self._equivalents(definition, subresource)

    def _changed(self) -> None:
        self._known = None
        for listener in self._listeners:
            listener()

    def _kinds(self) -> dict[tuple[str, str, str], tuple[ResourceDefinition, Make]]:
        if self._known is None:
            every = [*self._builtin, *(found for resource in self._custom.values() for found in resource)]
            self._known = {(d.group, d.version, d.kind): (d, make) for d, make in reversed(every)}
            self._equivalents = matching.equivalents(definition for definition, _ in every)
        return self._known


def _reader(definition: ResourceDefinition, store: ResourceStore) -> Make:
    """A scope to read from: nothing is written through it."""
    made: list[Scope] = []

    def make() -> Scope:
        if not made:
            made.append(scopes.Scope(definition, store, AdmissionChain(())))
        return made[0]

    return make

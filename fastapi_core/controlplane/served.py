"""Which resources are served at this moment, built in and custom ones, for those who look a kind up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from fastapi_core.admission.matching import equivalents

if TYPE_CHECKING:
    from fastapi_core.admission.matching import Equivalents
    from fastapi_core.registry.definition import ResourceDefinition
    from fastapi_core.registry.store import ResourceStore

Found = tuple["ResourceDefinition", "ResourceStore"]


class Served:
    """Resources by kind, and those that share their stored objects (`admission.policies.params.Directory`)."""

    def __init__(self, definitions: Iterable[ResourceDefinition], stores: Mapping[str, ResourceStore]) -> None:
        self._builtin = [(d, stores[d.key_prefix]) for d in definitions if d.key_prefix]
        self._custom: dict[str, list[Found]] = {}
        self._listeners: list[Callable[[], None]] = []
        self._kinds: dict[tuple[str, str, str], Found] = {}
        self._equivalents: Equivalents = equivalents(())
        self._index()

    def put(self, name: str, definitions: Iterable[ResourceDefinition], store: ResourceStore) -> None:
        """A custom resource is served in these versions from now on; `name` is that of its definition."""
        self._custom[name] = [(definition, store) for definition in definitions]
        self._changed()

    def drop(self, name: str) -> None:
        """It is served no longer; nothing happens when it was not served."""
        if self._custom.pop(name, None) is not None:
            self._changed()

    def listen(self, changed: Callable[[], None]) -> None:
        """Call this after each change."""
        self._listeners.append(changed)

    def find(self, group: str, version: str, kind: str) -> Found | None:
        return self._kinds.get((group, version, kind))

    def named(self, group: str, version: str, plural: str) -> list[ResourceDefinition]:
        """Resources of a name; an empty group stands for any."""
        return [
            definition
            for definition, _ in self._kinds.values()
            if (definition.version, definition.plural) == (version, plural) and group in ("", definition.group)
        ]

    def equivalents(self, definition: ResourceDefinition, subresource: str) -> Sequence[ResourceDefinition]:
        return self._equivalents(definition, subresource)

    def _changed(self) -> None:
        self._index()
        for listener in self._listeners:
            listener()

    def _index(self) -> None:
        every = [*self._builtin, *(found for resource in self._custom.values() for found in resource)]
        self._kinds = {(d.group, d.version, d.kind): (d, store) for d, store in reversed(every)}
        self._equivalents = equivalents(definition for definition, _ in every)

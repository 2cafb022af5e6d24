"""A kind behind the verb handlers."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastapi_core.admission.chain import AdmissionChain
from fastapi_core.crd.scope import CustomScope, Family
from fastapi_core.extension.columns import printer
from fastapi_core.patch.tracking import Tracker
from fastapi_core.patch.tracking import Version as OwnedVersion

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.extension.declaration import Declaration
    from fastapi_core.extension.rules import KindRules
    from fastapi_core.registry.definition import ResourceDefinition
    from fastapi_core.registry.printers import Printer
    from fastapi_core.registry.store import ResourceStore
    from fastapi_core.rest.scope import Scope


Tree = dict[str, Any]
Convert = Callable[[Tree, str], Tree]
"""A tree in another version of its kind, named as apiVersions are."""


class KindScope(CustomScope):
    """One declared kind in one version. `computed`: its objects come from functions, as they are to be shown.

    `convert` is there for kinds with several versions; it never waits for anything."""

    def __init__(
        self,
        declaration: Declaration[Any],
        family: Family,
        rules: KindRules[Any],
        definition: ResourceDefinition,
        store: ResourceStore,
        authorizer: Authorizer | None,
        *,
        computed: bool,
        convert: Convert | None = None,
    ) -> None:
        super().__init__(
            replace(definition, strategy=rules.strategy()),
            store,
            AdmissionChain(()),
            authorizer,
            declaration.served_version(),
            family,
        )
        rules.definition = self.definition
        self.declaration = declaration
        self.computed = computed
        self.origin = self
        """The scope of the kind, of which others are made for single requests."""
        self._rules = rules
        self._between = convert

    def bound(self, store: ResourceStore) -> KindScope:
        """The same over the store of one request."""
        made = copy.copy(self)
        made.store = store
        return made

    def status(self) -> Scope:
        made = copy.copy(self)
        made.definition = replace(self.definition, strategy=self._rules.strategy(status_only=True))
        return made

    @property
    def printer(self) -> Printer:
        if self._printer is None:
            self._printer = printer(self.declaration.columns, self.declaration.model.load, computed=self.computed)
        return self._printer

    def view(self, obj: CachedObject) -> CachedObject:
        return obj if self.computed else super().view(obj)

    def views(self, objects: list[CachedObject]) -> list[CachedObject]:
        return objects if self.computed else super().views(objects)

    def is_ready(self, objects: Sequence[CachedObject]) -> bool:
        return self.computed or super().is_ready(objects)

    def tracker(self, subresource: str = "") -> Tracker:
        """The kind's own: it is kept, and must not keep the scope of whichever request needed it first."""
        return super().tracker(subresource) if self.origin is self else self.origin.tracker(subresource)

    # Versions

    def _defaulted(self, obj: CachedObject) -> Tree:
        tree = super()._defaulted(obj)
        if self._between is None or tree.get("apiVersion") == self.group_version:
            return tree
        return self._between(tree, self.group_version)

    def to_storage(self, tree: Tree) -> Tree | Awaitable[Tree]:
        if self._between is None or self.group_version == self._stored_version:
            return tree
        return self._stored_form(self._between(tree, self._stored_version))

    def _owned(self, name: str) -> OwnedVersion | None:
        """Another version in which fields may be owned."""
        found, convert = super()._owned(name), self._between
        if found is None or convert is None:
            return found
        own = self.group_version
        return OwnedVersion(found.type, lambda tree: convert(tree, name), lambda tree: convert(tree, own))

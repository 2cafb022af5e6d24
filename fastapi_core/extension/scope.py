"""A kind behind the verb handlers."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastapi_core.admission.chain import AdmissionChain
from fastapi_core.crd.scope import CustomScope
from fastapi_core.extension.columns import printer

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.extension.declaration import Declaration, SchemaForm
    from fastapi_core.extension.rules import KindRules
    from fastapi_core.registry.definition import ResourceDefinition
    from fastapi_core.registry.printers import Printer
    from fastapi_core.registry.store import ResourceStore
    from fastapi_core.rest.scope import Scope


class KindScope(CustomScope):
    """One declared kind. `computed`: its objects come from functions, as they are to be shown."""

    def __init__(
        self,
        declaration: Declaration[Any],
        form: SchemaForm,
        rules: KindRules[Any],
        definition: ResourceDefinition,
        store: ResourceStore,
        authorizer: Authorizer | None,
        *,
        computed: bool,
    ) -> None:
        super().__init__(
            replace(definition, strategy=rules.strategy()),
            store,
            AdmissionChain(()),
            authorizer,
            declaration.served_version(),
            declaration.family(form),
        )
        self.declaration = declaration
        self.computed = computed
        self.origin = self
        """The scope of the kind, of which others are made for single requests."""
        self._rules = rules

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
            self._printer = printer(self.declaration.columns, self.declaration.model.load)
        return self._printer

    def view(self, obj: CachedObject) -> CachedObject:
        return obj if self.computed else super().view(obj)

    def views(self, objects: list[CachedObject]) -> list[CachedObject]:
        return objects if self.computed else super().views(objects)

    def is_ready(self, objects: Sequence[CachedObject]) -> bool:
        return self.computed or super().is_ready(objects)

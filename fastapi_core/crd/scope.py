"""Custom resources behind the verb handlers: objects as a version shows them, and as they are stored.

What is stored may be older than the definition: a read fills in defaults of the version it was written in, converts it
and prunes what the version asked for does not know. The result is kept with the object, and is the object itself when
nothing had to be done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.crd.definitions import Version
from fastapi_core.crd.scaling import CustomScaling
from fastapi_core.crd.strategy import Rules
from fastapi_core.patch.tracking import Tracker, Versions
from fastapi_core.patch.tracking import Version as OwnedVersion
from fastapi_core.registry.fields import text_at
from fastapi_core.registry.ownership import tracker
from fastapi_core.registry.store import ResourceStore, encode_stored
from fastapi_core.rest.scope import Scope
from fastapi_core.storage.cacher.matching import Matchers

if TYPE_CHECKING:
    from fastapi_core._ext.selector import Matcher
    from fastapi_core.admission.chain import AdmissionChain
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.crd.form import LazyForm
    from fastapi_core.patch.scale import Paths
    from fastapi_core.registry.definition import ResourceDefinition
    from fastapi_core.registry.printers import Printer
    from fastapi_core.rest.escalation import Guard

Tree = dict[str, Any]


class Converter(Protocol):
    """A webhook that turns objects of one version into another."""

    async def convert(self, trees: Sequence[Tree], kind: str, source: str, target: str) -> list[Tree]:
        """The objects in `target` (group/version), in order; APIError when it fails."""


class Family:
    """What the versions of one definition know of each other."""

    __slots__ = ("converter", "forms", "group", "scales")

    def __init__(
        self, group: str, forms: dict[str, LazyForm], scales: Paths, converter: Converter | None = None
    ) -> None:
        self.group = group
        self.scales = scales
        """Where each version keeps its replicas, as owners of fields name it."""
        self.forms = forms
        """Version -> its schema."""
        self.converter = converter
        """None: versions differ in their names alone."""

    def form(self, api_version: str) -> LazyForm | None:
        """The schema of the version an object says it is of."""
        group, _, version = api_version.rpartition("/")
        return self.forms.get(version) if group == self.group else None


class CustomStore(ResourceStore):
    """Objects of one definition; `fresh_for` is the scope whose view of a new object is that object."""

    fresh_for: CustomScope | None = None

    def _committed(self, key: str, revision: int, tree: Tree) -> CachedObject:
        obj = super()._committed(key, revision, tree)
        if self.fresh_for is not None and obj.revision == revision:
            self.fresh_for.remember(obj, obj)
        return obj


class CustomScope(Scope):
    """One served version of a custom resource."""

    def __init__(
        self,
        definition: ResourceDefinition,
        store: ResourceStore,
        admission: AdmissionChain,
        authorizer: Authorizer | None,
        version: Version,
        family: Family,
        guard: Guard | None = None,
    ) -> None:
        super().__init__(definition, store, admission, authorizer, guard)
        self.version = version
        self.family = family
        self._stored_version = store.definition.group_version
        self._key = ("view", definition.version)
        # Its status scope has the same views.
        self._token = definition.form
        own = ("metadata.name", "metadata.namespace") if definition.namespaced else ("metadata.name",)
        self._fields = frozenset({*own, *definition.selectable_fields})
        self._matchers = Matchers(self._selectable)
        if version.scale is not None:
            self.scaling = CustomScaling(version.scale, family.scales)

    @property
    def converts(self) -> bool:
        return self.family.converter is not None

    def status(self) -> Scope:
        form = self.family.forms[self.version.name]
        rules = Rules(form, status=True, scale=self.version.scale)
        rules.definition = self.definition
        definition = replace(self.definition, strategy=rules.strategy(status_only=True))
        return CustomScope(
            definition, self.store, self.admission, self.authorizer, self.version, self.family, self.guard
        )

    @property
    def printer(self) -> Printer:
        if self._printer is None:
            from fastapi_core.crd.columns import printer

            self._printer = printer(self.version.columns)
        return self._printer

    def tracker(self, subresource: str = "") -> Tracker:
        known = self._trackers.get(subresource)
        if known is None:
            known = self._trackers[subresource] = tracker(self.definition, subresource, Versions(self._owned))
        return known

    def _owned(self, name: str) -> OwnedVersion | None:
        """Another version in which fields may be owned."""
        from fastapi_core.crd.form import CustomType

        form = self.family.form(name)
        if form is None:
            return None
        own = self.group_version
        return OwnedVersion(
            CustomType(f"{name}.{self.definition.kind}", form),
            lambda tree: {**tree, "apiVersion": name},
            lambda tree: {**tree, "apiVersion": own},
        )

    # Reading

    def remember(self, obj: CachedObject, view: CachedObject) -> None:
        """Keep the view of an object; that of an earlier state of the definition makes room for it."""
        obj.memo[self._key] = (self._token, view)

    def view(self, obj: CachedObject) -> CachedObject:
        kept = obj.memo.get(self._key)
        if kept is not None and kept[0] is self._token:
            view: CachedObject = kept[1]
            return view
        tree = self._defaulted(obj)
        if tree.get("apiVersion") != self.group_version:
            self._check_known(tree.get("apiVersion") or "")
            if self.family.converter is not None:
                raise errors.internal(f"{obj.key} has not been converted")
            tree = {**tree, "apiVersion": self.group_version}
        return self._shown(obj, tree)

    def _check_known(self, version: str) -> None:
        """What was stored in a version that the definition has no more cannot be converted."""
        if self.family.form(version) is None:
            raise errors.APIError("", f"request to convert CR from an invalid group/version: {version}", code=500)

    def views(self, objects: list[CachedObject]) -> list[CachedObject]:
        return [self.view(obj) for obj in objects]

    def _defaulted(self, obj: CachedObject) -> Tree:
        tree = obj.tree()
        form = self.family.form(tree.get("apiVersion") or "")
        if form is not None:
            form.default(tree)
        return tree

    def _shown(self, obj: CachedObject, tree: Tree) -> CachedObject:
        """Prune a tree of this version and keep it as the object's view."""
        form = self.definition.form
        assert form is not None
        form.coerce(tree, drop=True)
        form.prune(tree)
        metadata = tree.setdefault("metadata", {})
        if not metadata.get("generation"):
            metadata["generation"] = 1
        value = encode_stored(self.definition, tree)
        view = obj
        if value != obj.stored():
            view = CachedObject(obj.key, obj.namespace, obj.name, value, obj.revision, obj.created)
            # Whoever asks for the view of a view gets it at once.
            self.remember(view, view)
        self.remember(obj, view)
        return view

    def is_ready(self, objects: Sequence[CachedObject]) -> bool:
        return self.family.converter is None or all(map(self._known, objects))

    def ready(self, objects: Sequence[CachedObject]) -> Awaitable[None] | None:
        if self.family.converter is None:
            return None
        missing = [obj for obj in objects if not self._known(obj)]
        return self._convert(missing) if missing else None

    def anew(self, obj: CachedObject) -> Awaitable[None] | None:
        if self.family.converter is None:
            return None
        return self.ready((obj,)) if self._own(obj) else self._convert([obj])

    def judges_views(self, matcher: Matcher | None) -> bool:
        return matcher is not None and self.family.converter is not None and bool(self.definition.selectable_fields)

    def _known(self, obj: CachedObject) -> bool:
        kept = obj.memo.get(self._key)
        if kept is not None and kept[0] is self._token:
            return True
        return self._own(obj)

    def _own(self, obj: CachedObject) -> bool:
        """Whether it is stored in this very version."""
        return obj.head.startswith(b'{"apiVersion":"%b"' % self.group_version.encode())

    async def _convert(self, objects: list[CachedObject]) -> None:
        """One question for all objects of one version."""
        converter = self.family.converter
        assert converter is not None
        groups: dict[str, list[tuple[CachedObject, Tree]]] = {}
        for obj in objects:
            tree = self._defaulted(obj)
            found = tree.get("apiVersion") or ""
            if found == self.group_version:
                self._shown(obj, tree)
            else:
                groups.setdefault(found, []).append((obj, tree))
        for source, members in groups.items():
            trees = [tree for _, tree in members]
            made = await converter.convert(trees, self.definition.kind, source, self.group_version)
            for (obj, _), tree in zip(members, made, strict=True):
                self._shown(obj, tree)

    # Writing

    def to_storage(self, tree: Tree) -> Tree | Awaitable[Tree]:
        if self.group_version == self._stored_version:
            return tree
        if self.family.converter is not None:
            return self._converted_to_storage(tree)
        return self._stored_form({**tree, "apiVersion": self._stored_version})

    async def _converted_to_storage(self, tree: Tree) -> Tree:
        converter = self.family.converter
        assert converter is not None
        made = await converter.convert([tree], self.definition.kind, self.group_version, self._stored_version)
        return self._stored_form(made[0])

    def _stored_form(self, tree: Tree) -> Tree:
        form = self.store.definition.form
        assert form is not None
        form.coerce(tree, drop=True)
        form.prune(tree)
        form.default(tree)
        return tree

    # Selecting

    def _selectable(self, obj: CachedObject) -> dict[str, str]:
        values = {"metadata.name": obj.name, "metadata.namespace": obj.namespace}
        if self.definition.selectable_fields:
            tree = self.view(obj).tree() if self.is_ready((obj,)) else obj.tree()
            for name, path in self.definition.selectable_fields.items():
                values[name] = text_at(tree, path)
        return values

    def _unsupported(self, name: str) -> str:
        return f"field label not supported: {name}"

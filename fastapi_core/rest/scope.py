"""What the verb handlers of one served resource share: its declaration, its store and its representations."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core._ext.selector import Matcher
from fastapi_core.admission.chain import AdmissionChain
from fastapi_core.authz.base import Authorizer
from fastapi_core.meta.selectors import SelectorError, parse_fields, parse_labels
from fastapi_core.patch.tracking import Tracker
from fastapi_core.registry.conversion import converter
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.registry.fields import extractor
from fastapi_core.registry.ownership import tracker
from fastapi_core.registry.printers import Printer, printer
from fastapi_core.registry.store import ResourceStore, encode_stored
from fastapi_core.rest.escalation import Guard
from fastapi_core.rest.options import ListOptions
from fastapi_core.storage.cacher.matching import Matchers

if TYPE_CHECKING:
    from fastapi_core.rest.scale import Scaling
    from fastapi_core.schema.types import Type

_EXPRESSIVE = frozenset(
    {"admissionregistration.k8s.io", "apiextensions.k8s.io", "authorization.k8s.io", "resource.k8s.io"}
)
#: Kinds that say in words of their own that a field cannot be selected by.
_UNSUPPORTED = {
    ("batch", "Job"): 'field label "{name}" not supported for Job',
    ("resource.k8s.io", "ResourceSlice"): "field label not supported for {version}, Kind=ResourceSlice: {name}",
}
_COMMON_FIELDS = {"metadata.name", "metadata.namespace"}


class Scope:
    """One resource in one served version, bound to the store all its versions share."""

    def __init__(
        self,
        definition: ResourceDefinition,
        store: ResourceStore,
        admission: AdmissionChain,
        authorizer: Authorizer | None = None,
        guard: Guard | None = None,
    ) -> None:
        self.definition = definition
        self.store = store.named(definition)
        self.admission = admission
        self.authorizer = authorizer
        """Asked again where one request turns out to be another verb; None: everything is allowed."""
        self.guard = guard
        """Looks at what mutating admission made of a write; None for kinds that need no such look."""
        self.group_version = definition.group_version
        self.expressive = definition.custom or definition.group in _EXPRESSIVE
        """Whether checking an object may compile or evaluate expressions, which takes its time."""
        self.list_head = (
            f'{{"kind":"{definition.list_kind}","apiVersion":"{self.group_version}","metadata":{{'
        ).encode()
        self._to_storage = converter(definition, store.definition)
        self._from_storage = converter(store.definition, definition)
        # A cluster-scoped kind with fields of its own lists them without the namespace; others take both everywhere.
        common = {"metadata.name"} if definition.selectable_fields and not definition.namespaced else _COMMON_FIELDS
        self._fields = frozenset(definition.selectable_fields) | common
        own = store.cache.extract if self._from_storage is None else None
        self._matchers = Matchers(own or extractor(definition, self._from_storage))
        self.scaling: Scaling | None = None
        """Where a kind keeps its replicas; None: where workloads have them."""
        self._printer: Printer | None = None
        self._trackers: dict[str, Tracker] = {}

    @cached_property
    def type(self) -> Type:
        """Type table of the kind in this version; loaded with the first write."""
        return self.definition.type

    @property
    def printer(self) -> Printer:
        if self._printer is None:
            self._printer = printer(self.definition)
        return self._printer

    def tracker(self, subresource: str = "") -> Tracker:
        """What keeps metadata.managedFields of writes through this resource or a subresource."""
        known = self._trackers.get(subresource)
        if known is None:
            known = self._trackers[subresource] = tracker(self.definition, subresource)
        return known

    # Versions

    def view(self, obj: CachedObject) -> CachedObject:
        """`obj` in this scope's version; itself when that is the storage version, else made once and remembered."""
        convert = self._from_storage
        if convert is None:
            return obj
        known = obj.memo.get(self)
        if known is None:
            tree = convert(obj.tree())
            value = encode_stored(self.definition, tree)
            known = CachedObject(obj.key, obj.namespace, obj.name, value, obj.revision, obj.created)
            obj.memo[self] = known
        return known

    @property
    def converts(self) -> bool:
        """Whether `ready` may ever have to wait."""
        return False

    def is_ready(self, objects: Sequence[CachedObject]) -> bool:
        """Whether `view` of each object answers at once, which for built-in kinds it always does."""
        return True

    def ready(self, objects: Sequence[CachedObject]) -> Awaitable[None] | None:
        """None when they are ready, else what makes them so."""
        return None

    def anew(self, obj: CachedObject) -> Awaitable[None] | None:
        """As `ready`, but what somebody else has to convert is converted again."""
        return None

    def judges_views(self, matcher: Matcher | None) -> bool:
        """Whether objects have to be ready before a matcher can judge them."""
        return False

    async def readied(self, obj: CachedObject) -> CachedObject:
        """The object, once `view` of it answers at once."""
        pending = self.ready((obj,))
        if pending is not None:
            await pending
        return obj

    def status(self) -> Scope:
        """The scope of the status subresource."""
        return self

    def views(self, objects: list[CachedObject]) -> list[CachedObject]:
        return objects if self._from_storage is None else [self.view(o) for o in objects]

    def to_storage(self, tree: Tree) -> Tree | Awaitable[Tree]:
        """A tree of this version in the form that is stored."""
        return tree if self._to_storage is None else self._to_storage(tree)

    # Selection

    def matcher(self, options: ListOptions) -> Matcher | None:
        """The compiled selectors of a list or watch, None when everything matches; 400 on bad ones."""
        if not options.label_selector and not options.field_selector:
            return None
        try:
            labels = parse_labels(options.label_selector)
            fields = parse_fields(options.field_selector)
        except SelectorError as error:
            raise errors.bad_request(str(error)) from error
        for name, _, _ in fields:
            if name not in self._fields:
                raise errors.bad_request(self._unsupported(name))
        return self._matchers.of(labels, fields)

    def _unsupported(self, name: str) -> str:
        if self.definition.selectable_fields:
            text = _UNSUPPORTED.get((self.definition.group, self.definition.kind), "field label not supported: {name}")
            return text.format(name=name, version=self.group_version)
        return f'{errors.go_quote(name)} is not a known field selector: only "metadata.name", "metadata.namespace"'

    def not_found(self, name: str) -> errors.APIError:
        return errors.not_found(self.definition.plural, self.definition.group, name)

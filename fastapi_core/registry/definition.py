"""What the generic store and the verb handlers know of a resource: a declaration, and small strategy functions.

A built-in resource is one of these made from data at start; a custom resource is the same thing made at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Protocol

from fastapi_core.errors import FieldError
from fastapi_core.records import dataclass

if TYPE_CHECKING:
    from fastapi_core.request.context import User
    from fastapi_core.schema.types import Type

Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Subresource:
    """One subresource: its verbs and the kind its requests carry (`group`, `version` empty for the parent's)."""

    name: str
    verbs: tuple[str, ...]
    kind: str
    group: str = ""
    version: str = ""


def _nothing(new: Tree, old: Tree | None) -> None:
    return None


def _valid(new: Tree, old: Tree | None) -> list[FieldError]:
    return []


@dataclass(frozen=True, slots=True)
class Strategy:
    """Kind-specific behaviour. `old` is None on create.

    `prepare` runs before validation and may change `new` (wipe status, bump generation, keep immutable parts);
    `validate` returns every error; `canonicalize` runs last; `warnings` returns Warning texts.
    """

    prepare: Callable[[Tree, Tree | None], None] = _nothing
    prepare_status: Callable[[Tree, Tree | None], None] = _nothing
    rehearse: Callable[[Tree, Tree | None], None] | None = None
    """What a dry run has in the place of `prepare`, for kinds where that takes something."""
    validate: Callable[[Tree, Tree | None], list[FieldError]] = _valid
    canonicalize: Callable[[Tree, Tree | None], None] = _nothing
    warnings: Callable[[Tree, Tree | None], list[str]] = lambda new, old: []
    status_warnings: Callable[[Tree, Tree | None], list[str]] = lambda new, old: []
    """About a write to the status, in the place of `warnings`."""
    requester: Callable[[Tree, User], None] | None = None
    """Writes who asks into a new object, whatever the client claimed."""
    terminate: Callable[[Tree], None] | None = None
    """What the first delete of an object makes of it, which then goes by itself; None: it is deleted."""

    def preparing(self, *, dry_run: bool) -> Callable[[Tree, Tree | None], None]:
        """What prepares a write of the main resource."""
        return self.rehearse if dry_run and self.rehearse is not None else self.prepare


class Form(Protocol):
    """What the schema of a custom resource makes of an object, in place (`crd.schema.Schema`)."""

    def prune(self, tree: Tree) -> list[str]:
        """Drop unknown members; their paths."""

    def coerce(self, tree: Tree, *, drop: bool) -> tuple[list[FieldError], list[str]]:
        """Give metadata its types: errors (wrong types, unless they are dropped) and paths of unknown members."""

    def default(self, tree: Tree) -> None:
        """Fill in what is left out."""


@dataclass(frozen=True, slots=True)
class ResourceDefinition:
    """One resource in one served version."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    type: Type
    """Type table of the kind in this version."""
    storage_group: str
    storage_version: str
    key_prefix: str
    """Storage key prefix with both slashes, `/registry/pods/`."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    selectable_fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Field selector -> path in the object (`spec.nodeName` -> ("spec", "nodeName")); metadata.name and
    metadata.namespace are understood everywhere and not listed."""
    storage_version_hash: str = ""
    list_kind: str = ""
    create_on_update: bool = False
    unconditional_update: bool = True
    graceful: bool = False
    return_deleted: bool = False
    default_propagation: str = "background"
    """background, orphan or unsupported."""
    initial_generation: int = 0
    """metadata.generation on create; 0: the kind has none."""
    bump_generation: bool = False
    ttl: float = 0
    """Seconds an object lives, 0 for ever."""
    custom: bool = False
    """True for custom resources: list items carry apiVersion and kind, keys are sorted, no strategic merge."""
    strategy: Strategy = field(default_factory=Strategy)
    form: Form | None = None
    """Of custom resources: stands where built-in kinds have a type table."""

    @property
    def group_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def but(self, **changes: Any) -> ResourceDefinition:
        """The same with other fields."""
        return replace(self, **changes)

    def revised(self, change: Callable[[Strategy], Strategy]) -> ResourceDefinition:
        """The same with what `change` makes of its strategy."""
        return replace(self, strategy=change(self.strategy))

    @property
    def head(self) -> bytes:
        """Opening bytes of every object of this version, up to `"metadata":`."""
        if self.custom:
            return f'{{"apiVersion":"{self.group_version}","kind":"{self.kind}",'.encode()
        return f'{{"kind":"{self.kind}","apiVersion":"{self.group_version}",'.encode()

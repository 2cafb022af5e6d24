"""What a CustomResourceDefinition says, read once per change: names, versions, conversion, and its conditions.

Schemas are left in the object: whoever needs one reads it again from the cached bytes (`schema_of`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastapi_core.discovery.priorities import version_key
from fastapi_core.records import dataclass

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject

Tree = dict[str, Any]

GROUP = "apiextensions.k8s.io"
PREFIX = "/registry/apiextensions.k8s.io/customresourcedefinitions/"
APPROVAL = "api-approved.kubernetes.io"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
SCHEMA = b"openAPIV3Schema"
VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


@dataclass(frozen=True, slots=True)
class Names:
    """Names of a definition; those in the status are the accepted ones."""

    plural: str = ""
    singular: str = ""
    kind: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @classmethod
    def of(cls, tree: Mapping[str, Any] | None) -> Names:
        found = tree or {}
        return cls(
            found.get("plural") or "",
            found.get("singular") or "",
            found.get("kind") or "",
            found.get("listKind") or "",
            tuple(found.get("shortNames") or ()),
            tuple(found.get("categories") or ()),
        )

    def tree(self) -> Tree:
        """As a definition's status has them."""
        made: Tree = {"plural": self.plural}
        if self.singular:
            made["singular"] = self.singular
        if self.short_names:
            made["shortNames"] = list(self.short_names)
        made["kind"] = self.kind
        if self.list_kind:
            made["listKind"] = self.list_kind
        if self.categories:
            made["categories"] = list(self.categories)
        return made


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a version keeps its replicas; paths as declared (`.spec.replicas`)."""

    spec: str
    status: str
    selector: str = ""


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    name: str
    type: str
    path: str
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Version:
    """One version, but for its schema."""

    name: str
    served: bool
    storage: bool
    warning: str
    """What a client is told when the version is deprecated."""
    status: bool
    scale: Scale | None
    columns: tuple[PrinterColumn, ...]
    selectable: tuple[str, ...]
    """Paths as declared."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One definition at one revision."""

    source: CachedObject
    name: str
    uid: str
    group: str
    namespaced: bool
    names: Names
    accepted: Names
    versions: tuple[Version, ...]
    conversion: Tree
    preserve: bool
    conditions: Mapping[str, Tree]
    stored_versions: tuple[str, ...]
    deleting: bool
    finalizing: bool
    """It has our finalizer."""
    approval: str
    """What its annotation says of its approval."""

    @property
    def storage_version(self) -> str:
        return next((version.name for version in self.versions if version.storage), "")

    @property
    def served_versions(self) -> tuple[Version, ...]:
        return tuple(version for version in self.versions if version.served)

    @property
    def key_prefix(self) -> str:
        return f"/registry/{self.group}/{self.names.plural}/"

    def holds(self, condition: str) -> bool:
        """Whether a condition is True."""
        return (self.conditions.get(condition) or {}).get("status") == "True"

    @property
    def serving(self) -> bool:
        """Whether requests for its objects are answered at all."""
        return self.holds("Established")

    def same_serving(self, other: Definition) -> bool:
        """Whether two states of one definition serve the same; then nobody's watch has to end."""
        return (
            self.uid == other.uid
            and self.accepted == other.accepted
            and _spec(self.source.tree()) == _spec(other.source.tree())
        )


def _spec(tree: Tree) -> Any:
    return tree.get("spec")


def read(source: CachedObject) -> Definition:
    """The definition in a stored object."""
    tree = source.tree_without(SCHEMA)
    metadata: Tree = tree["metadata"]
    spec: Tree = tree.get("spec") or {}
    status: Tree = tree.get("status") or {}
    group = spec.get("group") or ""
    names = Names.of(spec.get("names"))
    return Definition(
        source,
        metadata["name"],
        metadata.get("uid") or "",
        group,
        spec.get("scope") == "Namespaced",
        names,
        Names.of(status.get("acceptedNames")),
        tuple(_version(group, names.kind, version, spec["versions"]) for version in spec.get("versions") or ()),
        spec.get("conversion") or {},
        bool(spec.get("preserveUnknownFields")),
        {condition["type"]: condition for condition in status.get("conditions") or ()},
        tuple(status.get("storedVersions") or ()),
        bool(metadata.get("deletionTimestamp")),
        FINALIZER in (metadata.get("finalizers") or ()),
        (metadata.get("annotations") or {}).get(APPROVAL, ""),
    )


def _warning(group: str, kind: str, name: str, versions: list[Tree]) -> str:
    """What is said of a deprecated version that has no words of its own."""
    text = f"{group}/{name} {kind} is deprecated"
    own = version_key(name)
    better = [
        other["name"]
        for other in versions
        if other.get("served") and not other.get("deprecated") and version_key(other["name"]) < own
    ]
    return f"{text}; use {group}/{min(better, key=version_key)} {kind}" if better else text


def _version(group: str, kind: str, tree: Tree, versions: list[Tree]) -> Version:
    subresources: Tree = tree.get("subresources") or {}
    scale = subresources.get("scale")
    name = tree.get("name") or ""
    warning = ""
    if tree.get("deprecated"):
        warning = tree.get("deprecationWarning") or _warning(group, kind, name, versions)
    return Version(
        name,
        bool(tree.get("served")),
        bool(tree.get("storage")),
        warning,
        subresources.get("status") is not None,
        None
        if scale is None
        else Scale(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or ""),
        tuple(
            PrinterColumn(
                column.get("name") or "",
                column.get("type") or "",
                column.get("jsonPath") or "",
                column.get("format") or "",
                column.get("description") or "",
                column.get("priority") or 0,
            )
            for column in tree.get("additionalPrinterColumns") or ()
        ),
        tuple(field.get("jsonPath") or "" for field in tree.get("selectableFields") or ()),
    )


def schema_of(source: CachedObject, version: str) -> Tree | None:
    """The OpenAPI schema of a version."""
    for found in (source.tree().get("spec") or {}).get("versions") or ():
        if found.get("name") == version:
            schema: Tree | None = (found.get("schema") or {}).get("openAPIV3Schema")
            return schema
    return None

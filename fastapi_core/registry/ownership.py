"""Field ownership of a resource: what its endpoints can own, and how entries of other versions are understood.

`RESET` lists, where they differ from the rule, the fields a strategy puts back to what they were; nobody owns them
through that endpoint. The rule: the object itself does not change status where status is a subresource, and status
does not change spec.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from fastapi_core.patch.tracking import Tracker, Version, Versions
from fastapi_core.registry.conversion import CONVERTERS, converter
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.schema.normalize import normalize
from fastapi_core.schema.tables import type_for

Paths = tuple[tuple[str, ...], ...]

_METADATA_TOO: Final[Paths] = (("spec",), ("metadata",))

RESET: Final[dict[tuple[str, str, str], Paths]] = {
    ("", "Pod", "ephemeralcontainers"): (),
    ("", "Pod", "resize"): (),
    ("", "Pod", "status"): (("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "status"): _METADATA_TOO,
    ("apiextensions.k8s.io", "CustomResourceDefinition", "status"): _METADATA_TOO,
    ("apiregistration.k8s.io", "APIService", "status"): _METADATA_TOO,
    ("apps", "Deployment", "status"): (("spec",), ("metadata", "labels")),
    ("certificates.k8s.io", "CertificateSigningRequest", ""): (("spec",), ("status",)),
    ("certificates.k8s.io", "CertificateSigningRequest", "approval"): (("spec",), ("status", "certificate")),
    ("certificates.k8s.io", "CertificateSigningRequest", "status"): (("spec",), ("status", "conditions")),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema", "status"): _METADATA_TOO,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", "status"): _METADATA_TOO,
    ("internal.apiserver.k8s.io", "StorageVersion", "status"): _METADATA_TOO,
    ("networking.k8s.io", "ServiceCIDR", "status"): _METADATA_TOO,
    ("resource.k8s.io", "DeviceTaintRule", "status"): _METADATA_TOO,
    ("resource.k8s.io", "ResourceClaim", "status"): _METADATA_TOO,
    ("resource.k8s.io", "ResourcePoolStatusRequest", "status"): _METADATA_TOO,
    ("scheduling.k8s.io", "PodGroup", "status"): _METADATA_TOO,
    ("storage.k8s.io", "VolumeAttachment", "status"): _METADATA_TOO,
    ("storagemigration.k8s.io", "StorageVersionMigration", "status"): _METADATA_TOO,
}


def tracker(definition: ResourceDefinition, subresource: str = "", versions: Versions | None = None) -> Tracker:
    """The tracker of a resource or of one of its subresources; `versions` are the built-in ones unless given."""
    return Tracker(
        definition.type,
        definition.group_version,
        subresource=subresource,
        reset=reset_fields(definition, subresource),
        changing=definition.custom,
        versions=versions or builtin_versions(definition),
    )


def reset_fields(definition: ResourceDefinition, subresource: str) -> Paths:
    """Fields that cannot be changed, and so not be owned, through an endpoint."""
    if definition.custom:
        if subresource == "status":
            return ("spec",), ("metadata",)
        return (("status",),) if "status" in definition.subresources else ()
    known = RESET.get((definition.group, definition.kind, subresource))
    if known is not None:
        return known
    if subresource == "status":
        return (("spec",),)
    return (("status",),) if "status" in definition.subresources else ()


def builtin_versions(definition: ResourceDefinition) -> Versions:
    """Versions of a built-in resource: those of its group the type tables have a type of the kind for, and those of
    other groups it is converted to."""

    def find(name: str) -> Version | None:
        group, _, version = name.rpartition("/")
        related = group == definition.group or (definition.kind, definition.group_version, name) in CONVERTERS
        type_ = type_for(group, version, definition.kind) if related else None
        if type_ is None:
            return None
        other = replace(definition, group=group, version=version, type=type_)
        return Version(type_, _conversion(definition, other), _conversion(other, definition))

    return Versions(find)


def _conversion(source: ResourceDefinition, target: ResourceDefinition) -> Callable[[Tree], Tree]:
    """Conversion of trees an apply has taken things out of: they are made whole before and after."""
    convert = converter(source, target)

    def run(tree: Tree) -> Tree:
        whole = normalize(source.type, tree).tree
        return whole if convert is None else normalize(target.type, convert(whole)).tree

    return run

"""Order of groups and versions in discovery.

Groups go by their priority (higher first, then by name), versions of a group by theirs (higher first, then the most
stable and newest). The numbers are those the reference registers its own groups with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from fastapi_core.meta.patterns import Pattern
from fastapi_core.records import dataclass


@dataclass(frozen=True, slots=True)
class GroupPriority:
    """`group` orders the group among groups, `versions` its versions (those not named have `other`)."""

    group: int
    versions: Mapping[str, int] = field(default_factory=dict)
    other: int = 15


#: Groups that nothing else is known about: built-in ones, and those of custom resources.
DEFAULT = GroupPriority(1000)
CUSTOM = GroupPriority(1000, other=100)

_STABLE = {"v1": 15, "v1beta1": 9, "v1alpha1": 1}

BUILTIN: Mapping[str, GroupPriority] = {
    "": GroupPriority(18000, {"v1": 1}),
    # Not an APIService of its own kind: it stands before everything.
    "apiregistration.k8s.io": GroupPriority(20001),
    "apps": GroupPriority(17800),
    "events.k8s.io": GroupPriority(17750, {"v1": 15, "v1beta1": 5}),
    "authentication.k8s.io": GroupPriority(17700, _STABLE),
    "authorization.k8s.io": GroupPriority(17600),
    "autoscaling": GroupPriority(17500, {"v2": 30, "v1": 15}),
    "batch": GroupPriority(17400, {"v1": 15, "v1beta1": 9}),
    "certificates.k8s.io": GroupPriority(17300, _STABLE),
    "networking.k8s.io": GroupPriority(17200, _STABLE),
    "policy": GroupPriority(17100, {"v1": 15, "v1beta1": 9}),
    "rbac.authorization.k8s.io": GroupPriority(17000),
    "storage.k8s.io": GroupPriority(16800, _STABLE),
    "apiextensions.k8s.io": GroupPriority(16700),
    "admissionregistration.k8s.io": GroupPriority(16700, {"v1": 15, "v1beta1": 12, "v1alpha1": 9}),
    "scheduling.k8s.io": GroupPriority(16600),
    "coordination.k8s.io": GroupPriority(16500, {"v1": 15, "v1beta1": 13, "v1alpha2": 12}),
    "node.k8s.io": GroupPriority(16300),
    "discovery.k8s.io": GroupPriority(16200),
    "resource.k8s.io": GroupPriority(16200, {"v1": 21, "v1beta2": 15, "v1beta1": 9, "v1alpha3": 1}),
    "flowcontrol.apiserver.k8s.io": GroupPriority(16100, {"v1": 21, "v1beta3": 18, "v1beta2": 15}),
    "internal.apiserver.k8s.io": GroupPriority(16000, other=9),
    "storagemigration.k8s.io": GroupPriority(15800, other=9),
}

_VERSION = Pattern(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_STAGES = {None: 0, "beta": 1, "alpha": 2}

VersionKey = tuple[int, int, int, int, str]


def version_key(version: str) -> VersionKey:
    """Sorts versions: v2, v1, v2beta1, v1beta2, v1alpha1, then names that are no Kubernetes versions."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, 0, version)
    major, stage, minor = match.groups()
    return (_STAGES[stage], -int(major), -int(minor or 0), 0, version)


def sorted_versions(versions: Mapping[str, bool], priority: GroupPriority) -> list[str]:
    """Versions of a group in order; the value says whether the version comes from custom resources only."""

    def key(version: str) -> tuple[int, VersionKey]:
        other = CUSTOM.other if versions[version] else priority.other
        return -priority.versions.get(version, other), version_key(version)

    return sorted(versions, key=key)

"""Members that keep their first value, kind by kind."""

from __future__ import annotations

from typing import Any

from fastapi_core.apis.strategies.basics import Tree, Validate, immutable
from fastapi_core.errors import FieldError

_STATEFUL_FREE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_STATEFUL_TEXT = (
    "updates to statefulset spec for fields other than "
    + ", ".join(f"'{name}'" for name in _STATEFUL_FREE[:-1])
    + f" and '{_STATEFUL_FREE[-1]}' are forbidden"
)
_CLAIM_TEXT = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def validate_role_reference(new: Tree, old: Tree | None) -> list[FieldError]:
    """A binding to another role is another binding; the error prints the reference's own struct."""
    if old is None or new.get("roleRef") == old.get("roleRef"):
        return []
    reference: dict[str, Any] = new.get("roleRef") or {}
    members = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
    shown = {theirs: reference.get(ours) or "" for theirs, ours in members}
    return [FieldError("Invalid value", "roleRef", "cannot change roleRef", shown)]


def validate_stateful_set(new: Tree, old: Tree | None) -> list[FieldError]:
    if old is None or _without(new, _STATEFUL_FREE) == _without(old, _STATEFUL_FREE):
        return []
    return [FieldError("Forbidden", "spec", _STATEFUL_TEXT)]


def _without(tree: Tree, names: tuple[str, ...]) -> Tree:
    return {name: value for name, value in (tree.get("spec") or {}).items() if name not in names and value is not None}


def validate_claim(new: Tree, old: Tree | None) -> list[FieldError]:
    """A binder may fill in the volume, an admin the class; size and attributes may change."""
    if old is None:
        return []
    before = _without(old, ("volumeAttributesClassName",))
    after = _without(new, ("volumeAttributesClassName",))
    for name in ("volumeName", "storageClassName"):
        if not before.get(name) and after.get(name):
            before[name] = after[name]
    for spec in (before, after):
        spec["resources"] = {k: v for k, v in (spec.get("resources") or {}).items() if k != "requests"}
    return [] if before == after else [FieldError("Forbidden", "spec", _CLAIM_TEXT)]


def validate_priority_class(new: Tree, old: Tree | None) -> list[FieldError]:
    errors = []
    if old is not None and (new.get("value") or 0) != (old.get("value") or 0):
        errors.append(FieldError("Forbidden", "value", "may not be changed in an update."))
    return errors + immutable("preemptionPolicy")(new, old)


def validate_attributes_class(new: Tree, old: Tree | None) -> list[FieldError]:
    errors = []
    for member, name in (("driverName", "driverName"), ("parameters", "parameters")):
        if old is not None and new.get(member) != old.get(member):
            errors.append(FieldError("Forbidden", member, f"updates to {name} are forbidden."))
    return errors


def validate_job(new: Tree, old: Tree | None) -> list[FieldError]:
    """An indexed job may be scaled by changing completions and parallelism together; a suspended one be redirected."""
    if old is None:
        return []
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    names = ["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    if not before.get("suspend"):
        names.insert(1, "template")
    elastic = before.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    if not elastic:
        names.insert(0, "completions")
    return immutable(*(f"spec.{name}" for name in names))(new, old)


FROZEN: dict[tuple[str, str], Validate] = {
    ("", "PersistentVolumeClaim"): validate_claim,
    ("", "ResourceQuota"): immutable("spec.scopes"),
    ("apps", "ControllerRevision"): immutable("data"),
    ("apps", "DaemonSet"): immutable("spec.selector"),
    ("apps", "Deployment"): immutable("spec.selector"),
    ("apps", "ReplicaSet"): immutable("spec.selector"),
    ("apps", "StatefulSet"): validate_stateful_set,
    ("batch", "Job"): validate_job,
    ("discovery.k8s.io", "EndpointSlice"): immutable("addressType"),
    ("networking.k8s.io", "IngressClass"): immutable("spec.controller"),
    ("node.k8s.io", "RuntimeClass"): immutable("handler"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): validate_role_reference,
    ("rbac.authorization.k8s.io", "RoleBinding"): validate_role_reference,
    ("resource.k8s.io", "ResourceClaim"): immutable("spec"),
    ("resource.k8s.io", "ResourceSlice"): immutable("spec.pool.name", "spec.driver", "spec.nodeName"),
    ("scheduling.k8s.io", "PriorityClass"): validate_priority_class,
    ("storage.k8s.io", "CSIStorageCapacity"): immutable("nodeTopology", "storageClassName"),
    ("storage.k8s.io", "StorageClass"): immutable("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
    ("storage.k8s.io", "VolumeAttachment"): immutable("spec"),
    ("storage.k8s.io", "VolumeAttributesClass"): validate_attributes_class,
}

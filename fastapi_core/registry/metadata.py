"""Validation of `metadata`, the same for every kind but for the format of the name.

Texts and order are the reference's. On update its generic layer and the kind's own validation both check metadata, so
an error stands in `details.causes` once for each: `_PASSES` says what the kind's own looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from fastapi_core.errors import APIError, FieldError, go_quote, invalid
from fastapi_core.meta import names
from fastapi_core.registry.definition import ResourceDefinition, Tree

NameCheck = Callable[[str], list[str]]

# The same few keys and values come with nearly every object.
_label_key = lru_cache(maxsize=4096)(names.label_key)
_label_value = lru_cache(maxsize=4096)(names.label_value)
_annotation_key = lru_cache(maxsize=4096)(names.annotation_key)
_namespace_name = lru_cache(maxsize=4096)(names.dns1123_label)

ANNOTATIONS_LIMIT = 256 * 1024
MANAGER_LIMIT = 128
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
STANDARD_FINALIZERS = frozenset({"kubernetes", ORPHAN, FOREGROUND})

_NAME_CHECKS: dict[tuple[str, str], NameCheck] = {
    ("", "Event"): names.path_segment,
    ("", "Namespace"): names.dns1123_label,
    ("", "ReplicationController"): lambda name: names.dns1123_subdomain(name, "bytes"),
    ("", "Service"): names.dns1123_label,
    ("rbac.authorization.k8s.io", "Role"): names.path_segment,
    ("rbac.authorization.k8s.io", "ClusterRole"): names.path_segment,
    ("rbac.authorization.k8s.io", "RoleBinding"): names.path_segment,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): names.path_segment,
    ("apps", "StatefulSet"): names.dns1123_label,
    ("policy", "PodDisruptionBudget"): names.path_segment,
    ("networking.k8s.io", "IPAddress"): names.ip_address,
    ("resource.k8s.io", "DeviceClass"): lambda name: names.dns1123_subdomain(name, "bytes"),
    ("certificates.k8s.io", "CertificateSigningRequest"): names.path_segment,
    ("apiregistration.k8s.io", "APIService"): names.path_segment,
}
#: Groups and kinds whose validation does not ask finalizers to be qualified.
_PLAIN_FINALIZERS = frozenset(
    {
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        ("", "Event"),
        ("coordination.k8s.io", "Lease"),
        ("node.k8s.io", "RuntimeClass"),
        ("policy", "PodDisruptionBudget"),
    }
)
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_IMMUTABLE_TEXTS = frozenset({"name", "namespace", "uid"})


#: How often a kind's own validation of an update judges metadata as an object's, and as the next state of another.
_PASSES: dict[str, tuple[int, int]] = {
    **dict.fromkeys(
        (
            "APIService", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "ConfigMap",
            "ControllerRevision", "CSIStorageCapacity", "DeviceClass", "Endpoints", "Ingress", "IngressClass",
            "IPAddress", "Job", "Namespace", "Node", "PersistentVolumeClaim", "Pod", "ResourceClaim",
            "ResourceClaimTemplate", "Role", "RoleBinding", "RuntimeClass", "Secret", "ServiceAccount", "StorageClass",
            "VolumeAttributesClass",
        ),
        (1, 1),
    ),
    **dict.fromkeys(
        (
            "CSINode", "EndpointSlice", "FlowSchema", "LimitRange", "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "PriorityLevelConfiguration",
            "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
            "VolumeAttachment",
        ),
        (1, 0),
    ),
    "PersistentVolume": (2, 0),
    "PodDisruptionBudget": (0, 0),
}  # fmt: skip
#: Kinds that judge metadata as an object's before they judge its change.
_OBJECT_FIRST = frozenset(
    {
        "CSIStorageCapacity", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "DeviceClass",
        "IPAddress", "Job", "Node", "ResourceClaim", "ResourceClaimTemplate", "Role", "RoleBinding", "StorageClass",
    }
)  # fmt: skip
_STATUS_PASSES = {"CertificateSigningRequest": (1, 1), "CronJob": (0, 0), "PodDisruptionBudget": (0, 0)}


def _passes(definition: ResourceDefinition, subresource: bool) -> tuple[int, int]:
    if definition.custom:
        return 0, 1
    if subresource:
        return _STATUS_PASSES.get(definition.kind, (0, 1))
    if definition.kind == "Event" and not definition.group:
        return 0, 0
    return _PASSES.get(definition.kind, (0, 1))


def _own_check(definition: ResourceDefinition) -> NameCheck | None:
    """The format of names that a kind's own validation of an update asks for; None: as everybody's."""
    check = name_check(definition)
    return None if check is names.path_segment or definition.kind == "DeviceClass" else check


_VOLATILE = {"resourceVersion": "", "managedFields": None}


def name_check(definition: ResourceDefinition) -> NameCheck:
    """The format of a kind's names."""
    if definition.custom:
        return names.dns1123_subdomain
    return _NAME_CHECKS.get((definition.group, definition.kind), names.dns1123_subdomain)


def _invalid(field: str, value: Any, texts: Iterable[str]) -> list[FieldError]:
    return [FieldError("Invalid value", field, text, value) for text in texts]


def _names(metadata: Tree, namespaced: bool, check: NameCheck) -> list[FieldError]:
    errors = []
    prefix = metadata.get("generateName")
    if prefix:
        errors += _invalid("metadata.generateName", prefix, _prefix_texts(check, prefix))
    name = metadata.get("name")
    if name:
        problems = check(name)
        if problems:
            errors += _invalid("metadata.name", name, problems)
    else:
        errors.append(FieldError("Required value", "metadata.name", "name or generateName is required"))
    namespace = metadata.get("namespace") or ""
    if not namespaced:
        if namespace:
            errors.append(FieldError("Forbidden", "metadata.namespace", "not allowed on this type"))
    elif not namespace:
        errors.append(FieldError("Required value", "metadata.namespace"))
    else:
        problems = _namespace_name(namespace)
        if problems:
            errors += _invalid("metadata.namespace", namespace, problems)
    return errors


def _prefix_texts(check: NameCheck, prefix: str) -> list[str]:
    """A generateName may end in a dash, and a path segment's may be a dot."""
    if check is names.path_segment:
        return [f"may not contain '{mark}'" for mark in "/%" if mark in prefix]
    return check(names.mask_trailing_dash(prefix))


def validate_labels(labels: dict[str, str] | None, field: str = "metadata.labels") -> list[FieldError]:
    """Keys are qualified names, values at most 63 bytes of name characters."""
    errors: list[FieldError] = []
    for key, value in (labels or {}).items():
        problems = _label_key(key)
        if problems:
            errors += _invalid(field, key, problems)
        problems = _label_value(value)
        if problems:
            errors += _invalid(field, value, problems)
    return errors


def validate_annotations(annotations: dict[str, str] | None, field: str = "metadata.annotations") -> list[FieldError]:
    """Keys are qualified names, in any case; all together at most 256 KiB."""
    if not annotations:
        return []
    errors = []
    total = 0
    for key, value in annotations.items():
        problems = _annotation_key(key)
        if problems:
            errors += _invalid(field, key, problems)
        total += len(key) + len(value)
    # No character takes more than four bytes: most annotations need not be encoded to be known to be small.
    if total * 4 > ANNOTATIONS_LIMIT:
        total = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if total > ANNOTATIONS_LIMIT:
        errors.append(FieldError("Too long", field, f"may not be more than {ANNOTATIONS_LIMIT} bytes"))
    return errors


def _group_version(api_version: str) -> tuple[str, str]:
    """Group and version; both empty when it is not one."""
    if api_version.count("/") > 1:
        return "", ""
    group, _, version = api_version.rpartition("/")
    return group, version


def _owner(owner: Tree, field: str) -> list[FieldError]:
    errors = []
    group, version = _group_version(owner.get("apiVersion") or "")
    if not version:
        errors += _invalid(f"{field}.apiVersion", owner.get("apiVersion") or "", ["version must not be empty"])
    for member in ("kind", "name", "uid"):
        if not owner.get(member):
            errors.append(FieldError("Invalid value", f"{field}.{member}", "must not be empty", ""))
    if (group, version, owner.get("kind")) == ("", "v1", "Event"):
        errors.append(FieldError("Invalid value", field, "/v1, Kind=Event is disallowed from being an owner", owner))
    return errors


def validate_owner_references(owners: list[Tree] | None) -> list[FieldError]:
    """Each names its owner completely, at most one is the controller, core Events own nothing."""
    if not owners:
        return []
    field = "metadata.ownerReferences"
    errors = []
    controller = ""
    for owner in owners:
        errors += _owner(owner, field)
        if owner.get("controller"):
            text = f"{owner.get('kind') or ''}/{owner.get('name') or ''}"
            if controller:
                detail = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {text}"
                )
                errors.append(FieldError("Invalid value", field, detail, owners))
            else:
                controller = text
    return errors


def _finalizers(finalizers: list[str]) -> list[FieldError]:
    field = "metadata.finalizers"
    errors = []
    for finalizer in finalizers:
        errors += _invalid(field, finalizer, names.qualified_name(finalizer))
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        detail = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        errors.append(FieldError("Invalid value", field, detail, finalizers))
    return errors


def qualified_finalizer(finalizer: str, field: str) -> list[FieldError]:
    """A finalizer without a domain must be one of the standard ones."""
    if "/" in finalizer or finalizer in STANDARD_FINALIZERS:
        return []
    return _invalid(field, finalizer, ["name is neither a standard finalizer name nor is it fully qualified"])


def _qualified_finalizers(metadata: Tree, definition: ResourceDefinition) -> list[FieldError]:
    finalizers = metadata.get("finalizers")
    if (
        not finalizers
        or definition.custom
        or definition.group in _PLAIN_FINALIZERS
        or (definition.group, definition.kind) in _PLAIN_FINALIZERS
    ):
        return []
    errors = []
    for index, finalizer in enumerate(finalizers):
        errors += qualified_finalizer(finalizer, f"metadata.finalizers[{index}]")
    return errors


def _managers(entries: list[Tree] | None) -> list[FieldError]:
    """Managers of recorded fields have short names."""
    for entry in entries or ():
        if len(entry.get("manager") or "") * 4 > MANAGER_LIMIT:
            break
    else:
        return []
    assert entries is not None
    text = f"may not be more than {MANAGER_LIMIT} bytes"
    return [
        FieldError("Too long", f"metadata.managedFields[{index}].manager", text)
        for index, entry in enumerate(entries)
        if len((entry.get("manager") or "").encode()) > MANAGER_LIMIT
    ]


def _object(
    metadata: Tree, namespaced: bool, check: NameCheck, attached: list[FieldError] | None = None
) -> list[FieldError]:
    """What holds for the metadata of any object on its own; `attached` is what `_attached` says, where it is known."""
    errors = _names(metadata, namespaced, check)
    generation = metadata.get("generation") or 0
    if generation < 0:
        text = "must be greater than or equal to 0"
        errors.append(FieldError("Invalid value", "metadata.generation", text, generation))
    errors += _attached(metadata) if attached is None else attached
    if metadata.get("finalizers"):
        errors += _finalizers(metadata["finalizers"])
    return errors + _managers(metadata.get("managedFields"))


def _attached(metadata: Tree) -> list[FieldError]:
    """Labels, annotations and owners."""
    labels, annotations, owners = map(metadata.get, ("labels", "annotations", "ownerReferences"))
    errors = validate_labels(labels) if labels else []
    if annotations:
        errors += validate_annotations(annotations)
    return errors + validate_owner_references(owners) if owners else errors


def _change(metadata: Tree, old: Tree, attached: list[FieldError]) -> list[FieldError]:
    """What holds between the metadata of an object and of its next state; `attached` is what `_attached` says."""
    errors = []
    if old.get("deletionTimestamp"):
        before = old.get("finalizers") or ()
        added = sorted({f for f in metadata.get("finalizers") or () if f not in before})
        if added:
            listed = ", ".join(go_quote(finalizer) for finalizer in added)
            detail = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}"
            )
            errors.append(FieldError("Forbidden", "metadata.finalizers", detail))
    generation = metadata.get("generation") or 0
    if generation < (old.get("generation") or 0):
        errors.append(FieldError("Invalid value", "metadata.generation", "must not be decremented", generation))
    for member in _IMMUTABLE:
        new_value, old_value = metadata.get(member), old.get(member)
        if (new_value or old_value) and new_value != old_value:
            shown = new_value or "" if member in _IMMUTABLE_TEXTS else new_value
            errors.append(FieldError("Invalid value", f"metadata.{member}", "field is immutable", shown))
    errors += attached
    return errors + _managers(metadata.get("managedFields"))


def validate_embedded(metadata: Tree) -> list[FieldError]:
    """The metadata of an object inside of another, of any kind and scope; a name is not needed."""
    named = metadata if metadata.get("name") else {**metadata, "name": "unnamed"}
    return _object(named, bool(metadata.get("namespace")), names.path_segment)


def validate_metadata(
    tree: Tree, old: Tree | None, *, definition: ResourceDefinition, subresource: bool = False
) -> list[FieldError]:
    """Every error of an object's metadata; `old` is the state before, None on create.

    On update the store has already kept what a client cannot change by leaving it out (uid, stamps, generation).
    """
    metadata: Tree = tree.get("metadata") or {}
    if old is None:
        return _object(metadata, definition.namespaced, name_check(definition)) + _qualified_finalizers(
            metadata, definition
        )
    before: Tree = old.get("metadata") or {}
    if _unchanged(metadata, before) and not _managers(metadata.get("managedFields")):
        return []
    attached = _attached(metadata)
    whole = _object(metadata, definition.namespaced, names.path_segment, attached)
    change = _change(metadata, before, attached)
    if not whole and not change and not metadata.get("finalizers") and not metadata.get("generateName"):
        return []
    qualified = _qualified_finalizers(metadata, definition)
    objects, updates = _passes(definition, subresource)
    own = _object(metadata, definition.namespaced, check, attached) if (check := _own_check(definition)) else whole
    passes = [(change + qualified) * updates, (own + qualified) * objects]
    first, second = reversed(passes) if definition.kind in _OBJECT_FIRST else passes
    return whole + change + first + second


def _unchanged(metadata: Tree, before: Tree) -> bool:
    """Nothing differs but what every write changes: most updates leave metadata alone, and it was checked when stored."""
    return {**metadata, **_VOLATILE} == {**before, **_VOLATILE}


def version_required(definition: ResourceDefinition, name: str) -> APIError:
    """The 422 of an update without resourceVersion where the kind demands one; it names the resource, not the kind."""
    error = FieldError("Invalid value", "metadata.resourceVersion", "must be specified for an update", 0)
    return invalid(definition.plural, definition.group, name, [error])


def dedup_owner_references(tree: Tree, *, admission: bool = False) -> list[str]:
    """Keep the first of equal owner references; returns the warning for the client, if there were any.

    `admission` tells that mutating admission brought them in.
    """
    metadata: Tree = tree.get("metadata") or {}
    owners: list[Tree] = metadata.get("ownerReferences") or []
    kept: list[Tree] = []
    seen: set[str] = set()
    repeated: list[str] = []
    for owner in owners:
        # As text, since there may be as many as a body holds.
        shape = repr(sorted(owner.items()))
        if shape in seen:
            repeated.append(owner.get("uid") or "")
        else:
            seen.add(shape)
            kept.append(owner)
    if not repeated:
        return []
    metadata["ownerReferences"] = kept
    uids = ", ".join(repeated)
    if admission:
        return [
            ".metadata.ownerReferences contains duplicate entries after mutating admission happens; "
            "API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; "
            f"please fix your requests; duplicate UID(s) observed: {uids}"
        ]
    return [
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may "
        f"reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
    ]

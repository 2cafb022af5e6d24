"""Persistent volumes and claims, and the kinds of storage.k8s.io."""

from __future__ import annotations

import posixpath
from typing import Any, Final

from fastapi_core.apis.validation import claims, formats, quantities
from fastapi_core.apis.validation.differences import difference
from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.persistent_sources import SOURCE_NAMES, volume_source
from fastapi_core.apis.validation.quantities import amount
from fastapi_core.apis.validation.rules import (
    IMMUTABLE,
    Report,
    Tree,
    choice,
    text,
)
from fastapi_core.apis.validation.scheduling import node_selector

_RECLAIM = choice("persistentVolumeReclaimPolicy", "Delete", "Recycle", "Retain")
_CLASS = text("storageClassName", formats.subdomain)


def _number(text_: str) -> Any:
    return int(text_) if text_.lstrip("-").isdigit() else text_


def _capacity(capacity: dict[str, str] | None, path: str, report: Report) -> None:
    if not capacity:
        report.required(path)
    if list(capacity or ()) != ["storage"]:
        report.unsupported(path, capacity or None, ("storage",))
    for name, value in (capacity or {}).items():
        if amount(value).nanos < 0:
            report.invalid(f"{path}[{name}]", _number(value), "must be a valid resource quantity")
        if amount(value).nanos <= 0:
            report.invalid(f"{path}[{name}]", value, "must be greater than zero")


def _root(path: str) -> bool:
    """Whether a path is that of everything."""
    return path.startswith("/") and posixpath.normpath("/" + path.lstrip("/")) == "/"


def _affinity(affinity: Tree, path: str, report: Report) -> None:
    needed = affinity.get("required")
    if needed is None:
        report.required(path + ".required", "must specify required node constraints")
    else:
        node_selector(needed, path + ".required", report)


_INLINE: Final = "in the context of inline volumes"
_INLINE_ONLY: Final = (
    ("persistentVolumeReclaimPolicy", "Retain", "may only be Retain"),
    ("volumeMode", "Filesystem", "may not specify volumeMode other than Filesystem"),
)


def _inline_only(spec: Tree, name: str, path: str, report: Report) -> None:
    """A volume without an object of its own has one value for what others choose."""
    for member, only, detail in _INLINE_ONLY:
        if member == name and spec.get(member) not in (None, only) and (spec[member] or member == "volumeMode"):
            report.forbidden(f"{path}.{member}", f"{detail} {_INLINE}")


def volume_spec(spec: Tree, path: str, report: Report, *, inline: bool = False) -> None:
    if inline:
        for member in ("claimRef", "capacity"):
            if spec.get(member) or (member == "claimRef" and spec.get(member) is not None):
                report.forbidden(f"{path}.{member}", f"may not be specified {_INLINE}")
        if spec.get("csi") is None:
            report.required(path + ".csi", f"has to be specified {_INLINE}")
    modes = spec.get("accessModes")
    if not modes:
        report.required(path + ".accessModes")
    else:
        claims.access_modes(modes, path + ".accessModes", report)
    if inline:
        _inline_only(spec, "persistentVolumeReclaimPolicy", path, report)
        if spec.get("nodeAffinity") is not None:
            report.forbidden(path + ".nodeAffinity", f"may not be specified {_INLINE}")
    else:
        _capacity(spec.get("capacity"), path + ".capacity", report)
        _RECLAIM(spec, path, report)
        if spec.get("nodeAffinity") is not None:
            _affinity(spec["nodeAffinity"], path + ".nodeAffinity", report)
    report.facts["node affinity"] = spec.get("nodeAffinity") is not None
    volume_source(spec, path, report)
    host = spec.get("hostPath")
    if host is not None and _root(host.get("path") or "") and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        text_ = "may not be 'recycle' for a hostPath mount of '/'"
        report.forbidden(path + ".persistentVolumeReclaimPolicy", text_)
    if inline:
        if spec.get("storageClassName"):
            report.forbidden(path + ".storageClassName", f"may not be specified {_INLINE}")
        _inline_only(spec, "volumeMode", path, report)
    else:
        _CLASS(spec, path, report)
        claims.VOLUME_MODE(spec, path, report)
    _attributes_class(spec, path, report)


def _attributes_class(spec: Tree, path: str, report: Report) -> None:
    name = spec.get("volumeAttributesClassName")
    if name is not None:
        at = path + ".volumeAttributesClassName"
        if not name:
            report.required(at, "an empty string is disallowed")
        else:
            report.each_invalid(at, name, formats.subdomain(name))
        if spec.get("csi") is None:
            report.required(path + ".csi", "has to be specified when using volumeAttributesClassName")


def volume(tree: Tree, path: str, report: Report) -> None:
    report.facts["volume name"] = (tree.get("metadata") or {}).get("name") or ""
    volume_spec(tree.get("spec") or {}, ".spec", report)


_BETA_LABELS: Final = {
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}


def _current(value: Any) -> Any:
    """Node affinity with labels of today."""
    if isinstance(value, list):
        return [_current(item) for item in value]
    if isinstance(value, dict):
        return {
            name: _BETA_LABELS.get(item, item) if name == "key" and isinstance(item, str) else _current(item)
            for name, item in value.items()
        }
    return value


def _sources(spec: Tree, before: Tree) -> Tree:
    """Where a volume lives does not change, but the secret to expand it may be added."""
    csi = spec.get("csi")
    if csi is not None and csi.get("controllerExpandSecretRef") is not None:
        held = before.get("csi")
        if held is not None and held.get("controllerExpandSecretRef") is None:
            rest = {name: value for name, value in csi.items() if name != "controllerExpandSecretRef"}
            return {**spec, "csi": rest}
    return spec


def volume_update(tree: Tree, path: str, report: Report) -> None:
    volume(tree, path, report)
    spec: Tree = tree.get("spec") or {}
    before: Tree = (report.old or {}).get("spec") or {}
    if spec == before:
        return
    # The reference judges a changed volume twice.
    volume(tree, path, report)
    sources = _sources(spec, before)
    if any(sources.get(name) != before.get(name) for name in SOURCE_NAMES):
        lines = difference("core/v1.PersistentVolumeSpec", before, sources, SOURCE_NAMES)
        text_ = f"spec.persistentvolumesource is immutable after creation\n{lines}"
        report.forbidden(".spec.persistentvolumesource", text_)
    if spec.get("volumeMode") != before.get("volumeMode"):
        report.invalid(".volumeMode", spec.get("volumeMode"), IMMUTABLE)
    old, new = before.get("nodeAffinity"), spec.get("nodeAffinity")
    if old is not None and old != new and (new is None or _current(old) != new):
        told = None if new is None else shown("core/v1.VolumeNodeAffinity", new)
        report.invalid(".nodeAffinity", told, "field is immutable, except for updating from beta label to GA")
    if before.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
        text_ = "update from non-nil value to nil is forbidden"
        report.forbidden(".spec.volumeAttributesClassName", text_)


# Claims

CLAIM_FROZEN: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def claim(tree: Tree, path: str, report: Report) -> None:
    claims.claim_spec(tree.get("spec") or {}, ".spec", report)


def _size(spec: Tree) -> str | None:
    return ((spec.get("resources") or {}).get("requests") or {}).get("storage")


def _keep(new: Tree, old: Tree, member: str) -> None:
    if old.get(member) is not None:
        new[member] = old[member]
    else:
        new.pop(member, None)


def _sizes(before: Tree, spec: Tree, status: Tree, report: Report) -> None:
    """A claim grows; a growth that failed may be taken back as far as there is room."""
    new, old = (amount(_size(tree) or "0") for tree in (spec, before))
    held = amount((status.get("capacity") or {}).get("storage") or "0")
    if new < old and new <= held:
        report.forbidden(".spec.resources.requests.storage", "field can not be less than status.capacity")


_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


def _class_moves(tree: Tree, old: Tree) -> tuple[bool, bool]:
    """Whether the class moves from its annotation into the spec, and whether a claim without one gets one."""
    noted, note = (((tree_.get("metadata") or {}).get("annotations") or {}).get(_BETA_CLASS) for tree_ in (old, tree))
    name = (tree.get("spec") or {}).get("storageClassName")
    if (old.get("spec") or {}).get("storageClassName") is not None or name is None:
        return False, False
    return noted is not None and name == noted and note in (None, noted), noted is None or name == noted


def claim_update(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    old: Tree = report.old or {}
    before: Tree = old.get("spec") or {}
    status: Tree = old.get("status") or {}
    noted, note = (((tree_.get("metadata") or {}).get("annotations") or {}).get(_BETA_CLASS) for tree_ in (old, tree))
    if spec == before and noted == note:
        return
    claim(tree, path, report)
    after, earlier = ({k: v for k, v in spec_.items() if v is not None} for spec_ in (spec, before))
    if not before.get("volumeName"):
        _keep(earlier, after, "volumeName")
    moved, given = _class_moves(tree, old)
    if not moved and noted != note:
        report.invalid(f".metadata.annotations[{_BETA_CLASS}]", note or "", IMMUTABLE)
    if moved or given:
        del after["storageClassName"]
    if status.get("phase") == "Bound":
        _keep(after, earlier, "volumeAttributesClassName")
        resources: Tree = after.get("resources") or {}
        if resources.get("requests"):
            requests = {**resources["requests"], "storage": _size(before) or "0"}
            after["resources"] = {**resources, "requests": requests}
    if after != earlier:
        lines = difference("core/v1.PersistentVolumeClaimSpec", earlier, after)
        report.forbidden(".spec", f"{CLAIM_FROZEN}\n{lines}")
    _sizes(before, spec, status, report)
    if spec.get("volumeMode") != before.get("volumeMode"):
        report.invalid(".volumeMode", spec.get("volumeMode"), IMMUTABLE)
    name = spec.get("volumeAttributesClassName")
    removed = not name and name != before.get("volumeAttributesClassName")
    if removed and status.get("currentVolumeAttributesClassName") is not None:
        what = "nil" if name is None else "empty string"
        text_ = f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
        report.forbidden(".spec.volumeAttributesClassName", text_)


_RESIZES: Final = (
    "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible",
    "NodeResizePending",
)  # fmt: skip


def _claim_resource(name: str, path: str, report: Report) -> bool:
    """Claims are of storage, or of what has a domain of its own."""
    problems = formats.qualified(name)
    report.each_invalid(path, name, problems)
    if not problems and quantities.native(name) and name != "storage":
        report.unsupported(path, name, ("storage",))
        return False
    return not problems


def _resource_amount(value: str, path: str, report: Report) -> bool:
    if amount(value).nanos >= 0:
        return True
    report.invalid(path, _number(value), "must be a valid resource quantity")
    return False


def claim_status(tree: Tree, path: str, report: Report) -> None:
    status: Tree = tree.get("status") or {}
    for name, value in (status.get("capacity") or {}).items():
        _resource_amount(value, f".status.capacity[{name}]", report)
    for name, state in (status.get("allocatedResourceStatuses") or {}).items():
        _claim_resource(name, ".status.allocatedResourceStatuses", report)
        if state not in _RESIZES:
            report.unsupported(".status.allocatedResourceStatuses", name, _RESIZES)
    for name, value in (status.get("allocatedResources") or {}).items():
        at = f".status.allocatedResources[{name}]"
        if _claim_resource(name, ".status.allocatedResources", report) and _resource_amount(value, at, report):
            quantities.quantity("storage", value, at, report)

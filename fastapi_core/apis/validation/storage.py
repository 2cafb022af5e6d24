"""Persistent volumes and claims, and the kinds of storage.k8s.io."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.apis.validation import claims, formats, volumes
from fastapi_core.apis.validation.labelling import csi_driver
from fastapi_core.apis.validation.quantities import amount
from fastapi_core.apis.validation.rules import (
    IMMUTABLE,
    Report,
    Rule,
    Tree,
    choice,
    required,
    struct,
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


def _secret_reference(name: str) -> Rule:
    def rule(tree: Tree, path: str, report: Report) -> None:
        reference = tree.get(name)
        if reference is None:
            return
        for member, check in (("name", formats.subdomain), ("namespace", formats.label)):
            value = reference.get(member)
            if not value:
                report.required(f"{path}.{name}.{member}")
            else:
                report.each_invalid(f"{path}.{name}.{member}", value, check(value))

    return rule


def _csi_name(tree: Tree, path: str, report: Report) -> None:
    csi_driver(tree.get("driver") or "", path + ".driver", report)


_CSI = struct(
    _csi_name,
    required("volumeHandle"),
    _secret_reference("controllerPublishSecretRef"),
    _secret_reference("controllerExpandSecretRef"),
    _secret_reference("nodePublishSecretRef"),
    _secret_reference("nodeExpandSecretRef"),
)


def _local(tree: Tree, path: str, report: Report) -> None:
    target = tree.get("path")
    if not target:
        report.required(path + ".path")
    elif ".." in target.split("/"):
        report.invalid(path + ".path", target, "must not contain '..'")


def _azure_file(tree: Tree, path: str, report: Report) -> None:
    for name in ("secretName", "shareName"):
        if not tree.get(name):
            report.required(f"{path}.{name}")
    if tree.get("secretNamespace") == "":
        report.required(path + ".secretNamespace")


def _gluster(tree: Tree, path: str, report: Report) -> None:
    for name in ("endpoints", "path"):
        if not tree.get(name):
            report.required(f"{path}.{name}")
    namespace = tree.get("endpointsNamespace")
    if namespace is not None:
        report.each_invalid(path + ".endpointsNamespace", namespace, formats.label(namespace))


def _local_needs(tree: Tree, path: str, report: Report) -> None:
    """A volume of one node says which."""
    if not report.facts.get("node affinity"):
        report.required(path.rpartition(".")[0] + ".nodeAffinity", "Local volume requires node affinity")
    _local(tree, path, report)


_SOURCES: Final[tuple[tuple[str, str, str, Rule], ...]] = (
    ("hostPath", "", "", volumes.host_path),
    ("gcePersistentDisk", "persistentDisk", "gcePersistentDisk", volumes.GCE),
    ("awsElasticBlockStore", "", "", volumes.AWS),
    ("glusterfs", "", "", _gluster),
    ("flocker", "", "", volumes.flocker),
    ("nfs", "", "", volumes.nfs),
    ("rbd", "", "", volumes.RBD),
    ("quobyte", "", "", volumes.quobyte),
    ("cephfs", "", "cephFS", volumes.CEPH),
    ("iscsi", "", "", volumes.iscsi),
    ("cinder", "", "", volumes.CINDER),
    ("fc", "", "", volumes.fc),
    ("flexVolume", "", "", volumes.flex),
    ("azureFile", "", "", _azure_file),
    ("vsphereVolume", "", "", volumes.VSPHERE),
    ("photonPersistentDisk", "", "", volumes.PHOTON),
    ("portworxVolume", "", "", volumes.PORTWORX),
    ("azureDisk", "", "", volumes.azure_disk),
    ("scaleIO", "", "", volumes.SCALE_IO),
    ("local", "", "", _local_needs),
    ("storageos", "", "", volumes.storageos_names),
    ("csi", "", "", _CSI),
)
_SOURCE_NAMES: Final = frozenset(name for name, *_ in _SOURCES)


def volume_source(spec: Tree, path: str, report: Report) -> None:
    found = False
    for name, shown, surplus, rule in _SOURCES:
        value = spec.get(name)
        if value is None:
            continue
        if found and name != "flexVolume":
            report.forbidden(f"{path}.{surplus or name}", volumes.MANY)
        else:
            found = True
            rule(value, f"{path}.{shown or name}", report)
    if not found:
        report.required(path, "must specify a volume type")


def _affinity(affinity: Tree, path: str, report: Report) -> None:
    needed = affinity.get("required")
    if needed is None:
        report.required(path + ".required", "must specify required node constraints")
    else:
        node_selector(needed, path + ".required", report)


def volume_spec(spec: Tree, path: str, report: Report) -> None:
    modes = spec.get("accessModes")
    if not modes:
        report.required(path + ".accessModes")
    else:
        claims.access_modes(modes, path + ".accessModes", report)
    _capacity(spec.get("capacity"), path + ".capacity", report)
    _RECLAIM(spec, path, report)
    if spec.get("nodeAffinity") is not None:
        _affinity(spec["nodeAffinity"], path + ".nodeAffinity", report)
    report.facts["node affinity"] = (spec.get("nodeAffinity") or {}).get("required") is not None or bool(
        spec.get("nodeAffinity")
    )
    volume_source(spec, path, report)
    host = spec.get("hostPath")
    if host is not None and host.get("path") == "/" and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        text_ = "may not be 'recycle' for a hostPath mount of '/'"
        report.forbidden(path + ".persistentVolumeReclaimPolicy", text_)
    _CLASS(spec, path, report)
    claims.VOLUME_MODE(spec, path, report)
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


def volume_update(tree: Tree, path: str, report: Report) -> None:
    volume(tree, path, report)
    spec: Tree = tree.get("spec") or {}
    before: Tree = (report.old or {}).get("spec") or {}
    if any(spec.get(name) != before.get(name) for name in _SOURCE_NAMES):
        text_ = "spec.persistentvolumesource is immutable after creation"
        report.forbidden(".spec.persistentvolumesource", text_)
    if spec.get("volumeMode") != before.get("volumeMode"):
        report.invalid(".volumeMode", spec.get("volumeMode"), IMMUTABLE)
    old, new = before.get("nodeAffinity"), spec.get("nodeAffinity")
    if old is not None and old != new and (new is None or _current(old) != new):
        report.invalid(".nodeAffinity", new, "field is immutable, except for updating from beta label to GA")
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


def _without_size(spec: Tree) -> Tree:
    resources = dict(spec.get("resources") or {})
    requests = {name: value for name, value in (resources.get("requests") or {}).items() if name != "storage"}
    resources["requests"] = requests
    out = {name: value for name, value in spec.items() if value is not None}
    out["resources"] = {name: value for name, value in resources.items() if value}
    return out


def claim_update(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    old: Tree = report.old or {}
    before: Tree = old.get("spec") or {}
    if spec == before:
        return
    claim(tree, path, report)
    new_rest, old_rest = dict(spec), dict(before)
    if not before.get("volumeName"):
        old_rest["volumeName"] = spec.get("volumeName")
        if before.get("storageClassName") is None and spec.get("storageClassName"):
            old_rest["storageClassName"] = spec["storageClassName"]
    bound = (old.get("status") or {}).get("phase") == "Bound"
    if bound:
        new_rest.pop("volumeAttributesClassName", None)
        old_rest.pop("volumeAttributesClassName", None)
        new_rest, old_rest = _without_size(new_rest), _without_size(old_rest)
    if {k: v for k, v in new_rest.items() if v is not None} != {k: v for k, v in old_rest.items() if v is not None}:
        report.forbidden(".spec", CLAIM_FROZEN)
    old_size, new_size = _size(before), _size(spec) or "0"
    if old_size and amount(new_size) < amount(old_size):
        held = ((old.get("status") or {}).get("capacity") or {}).get("storage")
        if not bound or held is None or amount(new_size) < amount(held):
            report.forbidden(".spec.resources.requests.storage", "field can not be less than status.capacity")
    if spec.get("volumeMode") != before.get("volumeMode"):
        report.invalid(".volumeMode", spec.get("volumeMode"), IMMUTABLE)
    if bound and spec.get("volumeAttributesClassName") is None and before.get("volumeAttributesClassName") is not None:
        text_ = "update from non-nil value to nil is forbidden"
        report.forbidden(".spec.volumeAttributesClassName", text_)

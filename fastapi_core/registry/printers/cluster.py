"""Rows of nodes, volumes, storage, namespaces, secrets and events."""

from __future__ import annotations

from collections.abc import Callable

from fastapi_core.registry.printers.cells import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    Reader,
    age,
    at,
    condition,
    count,
    filled,
    joined,
    number,
    value,
    wide,
)
from fastapi_core.registry.printers.engine import Age, Cell, Column, Tree, epoch, since
from fastapi_core.registry.printers.network import default_name

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ACCESS = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def node_status(tree: Tree) -> Cell:
    ready = condition(tree, "Ready")
    text = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return text + ",SchedulingDisabled" if at(tree, "spec.unschedulable") else text


def node_roles(tree: Tree) -> Cell:
    roles = set()
    for key, val in (at(tree, "metadata.labels") or {}).items():
        if key.startswith(_ROLE_PREFIX):
            roles.add(key.removeprefix(_ROLE_PREFIX))
        elif key == "kubernetes.io/role":
            roles.add(val)
    return ",".join(sorted(roles - {""})) or NONE


def node_address(kind: str) -> Reader:
    def cell(tree: Tree) -> Cell:
        for address in at(tree, "status.addresses") or ():
            if address.get("type") == kind:
                return address.get("address") or ""
        return NONE

    return cell


def node_kernel(tree: Tree) -> Cell:
    info: Tree = at(tree, "status.nodeInfo") or {}
    architecture = info.get("architecture")
    return (info.get("kernelVersion") or UNKNOWN) + (f" ({architecture})" if architecture else "")


def _access_text(modes: list[str] | None) -> str:
    found = set(modes or ())
    return ",".join(short for mode, short in _ACCESS.items() if mode in found)


def volume_status(tree: Tree) -> Cell:
    return "Terminating" if at(tree, "metadata.deletionTimestamp") else at(tree, "status.phase") or ""


def volume_claim(tree: Tree) -> Cell:
    claim = at(tree, "spec.claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def storage_class(tree: Tree) -> Cell:
    """The class, which an old annotation may name instead."""
    annotations = at(tree, "metadata.annotations") or {}
    if _CLASS_ANNOTATION in annotations:
        return annotations[_CLASS_ANNOTATION]  # type: ignore[no-any-return]
    return at(tree, "spec.storageClassName") or ""


def _bound(read: Callable[[Tree], Cell]) -> Reader:
    """A cell that a claim shows only once it has a volume."""
    return lambda tree: read(tree) if at(tree, "spec.volumeName") else ""


def _storage_size(path: str) -> Reader:
    return lambda tree: str((at(tree, path) or {}).get("storage", "0"))


def first_seen(tree: Tree) -> Cell:
    return since(tree.get("firstTimestamp") or tree.get("eventTime"))


def last_seen(tree: Tree) -> Cell:
    series = tree.get("series")
    if series:
        return since(series.get("lastObservedTime"))
    last = tree.get("lastTimestamp")
    return Age(epoch(last)) if last else first_seen(tree)


def event_object(tree: Tree) -> Cell:
    target: Tree = tree.get("involvedObject") or {}
    kind = (target.get("kind") or "").lower()
    return f"{kind}/{target['name']}" if target.get("name") else kind


def event_source(tree: Tree) -> Cell:
    source: Tree = tree.get("source") or {}
    component = source.get("component") or tree.get("reportingComponent") or ""
    instance = source.get("host") or tree.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


def event_count(tree: Tree) -> Cell:
    series = tree.get("series")
    return (series.get("count") or 0) if series else tree.get("count") or 1


def event_message(tree: Tree) -> Cell:
    return (tree.get("message") or "").strip()


TABLES: dict[str, tuple[Column, ...]] = {
    "Node": (
        NAME,
        Column("Status", node_status),
        Column("Roles", node_roles),
        AGE,
        Column("Version", value("status.nodeInfo.kubeletVersion")),
        wide("Internal-IP", node_address("InternalIP")),
        wide("External-IP", node_address("ExternalIP")),
        wide("OS-Image", filled("status.nodeInfo.osImage", UNKNOWN)),
        wide("Kernel-Version", node_kernel),
        wide("Container-Runtime", filled("status.nodeInfo.containerRuntimeVersion", UNKNOWN)),
    ),
    "Event": (
        Column("Last Seen", last_seen),
        Column("Type", value("type")),
        Column("Reason", value("reason")),
        Column("Object", event_object),
        wide("Subobject", value("involvedObject.fieldPath")),
        wide("Source", event_source),
        Column("Message", event_message),
        wide("First Seen", first_seen),
        wide("Count", event_count),
        Column("Name", value("metadata.name"), format="name", priority=1, description=NAME.description),
    ),
    "Namespace": (NAME, Column("Status", value("status.phase")), AGE),
    "Secret": (NAME, Column("Type", value("type")), Column("Data", count("data")), AGE),
    "ConfigMap": (NAME, Column("Data", count("data", "binaryData")), AGE),
    "ServiceAccount": (NAME, AGE),
    "PersistentVolume": (
        NAME,
        Column("Capacity", _storage_size("spec.capacity")),
        Column("Access Modes", lambda tree: _access_text(at(tree, "spec.accessModes"))),
        Column("Reclaim Policy", value("spec.persistentVolumeReclaimPolicy")),
        Column("Status", volume_status),
        Column("Claim", volume_claim),
        Column("StorageClass", storage_class),
        Column("VolumeAttributesClass", value("spec.volumeAttributesClassName", UNSET)),
        Column("Reason", value("status.reason")),
        AGE,
        wide("VolumeMode", value("spec.volumeMode", UNSET)),
    ),
    "PersistentVolumeClaim": (
        NAME,
        Column("Status", volume_status),
        Column("Volume", value("spec.volumeName")),
        Column("Capacity", _bound(_storage_size("status.capacity"))),
        Column("Access Modes", _bound(lambda tree: _access_text(at(tree, "status.accessModes")))),
        Column("StorageClass", storage_class),
        Column("VolumeAttributesClass", value("spec.volumeAttributesClassName", UNSET)),
        AGE,
        wide("VolumeMode", value("spec.volumeMode", UNSET)),
    ),
    "StorageClass": (
        default_name("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"),
        Column("Provisioner", value("provisioner")),
        Column("ReclaimPolicy", value("reclaimPolicy", "Delete")),
        Column("VolumeBindingMode", value("volumeBindingMode", "Immediate")),
        Column("AllowVolumeExpansion", value("allowVolumeExpansion", False)),
        AGE,
    ),
    "VolumeAttributesClass": (NAME, Column("DriverName", value("driverName")), AGE),
    "VolumeAttachment": (
        NAME,
        Column("Attacher", value("spec.attacher"), format="name"),
        Column("PV", value("spec.source.persistentVolumeName")),
        Column("Node", value("spec.nodeName")),
        Column("Attached", value("status.attached", False), "boolean"),
        AGE,
    ),
    "CSINode": (NAME, Column("Drivers", count("spec.drivers"), "integer"), AGE),
    "CSIDriver": (
        NAME,
        Column("AttachRequired", value("spec.attachRequired", True), "boolean"),
        Column("PodInfoOnMount", value("spec.podInfoOnMount", False), "boolean"),
        Column("StorageCapacity", value("spec.storageCapacity", False), "boolean"),
        Column("TokenRequests", joined("spec.tokenRequests", "audience", empty=UNSET)),
        Column("RequiresRepublish", value("spec.requiresRepublish", False), "boolean"),
        Column("Modes", joined("spec.volumeLifecycleModes", empty=NONE)),
        AGE,
    ),
    "RuntimeClass": (NAME, Column("Handler", value("handler")), AGE),
    "PriorityClass": (
        NAME,
        Column("Value", number("value"), "integer"),
        Column("Global-Default", value("globalDefault", False), "boolean"),
        AGE,
        Column("PreemptionPolicy", value("preemptionPolicy")),
    ),
    "Lease": (NAME, Column("Holder", value("spec.holderIdentity")), AGE),
    "LeaseCandidate": (
        NAME,
        Column("LeaseName", value("spec.leaseName")),
        Column("BinaryVersion", value("spec.binaryVersion")),
        Column("EmulationVersion", value("spec.emulationVersion")),
        AGE,
    ),
    "DeviceTaintRule": (
        NAME,
        Column("Key", value("spec.taint.key")),
        Column("Value", value("spec.taint.value")),
        Column("Effect", value("spec.taint.effect")),
        Column("TimeAdded", age("spec.taint.timeAdded", "")),
        AGE,
    ),
}

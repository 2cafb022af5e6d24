"""The kinds of storage.k8s.io: classes, drivers, attachments."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.labelling import csi_driver, selector
from fastapi_core.apis.validation.quantities import amount
from fastapi_core.apis.validation.rules import (
    CHECK,
    IMMUTABLE,
    INT32_MAX,
    NOT_NEGATIVE,
    Report,
    Tree,
    between,
    choice,
    immutable,
    text,
)
from fastapi_core.apis.validation.storage import volume_spec


def _provisioner(name: str, path: str, report: Report) -> None:
    if not name:
        report.required(path)
    else:
        report.each_invalid(path, name.lower(), formats.qualified(name.lower()))


def _parameters(parameters: dict[str, str] | None, path: str, report: Report, *, needed: bool = False) -> None:
    if not parameters:
        if needed:
            report.required(path, "must contain at least one key/value pair")
        return
    if len(parameters) > 512:
        report.too_many(path, len(parameters), 512)
        return
    total = 0
    for key, value in parameters.items():
        if not key:
            report.invalid(path, key, "field can not be empty.")
        total += len(key.encode()) + len(value.encode())
    if total > 256 * 1024:
        report.too_long(path, 256 * 1024)


_STORAGE_RECLAIM = choice("reclaimPolicy", "Delete", "Retain")
_BINDING: Final = ("Immediate", "WaitForFirstConsumer")


def _topology_term(term: Tree, path: str, report: Report) -> frozenset[Any]:
    """Its errors; and what it says, for comparison with the others."""
    said: dict[str, frozenset[str]] = {}
    for index, item in enumerate(term.get("matchLabelExpressions") or ()):
        at = f"{path}.matchLabelExpressions[{index}]"
        values = item.get("values") or ()
        if not values:
            report.required(at + ".values")
        seen: set[str] = set()
        for number, value in enumerate(values):
            if value in seen:
                report.duplicate(f"{at}.values[{number}]", value)
            seen.add(value)
        key = item.get("key") or ""
        report.each_invalid(at + ".key", key, formats.label_key(key))
        if key in said:
            report.duplicate(at + ".key", key)
        said[key] = frozenset(seen)
    return frozenset(said.items())


def storage_class(tree: Tree, path: str, report: Report) -> None:
    _provisioner(tree.get("provisioner") or "", ".provisioner", report)
    _parameters(tree.get("parameters"), ".parameters", report)
    _STORAGE_RECLAIM(tree, "", report)
    mode = tree.get("volumeBindingMode")
    if mode is None:
        report.required(".volumeBindingMode")
    elif mode not in _BINDING:
        report.unsupported(".volumeBindingMode", mode, _BINDING)
    topologies = tree.get("allowedTopologies") or ()
    terms: list[frozenset[Any]] = []
    for index, term in enumerate(topologies):
        at = f".allowedTopologies[{index}]"
        said = _topology_term(term, at, report)
        # An error for each term that says the same; to say nothing is to repeat every place of the list.
        for _ in range(terms.count(said) + (0 if said else len(topologies))):
            report.duplicate(at + ".matchLabelExpressions", "")
        terms.append(said)


_CLASS_FIXED = immutable("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")


def storage_class_update(tree: Tree, path: str, report: Report) -> None:
    storage_class(tree, path, report)
    _CLASS_FIXED(tree, "", report)


_GROUP_POLICY = choice("fsGroupPolicy", "File", "None", "ReadWriteOnceWithFSType", empty=CHECK)


def csi_driver_kind(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    for member in ("attachRequired", "podInfoOnMount", "storageCapacity"):
        if spec.get(member) is None:
            report.required(f".spec.{member}")
    _GROUP_POLICY(spec, ".spec", report)
    seen: set[str] = set()
    for index, request in enumerate(spec.get("tokenRequests") or ()):
        at = f".spec.tokenRequests[{index}]"
        audience, seconds = request.get("audience") or "", request.get("expirationSeconds")
        if audience in seen:
            report.duplicate(at + ".audience", audience)
        seen.add(audience)
        if seconds is not None:
            if seconds < 600:
                report.invalid(at + ".expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
            elif seconds > 1 << 32:
                text_ = "may not specify a duration larger than 2^32 seconds"
                report.invalid(at + ".expirationSeconds", seconds, text_)
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in ("Persistent", "Ephemeral"):
            report.unsupported(".spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral"))
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        text_ = "must be greater than or equal to 10 seconds"
        report.invalid(".spec.nodeAllocatableUpdatePeriodSeconds", period, text_)


def csi_driver_update(tree: Tree, path: str, report: Report) -> None:
    csi_driver_kind(tree, path, report)
    spec: Tree = tree.get("spec") or {}
    before: Tree = (report.old or {}).get("spec") or {}
    for name, told in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
        if spec.get(name) != before.get(name):
            report.invalid(f".spec.{told}", spec.get(name), IMMUTABLE)


def _node_driver(driver: Tree, names: set[str], path: str, report: Report) -> None:
    name, node = driver.get("name") or "", driver.get("nodeID") or ""
    csi_driver(name, path + ".name", report)
    if not node:
        report.required(path + ".nodeID")
    if len(node) > 256:
        report.invalid(path + ".nodeID", node, "must be 256 characters or less")
    count = (driver.get("allocatable") or {}).get("count")
    if count is not None and count < 0:
        report.invalid(path + ".allocatable.count", count, NOT_NEGATIVE)
    if name in names and name:
        report.duplicate(path + ".name", name)
    names.add(name)
    keys: set[str] = set()
    for key in driver.get("topologyKeys") or ():
        if not key:
            report.required(path)
        if key in keys:
            report.duplicate(path, key)
        keys.add(key)
        report.each_invalid(path, key, formats.qualified(key))


def csi_node(tree: Tree, path: str, report: Report) -> None:
    names: set[str] = set()
    for index, driver in enumerate((tree.get("spec") or {}).get("drivers") or ()):
        _node_driver(driver, names, f".spec.drivers[{index}]", report)


def csi_node_update(tree: Tree, path: str, report: Report) -> None:
    csi_node(tree, path, report)
    drivers = {driver.get("name"): driver for driver in (tree.get("spec") or {}).get("drivers") or ()}
    for driver in ((report.old or {}).get("spec") or {}).get("drivers") or ():
        new = drivers.get(driver.get("name"))
        if new is not None and any(new.get(name) != driver.get(name) for name in ("nodeID", "topologyKeys")):
            told = {name: value for name, value in new.items() if name != "allocatable"}
            report.invalid(".spec.drivers", shown("storage.k8s.io/v1.CSINodeDriver", told), IMMUTABLE)


def volume_attachment(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    csi_driver(spec.get("attacher") or "", ".spec.attacher", report)
    source: Tree = spec.get("source") or {}
    name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    text_ = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if name is None and inline is None:
        report.required(".spec.source", text_)
    elif name is not None and inline is not None:
        report.forbidden(".spec.source", text_)
    elif name is not None:
        at = ".spec.source.persistentVolumeName"
        if not name:
            report.required(at, "must specify non empty persistentVolumeName")
        report.each_invalid(at, name, formats.subdomain(name))
    else:
        volume_spec(inline or {}, ".spec.source.inlineVolumeSpec", report, inline=True)
    node = spec.get("nodeName") or ""
    report.each_invalid(".spec.nodeName", node, formats.subdomain(node))


def volume_attachment_update(tree: Tree, path: str, report: Report) -> None:
    volume_attachment(tree, path, report)
    spec = tree.get("spec") or {}
    if spec != ((report.old or {}).get("spec") or {}):
        report.invalid(".spec", shown("storage.k8s.io/v1.VolumeAttachmentSpec", spec), IMMUTABLE)


def volume_attachment_status(tree: Tree, path: str, report: Report) -> None:
    for member in ("attachError", "detachError"):
        code = ((tree.get("status") or {}).get(member) or {}).get("errorCode")
        if code is not None and code < 0:
            report.invalid(f".status.{member}.errorCode", code, between(0, INT32_MAX))


def attributes_class(tree: Tree, path: str, report: Report) -> None:
    _provisioner(tree.get("driverName") or "", ".driverName", report)
    _parameters(tree.get("parameters"), ".parameters", report, needed=True)


def attributes_class_update(tree: Tree, path: str, report: Report) -> None:
    for name in ("driverName", "parameters"):
        if tree.get(name) != (report.old or {}).get(name):
            report.forbidden(f".{name}", f"updates to {name} are forbidden.")
    attributes_class(tree, path, report)


_CAPACITY_CLASS = text("storageClassName", formats.subdomain, empty=3)
_CAPACITY_FIXED = immutable("nodeTopology", "storageClassName")


def storage_capacity(tree: Tree, path: str, report: Report) -> None:
    topology = tree.get("nodeTopology")
    if topology is not None:
        selector(topology, ".nodeTopology", report)
    _CAPACITY_CLASS(tree, "", report)
    size = tree.get("capacity")
    if size is not None and amount(size).nanos < 0:
        report.invalid(".capacity", size, NOT_NEGATIVE)


def storage_capacity_update(tree: Tree, path: str, report: Report) -> None:
    storage_capacity(tree, path, report)
    _CAPACITY_FIXED(tree, "", report)

"""What persistent volumes are made of: the rules of each kind of source."""

from __future__ import annotations

from typing import Final

from fastapi_core.apis.validation import formats, volumes
from fastapi_core.apis.validation.labelling import csi_driver
from fastapi_core.apis.validation.rules import Report, Rule, Tree, between, required, struct


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
    if namespace == "":
        text = "if the endpointnamespace is set, it must be a valid namespace name"
        report.invalid(path + ".endpointsNamespace", "", text)
    elif namespace is not None:
        report.each_invalid(path + ".endpointsNamespace", namespace, formats.label(namespace))


def _secret_named(*members: str) -> Rule:
    """The secret, where there is one, has these members."""

    def rule(tree: Tree, path: str, report: Report) -> None:
        reference = tree.get("secretRef")
        if reference is not None:
            for member in members:
                if not reference.get(member):
                    report.required(f"{path}.secretRef.{member}")

    return rule


_BAD_NAME: Final = "must be valid format"
_PORTAL: Final = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified."


def _iscsi(tree: Tree, path: str, report: Report) -> None:
    portal, iqn, initiator = tree.get("targetPortal") or "", tree.get("iqn"), tree.get("initiatorName")
    if not portal:
        report.required(path + ".targetPortal")
    if initiator is not None and len(f"{report.facts.get('volume name', '')}:{portal}".encode()) > 64:
        report.invalid(path + ".targetportal", portal, _PORTAL)
    if not iqn:
        report.required(path + ".iqn")
    elif not volumes.iscsi_name(iqn):
        report.invalid(path + ".iqn", iqn, _BAD_NAME)
    lun = tree.get("lun") or 0
    if not 0 <= lun <= 255:
        report.invalid(path + ".lun", lun, between(0, 255))
    if (tree.get("chapAuthDiscovery") or tree.get("chapAuthSession")) and tree.get("secretRef") is None:
        report.required(path + ".secretRef")
    _secret_named("name")(tree, path, report)
    if initiator is not None and not volumes.iscsi_name(initiator):
        report.invalid(path + ".initiatorname", initiator, _BAD_NAME)


def _local_needs(tree: Tree, path: str, report: Report) -> None:
    """A volume of one node says which."""
    _local(tree, path, report)
    if not report.facts.get("node affinity"):
        report.required(path.rpartition(".")[0] + ".nodeAffinity", "Local volume requires node affinity")


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
    ("iscsi", "", "", _iscsi),
    ("cinder", "", "", struct(required("volumeID"), _secret_named("name", "namespace"))),
    ("fc", "", "", volumes.fc),
    ("flexVolume", "", "", volumes.flex),
    ("azureFile", "", "", _azure_file),
    ("vsphereVolume", "", "", volumes.VSPHERE),
    ("photonPersistentDisk", "", "", volumes.PHOTON),
    ("portworxVolume", "", "", volumes.PORTWORX),
    ("azureDisk", "", "", volumes.azure_disk),
    ("scaleIO", "", "", volumes.SCALE_IO),
    ("local", "", "", _local_needs),
    ("storageos", "", "", struct(volumes.storageos_names, _secret_named("name", "namespace"))),
    ("csi", "", "", _CSI),
)
SOURCE_NAMES: Final = frozenset(name for name, *_ in _SOURCES)


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

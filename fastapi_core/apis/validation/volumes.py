"""Volumes of pods and the sources they share with persistent volumes."""

from __future__ import annotations

import re
from typing import Final

from fastapi_core.apis.validation import claims, downward, formats
from fastapi_core.apis.validation.labelling import backsteps, csi_driver, template_metadata, unreserved_path
from fastapi_core.apis.validation.rules import CHECK, Report, Rule, Tree, choice, number, required, struct
from fastapi_core.meta.quantity import parse

MANY: Final = "may not specify more than 1 volume type"
_PARTITION = number("partition", 0, 255, "must be between 1 and 255, inclusive")
_PULL = ("Always", "IfNotPresent", "Never")
_ISCSI_FORM: Final = "must be valid format starting with iqn, eui, or naa"
_iqn = re.compile(r"iqn\.\d{4}-\d{2}\.([a-z0-9-.]+)(:([^,;*&$|\s]+))?", re.ASCII)
_eui = re.compile(r"eui\.[a-fA-F0-9]{16}", re.ASCII)
_naa = re.compile(r"naa\.[a-fA-F0-9]{32}", re.ASCII)
_ISCSI_LENGTH: Final = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified."
_QUOBYTE: Final = "must be a host:port pair or multiple pairs separated by commas"


def mode(name: str) -> Rule:
    """Permission bits."""
    dotted = "." + name

    def rule(tree: Tree, path: str, report: Report) -> None:
        value = tree.get(name)
        if value is not None and not 0 <= value <= 0o777:
            report.each_invalid(path + dotted, value, formats.absolute_mode(value))

    return rule


def _key_to_path(tree: Tree, path: str, report: Report) -> None:
    if not tree.get("key"):
        report.required(path + ".key")
    target = tree.get("path")
    if target:
        unreserved_path(target, path + ".path", report)
    else:
        report.required(path + ".path")
    _MODE(tree, path, report)


_MODE = mode("mode")
_DEFAULT_MODE = mode("defaultMode")


def _keys(tree: Tree, path: str, report: Report) -> None:
    for index, item in enumerate(tree.get("items") or ()):
        _key_to_path(item, f"{path}.items[{index}]", report)


def _downward(tree: Tree, path: str, report: Report) -> None:
    _DEFAULT_MODE(tree, path, report)
    for item in tree.get("items") or ():
        _downward_file(item, path, report)


def _downward_file(tree: Tree, path: str, report: Report) -> None:
    """Its errors stand at the volume, not at the file."""
    target = tree.get("path")
    if target:
        unreserved_path(target, path + ".path", report)
    else:
        report.required(path + ".path")
    field, resource = tree.get("fieldRef"), tree.get("resourceFieldRef")
    if field is not None:
        downward.field_selector(field, path + ".fieldRef", report, downward.IN_VOLUMES)
        if resource is not None:
            report.invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif resource is not None:
        downward.resource_selector(resource, path + ".resourceFieldRef", report, in_volume=True)
    else:
        report.required(path, "one of fieldRef and resourceFieldRef is required")
    _MODE(tree, path, report)


def _empty_dir(tree: Tree, path: str, report: Report) -> None:
    size = tree.get("sizeLimit")
    if size is not None and parse(size).nanos < 0:
        report.forbidden(path + ".sizeLimit", "SizeLimit field must be a valid resource quantity")


_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_HOST_PATH_TYPE = choice("type", *_HOST_PATH_TYPES)


def host_path(tree: Tree, path: str, report: Report) -> None:
    if not tree.get("path"):
        report.required(path + ".path")
        return
    backsteps(tree["path"], path + ".path", report)
    _HOST_PATH_TYPE(tree, path, report)


def _git(tree: Tree, path: str, report: Report) -> None:
    if not tree.get("repository"):
        report.required(path + ".repository")
    for problem in formats.relative_path(tree.get("directory") or ""):
        report.invalid(path + ".directory", tree["directory"], problem)


def nfs(tree: Tree, path: str, report: Report) -> None:
    if not tree.get("server"):
        report.required(path + ".server")
    target = tree.get("path") or ""
    if not target:
        report.required(path + ".path")
    if not target.startswith("/"):
        report.invalid(path + ".path", target, "must be an absolute path")


def iscsi_name(name: str) -> bool:
    for prefix, form in (("iqn", _iqn), ("eui", _eui), ("naa", _naa)):
        if name.startswith(prefix):
            return form.fullmatch(name) is not None
    return False


def iscsi(tree: Tree, path: str, report: Report) -> None:
    if not tree.get("targetPortal"):
        report.required(path + ".targetPortal")
    iqn = tree.get("iqn")
    if not iqn:
        report.required(path + ".iqn")
    elif not iscsi_name(iqn):
        report.invalid(path + ".iqn", iqn, _ISCSI_FORM)
    lun = tree.get("lun") or 0
    if not 0 <= lun <= 255:
        report.invalid(path + ".lun", lun, "must be between 0 and 255, inclusive")
    if (tree.get("chapAuthDiscovery") or tree.get("chapAuthSession")) and tree.get("secretRef") is None:
        report.required(path + ".secretRef")
    initiator = tree.get("initiatorName")
    if initiator is not None and not iscsi_name(initiator):
        report.invalid(path + ".initiatorname", initiator, _ISCSI_FORM)


def flocker(tree: Tree, path: str, report: Report) -> None:
    name, uuid = tree.get("datasetName"), tree.get("datasetUUID")
    if not name and not uuid:
        report.required(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        report.invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if name and "/" in name:
        report.invalid(path + ".datasetName", name, "must not contain '/'")


def secret_name(name: str) -> Rule:
    """A reference to a secret that has to have a name when it is there."""
    dotted = f".{name}.name"

    def rule(tree: Tree, path: str, report: Report) -> None:
        reference = tree.get(name)
        if reference is not None and not reference.get("name"):
            report.required(path + dotted)

    return rule


def quobyte(tree: Tree, path: str, report: Report) -> None:
    registry = tree.get("registry") or ""
    if not registry:
        report.required(path + ".registry", _QUOBYTE)
    else:
        for pair in registry.split(","):
            host, colon, _ = pair.rpartition(":")
            if not colon or (":" in host.strip("[]") and not host.startswith("[")):
                report.invalid(path + ".registry", registry, _QUOBYTE)
    if len(tree.get("tenant") or "") >= 65:
        report.required(path + ".tenant", "must be a UUID and may not exceed a length of 64 characters")
    if not tree.get("volume"):
        report.required(path + ".volume")


def fc(tree: Tree, path: str, report: Report) -> None:
    names, ids = tree.get("targetWWNs"), tree.get("wwids")
    if not names and not ids:
        report.required(path + ".targetWWNs", "must specify either targetWWNs or wwids, but not both")
    if names and ids:
        report.invalid(path + ".targetWWNs", names, "targetWWNs and wwids can not be specified simultaneously")
    if names:
        lun = tree.get("lun")
        if lun is None:
            report.required(path + ".lun", "lun is required if targetWWNs is specified")
        elif not 0 <= lun <= 255:
            report.invalid(path + ".lun", lun, "must be between 0 and 255, inclusive")


_MANAGED_URI = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_URI = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_CACHING = choice("cachingMode", "None", "ReadOnly", "ReadWrite", empty=CHECK)
_DISK_KIND = choice("kind", "Dedicated", "Managed", "Shared", empty=CHECK)


def azure_disk(tree: Tree, path: str, report: Report) -> None:
    uri, kind = tree.get("diskURI") or "", tree.get("kind")
    if not tree.get("diskName"):
        report.required(path + ".diskName")
    if not uri:
        report.required(path + ".diskURI")
    _CACHING(tree, path, report)
    _DISK_KIND(tree, path, report)
    if kind == "Managed":
        if not uri.startswith("/subscriptions/"):
            report.unsupported(path + ".diskURI", uri, (_MANAGED_URI,))
    elif kind is not None and not uri.startswith("https://"):
        report.unsupported(path + ".diskURI", uri, (_BLOB_URI,))


def storageos_names(tree: Tree, path: str, report: Report) -> None:
    volume, namespace = tree.get("volumeName"), tree.get("volumeNamespace")
    if not volume:
        report.required(path + ".volumeName")
    else:
        report.each_invalid(path + ".volumeName", volume, formats.label(volume))
    if namespace:
        report.each_invalid(path + ".volumeNamespace", namespace, formats.label(namespace))


def flex(tree: Tree, path: str, report: Report) -> None:
    if not tree.get("driver"):
        report.required(path + ".driver")
    for key in tree.get("options") or ():
        domain = key.partition("/")[0] if "/" in key else ""
        if domain in ("kubernetes.io", "k8s.io") or domain.endswith((".kubernetes.io", ".k8s.io")):
            report.invalid(f"{path}.options[{key}]", key, "kubernetes.io and k8s.io namespaces are reserved")


def _csi(tree: Tree, path: str, report: Report) -> None:
    csi_driver(tree.get("driver") or "", path + ".driver", report)
    reference = tree.get("nodePublishSecretRef")
    if reference is not None:
        name = reference.get("name")
        if not name:
            report.required(path + ".nodePublishSecretRef.name")
        else:
            report.each_invalid(path + ".name", name, formats.subdomain(name))


def _ephemeral(tree: Tree, path: str, report: Report) -> None:
    template = tree.get("volumeClaimTemplate")
    at = path + ".volumeClaimTemplate"
    if template is None:
        report.required(at)
        return
    template_metadata(template.get("metadata") or {}, at + ".metadata", report)
    claims.claim_spec(template.get("spec") or {}, at + ".spec", report)


def _token(tree: Tree, path: str, report: Report) -> None:
    seconds = tree.get("expirationSeconds")
    if seconds is None:
        return
    if seconds < 600:
        report.invalid(path + ".expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    elif seconds > 1 << 32:
        report.invalid(path + ".expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")


def _projected(tree: Tree, path: str, report: Report) -> None:
    _DEFAULT_MODE(tree, path, report)
    seen: set[str] = set()
    for index, source in enumerate(tree.get("sources") or ()):
        _projection(source, f"{path}.sources[{index}]", path, report, seen)


def _take(target: str | None, seen: set[str], path: str, report: Report, named: str | None = None) -> None:
    """Two files of a projected volume have different paths; `named` is what they come from."""
    if target:
        if target in seen:
            report.invalid(path, target if named is None else named, "conflicting duplicate paths")
        seen.add(target)


def _projection(source: Tree, at: str, path: str, report: Report, seen: set[str]) -> None:
    count = 0
    for name in ("secret", "configMap"):
        part = source.get(name)
        if part is not None:
            count += 1
            if not part.get("name"):
                report.required(f"{at}.{name}.name")
            for index, item in enumerate(part.get("items") or ()):
                _key_to_path(item, f"{at}.{name}.items[{index}]", report)
                _take(item.get("path"), seen, path, report, part.get("name") or "")
    downward_api = source.get("downwardAPI")
    if downward_api is not None:
        count += 1
        for item in downward_api.get("items") or ():
            _downward_file(item, at + ".downwardAPI", report)
            _take(item.get("path"), seen, path, report)
    token = source.get("serviceAccountToken")
    if token is not None:
        count += 1
        _token(token, at + ".serviceAccountToken", report)
        if not token.get("path"):
            report.required(path + ".path")
        else:
            unreserved_path(token["path"], path + ".path", report)
    if count > 1:
        report.forbidden(at, MANY + " per source")


_PULL_POLICY = choice("pullPolicy", *_PULL)


def _image(tree: Tree, path: str, report: Report) -> None:
    """A template may leave the reference to a later hand."""
    if report.facts.get("pod") and not tree.get("reference"):
        report.required(path + ".reference")
    _PULL_POLICY(tree, path, report)


_GLUSTER = struct(required("endpoints"), required("path"))
_RBD = struct(required("monitors"), required("image"))
CINDER = struct(required("volumeID"), secret_name("secretRef"))
SCALE_IO = struct(required("gateway"), required("system"), required("volumeName"))
AWS = struct(required("volumeID"), _PARTITION)
GCE = struct(required("pdName"), _PARTITION)
VSPHERE, PHOTON, PORTWORX = required("volumePath"), required("pdID"), required("volumeID")
CEPH = required("monitors")
RBD = _RBD

#: (member, name in paths, name when it is one too many, rule), in the reference's order.
_SOURCES: Final = (
    ("emptyDir", "", "", _empty_dir),
    ("hostPath", "", "", host_path),
    ("gitRepo", "", "", _git),
    ("gcePersistentDisk", "persistentDisk", "gcePersistentDisk", GCE),
    ("awsElasticBlockStore", "", "", AWS),
    ("secret", "", "", struct(required("secretName"), _DEFAULT_MODE, _keys)),
    ("nfs", "", "", nfs),
    ("iscsi", "", "", iscsi),
    ("glusterfs", "", "", _GLUSTER),
    ("flocker", "", "", flocker),
    ("persistentVolumeClaim", "", "", required("claimName")),
    ("rbd", "", "", _RBD),
    ("cinder", "", "", CINDER),
    ("cephfs", "", "cephFS", CEPH),
    ("quobyte", "", "", quobyte),
    ("downwardAPI", "", "downwarAPI", _downward),
    ("fc", "", "", fc),
    ("flexVolume", "", "", flex),
    ("configMap", "", "", struct(required("name"), _DEFAULT_MODE, _keys)),
    ("azureFile", "", "", struct(required("secretName"), required("shareName"))),
    ("vsphereVolume", "", "", VSPHERE),
    ("photonPersistentDisk", "", "", PHOTON),
    ("portworxVolume", "", "", PORTWORX),
    ("azureDisk", "", "", azure_disk),
    ("storageos", "", "", struct(storageos_names, secret_name("secretRef"))),
    ("projected", "", "", _projected),
    ("scaleIO", "", "", SCALE_IO),
    ("csi", "", "", _csi),
    ("ephemeral", "", "", _ephemeral),
    ("image", "", "", _image),
)
_ORDER: Final = {name: index for index, (name, *_) in enumerate(_SOURCES)}


def _source(volume: Tree, path: str, report: Report) -> None:
    members = [name for name in volume if name in _ORDER and volume[name] is not None]
    if len(members) == 1:
        name = members[0]
        _, shown, _, rule = _SOURCES[_ORDER[name]]
        rule(volume[name], f"{path}.{shown or name}", report)
        return
    for position, index in enumerate(sorted(_ORDER[name] for name in members)):
        name, shown, surplus, rule = _SOURCES[index]
        if position:
            report.forbidden(f"{path}.{surplus or name}", MANY)
        else:
            rule(volume[name], f"{path}.{shown or name}", report)
    if not members:
        report.required(path, "must specify a volume type")


def _with_names(volume: Tree, name: str, path: str, report: Report) -> None:
    """What a source makes of the volume's and the pod's name."""
    portal: Tree = volume.get("iscsi") or {}
    if portal.get("initiatorName") is not None and len(f"{name}:{portal.get('targetPortal') or ''}") > 64:
        report.invalid(path + ".name", name, _ISCSI_LENGTH)
    pod = report.facts.get("name")
    if pod and name and volume.get("ephemeral") is not None:
        claim = f"{pod}-{name}"
        for problem in formats.subdomain(claim):
            report.invalid(path + ".name", name, f'PVC name "{claim}": {problem}')


def volumes(items: list[Tree] | None, path: str, report: Report) -> None:
    """All volumes of a pod; the sound ones are noted for the mounts."""
    known: dict[str, Tree] = {}
    report.facts["volumes"] = known
    for index, volume in enumerate(items or ()):
        at = f"{path}[{index}]"
        before = len(report)
        name = volume.get("name") or ""
        _source(volume, at, report)
        if volume.get("iscsi") is not None or volume.get("ephemeral") is not None:
            _with_names(volume, name, at, report)
        if not name:
            report.required(at + ".name")
        else:
            for problem in formats.label(name):
                report.invalid(at + ".name", name, problem)
            if name in known:
                report.duplicate(at + ".name", name)
        if len(report) == before:
            known[name] = volume

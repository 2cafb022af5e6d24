"""Objects inside error messages: the reference prints its internal structs, whose members have Go's names."""

from __future__ import annotations

from typing import Any

from fastapi_core.schema.tables import type_of
from fastapi_core.schema.types import Type

_NAMES = {
    "apiGroup": "APIGroup", "apiVersion": "APIVersion", "uid": "UID", "cidrs": "CIDRs", "ip": "IP", "ips": "IPs",
    "seLinuxOptions": "SELinuxOptions", "clusterIP": "ClusterIP", "clusterIPs": "ClusterIPs", "hostIP": "HostIP",
    "podIP": "PodIP", "podIPs": "PodIPs", "podCIDR": "PodCIDR", "podCIDRs": "PodCIDRs", "cidr": "CIDR",
    "externalID": "ExternalID", "providerID": "ProviderID", "httpGet": "HTTPGet", "url": "URL", "caBundle": "CABundle",
    "fsGroup": "FSGroup", "fsGroupChangePolicy": "FSGroupChangePolicy", "nodeID": "NodeID", "qosClass": "QOSClass",
    "awsElasticBlockStore": "AWSElasticBlockStore", "cephfs": "CephFS", "csi": "CSI", "fc": "FC", "fsType": "FSType",
    "gcePersistentDisk": "GCEPersistentDisk", "iscsi": "ISCSI", "nfs": "NFS", "rbd": "RBD", "storageos": "StorageOS",
    "pdName": "PDName", "iqn": "IQN", "iscsiInterface": "ISCSIInterface", "wwids": "WWIDs", "sslEnabled": "SSLEnabled",
    "httpHeaders": "HTTPHeaders", "tty": "TTY", "grpc": "GRPC", "tcpSocket": "TCPSocket", "gid": "GID",
    "dnsConfig": "DNSConfig", "dnsPolicy": "DNSPolicy", "os": "OS", "seLinuxChangePolicy": "SELinuxChangePolicy",
    "ipMode": "IPMode", "ipFamilies": "IPFamilies", "ipFamilyPolicy": "IPFamilyPolicy", "osImage": "OSImage",
    "gmsaCredentialSpec": "GMSACredentialSpec", "gmsaCredentialSpecName": "GMSACredentialSpecName", "tls": "TLS",
    "fsGroupPolicy": "FSGroupPolicy", "seLinuxMount": "SELinuxMount", "cel": "CEL", "ipBlock": "IPBlock",
    "http": "HTTP", "apiGroups": "APIGroups", "apiVersions": "APIVersions", "jsonPatch": "JSONPatch",
    "ttlSecondsAfterFinished": "TTLSecondsAfterFinished",
}  # fmt: skip
_ZERO = {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0}
#: Members that stand elsewhere in the internal struct than in the versioned one: first these, then the others.
_FIRST = {
    "core/v1.PersistentVolumeSpec": (
        "capacity", "gcePersistentDisk", "awsElasticBlockStore", "hostPath", "glusterfs", "nfs", "rbd", "quobyte",
        "iscsi", "flexVolume", "cinder", "cephfs", "fc", "flocker", "azureFile", "vsphereVolume", "azureDisk",
        "photonPersistentDisk", "portworxVolume", "scaleIO", "local", "storageos", "csi",
    ),
}  # fmt: skip
#: Types of the API machinery keep their JSON form.
_LIBRARY = ("meta/", "runtime", "intstr", "resource")


def shown(ref: str, value: Any) -> Any:
    """A versioned object in the reference's internal form: every member, under its Go name, unset ones null."""
    return _struct(type_of(ref), value)


def _struct(type_: Type, value: Any) -> Any:
    if value is None or type_.json or type_.ref.startswith(_LIBRARY):
        return value
    out = {}
    first = _FIRST.get(type_.ref, ())
    for name in (*first, *(name for name in type_.fields if name not in first)):
        field = type_.fields[name]
        inner = value.get(name)
        if inner is None and not field.card and not field.pointer:
            if field.type is None:
                inner = _ZERO.get(field.scalar)
            elif not field.type.json:
                inner = {}
        if inner is not None and field.type is not None:
            if field.card == "list":
                inner = [_struct(field.type, item) for item in inner]
            elif field.card == "map":
                inner = {key: _struct(field.type, item) for key, item in inner.items()}
            else:
                inner = _struct(field.type, inner)
        out[_NAMES.get(name, name[:1].upper() + name[1:])] = inner
    return out

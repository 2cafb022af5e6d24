"""Objects inside error messages: the reference prints its internal structs, whose members have Go's names and an order of
their own."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from fastapi_core.schema.tables import type_of
from fastapi_core.schema.types import Type

_NAMES = {
    "apiGroup": "APIGroup", "apiVersion": "APIVersion", "uid": "UID", "cidrs": "CIDRs", "ip": "IP", "ips": "IPs",
    "seLinuxOptions": "SELinuxOptions", "clusterIP": "ClusterIP", "clusterIPs": "ClusterIPs", "hostIP": "HostIP",
    "podIP": "PodIP", "podIPs": "PodIPs", "podCIDR": "PodCIDR", "podCIDRs": "PodCIDRs", "cidr": "CIDR",
    "externalID": "ExternalID", "providerID": "ProviderID", "httpGet": "HTTPGet", "url": "URL", "caBundle": "CABundle",
    "fsGroup": "FSGroup", "fsGroupChangePolicy": "FSGroupChangePolicy", "nodeID": "NodeID", "qosClass": "QOSClass",
    "fsType": "FSType", "tty": "TTY", "wwids": "WWIDs", "pdName": "PDName", "httpHeaders": "HTTPHeaders", "iqn": "IQN",
    "iscsiInterface": "ISCSIInterface", "tcpSocket": "TCPSocket", "gid": "GID", "ipMode": "IPMode", "osImage": "OSImage",
    "gcePersistentDisk": "GCEPersistentDisk", "awsElasticBlockStore": "AWSElasticBlockStore", "nfs": "NFS", "rbd": "RBD",
    "iscsi": "ISCSI", "cephfs": "CephFS", "fc": "FC", "storageos": "StorageOS", "csi": "CSI", "os": "OS", "grpc": "GRPC",
    "seLinuxChangePolicy": "SELinuxChangePolicy", "dnsPolicy": "DNSPolicy", "dnsConfig": "DNSConfig", "tls": "TLS",
    "sslEnabled": "SSLEnabled", "ipFamilies": "IPFamilies", "ipFamilyPolicy": "IPFamilyPolicy", "http": "HTTP",
    "gmsaCredentialSpecName": "GMSACredentialSpecName", "gmsaCredentialSpec": "GMSACredentialSpec", "ipBlock": "IPBlock",
    "ttlSecondsAfterFinished": "TTLSecondsAfterFinished", "fsGroupPolicy": "FSGroupPolicy", "seLinuxMount": "SELinuxMount",
    "chapAuthDiscovery": "DiscoveryCHAPAuth", "chapAuthSession": "SessionCHAPAuth", "lastState": "LastTerminationState",
    "hostUsers": "HostUsers", "cel": "CEL", "apiGroups": "APIGroups", "apiVersions": "APIVersions",
    "jsonPatch": "JSONPatch",
}  # fmt: skip
#: Names that hold in one type only.
_OWN: Final[dict[str, dict[str, str]]] = {
    "core/v1.RBDVolumeSource": {
        "monitors": "CephMonitors", "image": "RBDImage", "pool": "RBDPool", "user": "RadosUser",
    },
    "core/v1.RBDPersistentVolumeSource": {
        "monitors": "CephMonitors", "image": "RBDImage", "pool": "RBDPool", "user": "RadosUser",
    },
    "core/v1.GlusterfsVolumeSource": {"endpoints": "EndpointsName"},
    "core/v1.GlusterfsPersistentVolumeSource": {"endpoints": "EndpointsName"},
    "resource.k8s.io/v1.DeviceAttribute": {
        "int": "IntValue", "bool": "BoolValue", "string": "StringValue", "version": "VersionValue", "ints": "IntValues",
        "bools": "BoolValues", "strings": "StringValues", "versions": "VersionValues",
    },
    "core/v1.AzureDiskVolumeSource": {"diskURI": "DataDiskURI"},
}  # fmt: skip
_VOLUME: Final = (
    "name hostPath emptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret nfs iscsi glusterfs "
    "persistentVolumeClaim rbd quobyte flexVolume cinder cephfs flocker downwardAPI fc azureFile configMap vsphereVolume "
    "azureDisk photonPersistentDisk projected portworxVolume scaleIO storageos csi ephemeral image"
)
#: Members in the internal order, where it is another one.
_ORDERS: Final = {
    "core/v1.Volume": _VOLUME,
    "core/v1.PodSpec": (
        "volumes initContainers containers ephemeralContainers restartPolicy terminationGracePeriodSeconds "
        "activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName automountServiceAccountToken nodeName "
        "securityContext imagePullSecrets hostname subdomain setHostnameAsFQDN affinity schedulerName tolerations "
        "hostAliases priorityClassName priority preemptionPolicy dnsConfig readinessGates runtimeClassName overhead "
        "enableServiceLinks topologySpreadConstraints os schedulingGates resourceClaims resources hostnameOverride "
        "schedulingGroup"
    ),
    "core/v1.PersistentVolumeSpec": (
        "capacity gcePersistentDisk awsElasticBlockStore hostPath glusterfs nfs rbd quobyte iscsi flexVolume cinder cephfs "
        "fc flocker azureFile vsphereVolume azureDisk photonPersistentDisk portworxVolume scaleIO local storageos csi "
        "accessModes claimRef persistentVolumeReclaimPolicy storageClassName mountOptions volumeMode nodeAffinity "
        "volumeAttributesClassName"
    ),
    "core/v1.PodSecurityContext": (
        "seLinuxOptions windowsOptions runAsUser runAsGroup runAsNonRoot supplementalGroups supplementalGroupsPolicy "
        "fsGroup fsGroupChangePolicy sysctls seccompProfile appArmorProfile seLinuxChangePolicy"
    ),
    "batch/v1.JobSpec": (
        "parallelism completions podFailurePolicy successPolicy activeDeadlineSeconds backoffLimit backoffLimitPerIndex "
        "maxFailedIndexes selector manualSelector template ttlSecondsAfterFinished completionMode suspend "
        "podReplacementPolicy managedBy"
    ),
}
#: Members of a pod's spec that the internal form keeps in its security context.
_HOST: Final = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
_ZERO = {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0}
#: Types of the API machinery keep their JSON form.
_LIBRARY = ("meta/", "runtime.", "intstr.", "resource.Quantity")


def shown(ref: str, value: Any, members: Collection[str] = ()) -> Any:
    """A versioned object in the reference's internal form: every member, under its Go name, unset ones null. Or only
    some `members` of it."""
    return _struct(type_of(ref), value, members)


def _struct(type_: Type, value: Any, members: Collection[str] = ()) -> Any:
    if value is None or type_.json or type_.ref.startswith(_LIBRARY):
        return value
    out: dict[str, Any] = {}
    own = _OWN.get(type_.ref, {})
    order = _ORDERS[type_.ref].split() if type_.ref in _ORDERS else type_.fields
    for name in order:
        if members and name not in members:
            continue
        field = type_.fields[name]
        inner = value.get(name)
        if name == "metadata":
            out |= _metadata(inner)
            continue
        if inner is None and not field.card and not field.pointer:
            if field.type is None:
                inner = _ZERO.get(field.scalar)
            elif not field.type.json:
                inner = {}
        if inner is not None and field.card == "map":
            inner = dict(sorted(inner.items()))
        if inner is not None and field.type is not None:
            if field.card == "list":
                inner = [_struct(field.type, item) for item in inner]
            elif field.card == "map":
                inner = {key: _struct(field.type, item) for key, item in inner.items()}
            else:
                inner = _struct(field.type, inner)
        if inner is not None and type_.ref == "core/v1.PodSpec" and name == "securityContext":
            inner = {_named(member): value.get(member, _HOST_ZERO.get(member)) for member in _HOST} | inner
        out[own.get(name) or _named(name)] = inner
    return out


_HOST_ZERO: Final = {"hostNetwork": False, "hostPID": False, "hostIPC": False}


def _named(name: str) -> str:
    return _NAMES.get(name, name[:1].upper() + name[1:])


def _metadata(metadata: dict[str, Any] | None) -> dict[str, Any]:
    """Metadata is embedded in the struct and keeps its JSON names there."""
    return {name: value for name, value in (metadata or {}).items() if value not in (None, "", [], {}, 0)}

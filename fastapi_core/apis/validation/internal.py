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
}  # fmt: skip
_ZERO = {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0}
#: Types of the API machinery keep their JSON form.
_LIBRARY = ("meta/", "runtime", "intstr", "resource")


def shown(ref: str, value: Any) -> Any:
    """A versioned object in the reference's internal form: every member, under its Go name, unset ones null."""
    return _struct(type_of(ref), value)


def _struct(type_: Type, value: Any) -> Any:
    if value is None or type_.json or type_.ref.startswith(_LIBRARY):
        return value
    out = {}
    for name, field in type_.fields.items():
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

"""Defaults of the core group that OpenAPI does not state."""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Any

from fastapi_core.apis.defaulting.rules import (
    Rule,
    Tree,
    absent,
    copied,
    empty,
    equals,
    filled,
    fresh,
    has,
    when,
    within,
)
from fastapi_core.meta import images, quantity


@lru_cache(1024)
def image_policy(reference: str) -> str:
    """Pull policy of an image: Always for the tag `latest`, stated or implied; IfNotPresent for any other."""
    return "Always" if images.tag(reference) == "latest" else "IfNotPresent"


def _container(tree: Tree) -> None:
    if not tree.get("imagePullPolicy"):
        tree["imagePullPolicy"] = image_policy(tree.get("image") or "")
    if not tree.get("terminationMessagePath"):
        tree["terminationMessagePath"] = "/dev/termination-log"
    if not tree.get("terminationMessagePolicy"):
        tree["terminationMessagePolicy"] = "File"


def _image_volume(tree: Tree) -> None:
    if not tree.get("pullPolicy"):
        tree["pullPolicy"] = image_policy(tree.get("reference") or "")


def _volume(tree: Tree) -> None:
    """A volume without a source is an empty directory."""
    for name, value in tree.items():
        if value is not None and name != "name":
            return
    tree["emptyDir"] = {}


def _template_to_controller(tree: Tree) -> None:
    """A replication controller takes selector and labels from its template."""
    spec: Tree = tree.get("spec") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        metadata = tree.setdefault("metadata", {})
        if not metadata.get("labels"):
            metadata["labels"] = dict(labels)


def _service_port(tree: Tree) -> None:
    if not tree.get("protocol"):
        tree["protocol"] = "TCP"
    if tree.get("targetPort") in (None, 0, ""):
        tree["targetPort"] = tree.get("port", 0)


def _affinity(tree: Tree) -> None:
    """Session affinity by client address has a time-out; any other has no settings."""
    if tree["sessionAffinity"] == "None":
        tree.pop("sessionAffinityConfig", None)
    elif tree["sessionAffinity"] == "ClientIP":
        config: Tree = tree.get("sessionAffinityConfig") or {}
        if (config.get("clientIP") or {}).get("timeoutSeconds") is None:
            tree["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}


def _exposed(tree: Tree) -> bool:
    kind = tree.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(tree.get("externalIPs")))


def _balancer_mode(tree: Tree) -> None:
    if (tree.get("spec") or {}).get("type") == "LoadBalancer":
        for entry in ((tree.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
            if entry.get("ip") and entry.get("ipMode") is None:
                entry["ipMode"] = "VIP"


def _limit_item(tree: Tree) -> None:
    """Container limits: default from max, then default request from default or min."""
    if tree.get("type") != "Container":
        return
    _fill(tree, "default", tree.get("max"))
    _fill(tree, "defaultRequest", tree.get("default"))
    _fill(tree, "defaultRequest", tree.get("min"))


def _fill(tree: Tree, name: str, source: Tree | None) -> None:
    target = tree.get(name) or {}
    for key, amount in (source or {}).items():
        target.setdefault(key, amount)
    if target:
        tree[name] = target


def name_label(tree: Tree) -> None:
    """The name is also a label, so that selectors can pick namespaces by name."""
    metadata: Tree = tree.get("metadata") or {}
    if metadata.get("name"):
        labels = metadata.get("labels")
        if labels is None:
            labels = metadata["labels"] = {}
        labels["kubernetes.io/metadata.name"] = metadata["name"]


# What decoding does in the reference: one value under two names, or in two spellings. Whoever sets one owns both.


def _account(spec: Tree) -> None:
    """The old name of serviceAccountName always has the same value."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def _string_data(secret: Tree) -> None:
    """Plain texts of `stringData` go over `data`; they are never read back."""
    texts = secret.pop("stringData", None)
    if texts:
        data = dict(secret.get("data") or {})
        for key, text in texts.items():
            data[key] = base64.b64encode((text or "").encode()).decode()
        secret["data"] = dict(sorted(data.items()))


def _pod_addresses(status: Tree) -> None:
    """The single address of the first API version wins over the list that it begins."""
    single, several = status.get("podIP"), status.get("podIPs")
    first = several[0].get("ip") if several else None
    if single and first != single:
        status["podIPs"] = [{"ip": single}]
    elif first and not single:
        status["podIP"] = first


def _address_ranges(spec: Tree) -> None:
    """The list of pod ranges begins with the single one of the first API versions."""
    single, several = spec.get("podCIDR"), spec.get("podCIDRs")
    if single and (not several or several[0] != single):
        spec["podCIDRs"] = [single]
    elif several and not single:
        spec["podCIDR"] = several[0]


# Pods only: templates keep what the user wrote.


def _requests(container: Tree) -> None:
    resources: Tree = container.get("resources") or {}
    limits = resources.get("limits")
    if limits:
        requests = resources.get("requests")
        if requests is None:
            requests = resources["requests"] = {}
        for name, amount in limits.items():
            if name not in requests:
                requests[name] = amount


def _host_ports(container: Tree) -> None:
    for port in container.get("ports") or ():
        if not port.get("hostPort"):
            port["hostPort"] = port.get("containerPort", 0)


def _shared(name: str) -> bool:
    """Resources a whole pod may state."""
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _sum(spec: Tree, member: str, name: str) -> str | None:
    """What the pod's containers state for one resource together; init containers count at their peak."""
    total: Any = None
    for container in spec.get("containers") or ():
        amount = ((container.get("resources") or {}).get(member) or {}).get(name)
        if amount is not None:
            parsed = quantity.parse(amount)
            total = parsed if total is None else total + parsed
    sidecars: Any = None
    peak: Any = None
    for container in spec.get("initContainers") or ():
        amount = ((container.get("resources") or {}).get(member) or {}).get(name)
        if amount is None:
            continue
        parsed = quantity.parse(amount)
        if container.get("restartPolicy") == "Always":
            total = parsed if total is None else total + parsed
            sidecars = parsed if sidecars is None else sidecars + parsed
            parsed = sidecars
        elif sidecars is not None:
            parsed = parsed + sidecars
        if peak is None or parsed > peak:
            peak = parsed
    if peak is not None and (total is None or peak > total):
        total = peak
    return None if total is None else str(total)


def _pod_resources(spec: Tree) -> None:
    """Requests and huge page limits of a pod that states resources as a whole."""
    resources = spec.get("resources")
    if not resources:
        return
    limits: Tree = resources.get("limits") or {}
    requests: Tree = resources.get("requests") or {}
    stated = {
        name
        for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        for name in ((container.get("resources") or {}).get("limits") or {})
        if name.startswith("hugepages-")
    }
    for name in sorted(stated):
        if name not in limits and name not in requests:
            amount = _sum(spec, "limits", name)
            if amount is not None:
                limits[name] = amount
    if limits:
        _pod_requests(spec, limits, requests)
        resources["limits"] = limits
    if requests:
        resources["requests"] = requests


def _pod_requests(spec: Tree, limits: Tree, requests: Tree) -> None:
    for name in ("cpu", "memory", *(n for n in limits if n.startswith("hugepages-"))):
        if name not in requests and _shared(name):
            amount = None if name.startswith("hugepages-") else _sum(spec, "requests", name)
            if amount is not None:
                requests[name] = amount
            elif name in limits:
                requests[name] = limits[name]


def _pod(tree: Tree) -> None:
    spec = tree.get("spec")
    if not spec:
        return
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    host_network = spec.get("hostNetwork")
    for name in ("containers", "initContainers"):
        for container in spec.get(name) or ():
            _requests(container)
            if host_network:
                _host_ports(container)
    _pod_resources(spec)


_RBD = empty(pool="rbd", user="admin", keyring="/etc/ceph/keyring")
_MODE = absent(defaultMode=420)
_ISCSI = empty(iscsiInterface="default")

#: Type -> its rules, run before those of its members.
RULES: dict[str, tuple[Rule, ...]] = {
    "core/v1.ReplicationController": (_template_to_controller,),
    "core/v1.ReplicationControllerSpec": (absent(replicas=1),),
    "core/v1.Pod": (_pod,),
    "core/v1.PodStatus": (_pod_addresses,),
    "core/v1.PodSpec": (
        _account,
        empty(dnsPolicy="ClusterFirst", restartPolicy="Always"),
        absent(securityContext={}, terminationGracePeriodSeconds=30),
        empty(schedulerName="default-scheduler"),
    ),
    "core/v1.Container": (_container,),
    "core/v1.EphemeralContainerCommon": (_container,),
    "core/v1.ContainerPort": (empty(protocol="TCP"),),
    "core/v1.Probe": (empty(timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3),),
    "core/v1.GRPCAction": (absent(service=""),),
    "core/v1.HTTPGetAction": (empty(path="/", scheme="HTTP"),),
    "core/v1.ObjectFieldSelector": (empty(apiVersion="v1"),),
    "core/v1.Volume": (_volume,),
    "core/v1.ImageVolumeSource": (_image_volume,),
    "core/v1.SecretVolumeSource": (_MODE,),
    "core/v1.ConfigMapVolumeSource": (_MODE,),
    "core/v1.DownwardAPIVolumeSource": (_MODE,),
    "core/v1.ProjectedVolumeSource": (_MODE,),
    "core/v1.ServiceAccountTokenProjection": (absent(expirationSeconds=3600),),
    "core/v1.ISCSIVolumeSource": (_ISCSI,),
    "core/v1.ISCSIPersistentVolumeSource": (_ISCSI,),
    "core/v1.RBDVolumeSource": (_RBD,),
    "core/v1.RBDPersistentVolumeSource": (_RBD,),
    "core/v1.AzureDiskVolumeSource": (absent(cachingMode="ReadWrite", kind="Shared", fsType="ext4", readOnly=False),),
    "core/v1.ScaleIOVolumeSource": (empty(storageMode="ThinProvisioned", fsType="xfs"),),
    "core/v1.ScaleIOPersistentVolumeSource": (empty(storageMode="ThinProvisioned", fsType="xfs"),),
    "core/v1.HostPathVolumeSource": (absent(type=""),),
    "core/v1.NodeSpec": (_address_ranges,),
    "core/v1.Secret": (empty(type="Opaque"), _string_data),
    "core/v1.PersistentVolume": (within("status", empty(phase="Pending")),),
    "core/v1.PersistentVolumeSpec": (
        empty(persistentVolumeReclaimPolicy="Retain"),
        absent(volumeMode="Filesystem"),
    ),
    "core/v1.PersistentVolumeClaim": (within("status", empty(phase="Pending")),),
    "core/v1.PersistentVolumeClaimSpec": (absent(volumeMode="Filesystem"),),
    "core/v1.Service": (_balancer_mode,),
    "core/v1.ServiceSpec": (
        empty(sessionAffinity="None", type="ClusterIP"),
        _affinity,
        when(_exposed, empty(externalTrafficPolicy="Cluster")),
        when(equals("type", "ClusterIP", "NodePort", "LoadBalancer"), absent(internalTrafficPolicy="Cluster")),
        when(equals("type", "LoadBalancer"), absent(allocateLoadBalancerNodePorts=True)),
    ),
    "core/v1.ServicePort": (_service_port,),
    "core/v1.EndpointPort": (empty(protocol="TCP"),),
    "core/v1.Namespace": (name_label,),
    "core/v1.NamespaceStatus": (empty(phase="Active"),),
    "core/v1.NodeStatus": (when(filled("capacity"), copied("allocatable", "capacity")),),
    "core/v1.LimitRangeItem": (_limit_item,),
}

__all__ = ["RULES", "fresh", "has", "image_policy"]

"""Members of features that are off by default: a write drops them, as if the reference did not know them."""

from __future__ import annotations

from fastapi_core.apis.strategies.basics import Tree

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_PROJECTIONS = ("clusterTrustBundle", "podCertificate")


def drop_from_pod(spec: Tree) -> None:
    """Stop signals, groups of pods scheduled together, projected trust bundles and pod certificates."""
    spec.pop("schedulingGroup", None)
    for kind in _CONTAINERS:
        for container in spec.get(kind) or ():
            lifecycle = container.get("lifecycle")
            if (
                lifecycle
                and lifecycle.pop("stopSignal", None) is not None
                and not any(value is not None for value in lifecycle.values())
            ):
                del container["lifecycle"]
    for volume in spec.get("volumes") or ():
        projected = volume.get("projected")
        if projected:
            for source in projected.get("sources") or ():
                for name in _PROJECTIONS:
                    source.pop(name, None)


def pod(new: Tree, old: Tree | None) -> None:
    drop_from_pod(new.get("spec") or {})


def pod_template_kind(new: Tree, old: Tree | None) -> None:
    drop_from_pod((new.get("template") or {}).get("spec") or {})


def workload(new: Tree, old: Tree | None) -> None:
    """Kinds with a template in their spec."""
    template: Tree = (new.get("spec") or {}).get("template") or {}
    drop_from_pod(template.get("spec") or {})


def cron_job(new: Tree, old: Tree | None) -> None:
    workload((new.get("spec") or {}).get("jobTemplate") or {}, None)


def lease(new: Tree, old: Tree | None) -> None:
    """Coordinated leader election."""
    spec: Tree = new.get("spec") or {}
    for name in ("strategy", "preferredHolder"):
        spec.pop(name, None)


_LISTS = ("bools", "ints", "strings", "versions")


def resource_slice(new: Tree, old: Tree | None) -> None:
    """Attributes with several values, resources of nodes that devices stand for."""
    for device in (new.get("spec") or {}).get("devices") or ():
        device.pop("nodeAllocatableResourceMappings", None)
        for attribute in (device.get("attributes") or {}).values():
            for name in _LISTS:
                attribute.pop(name, None)


def csi_driver(new: Tree, old: Tree | None) -> None:
    """Nodes that have no driver yet."""
    if old is None or (old.get("spec") or {}).get("preventPodSchedulingIfMissing") is None:
        (new.get("spec") or {}).pop("preventPodSchedulingIfMissing", None)


DROPPED = {
    ("", "Pod"): pod,
    ("", "PodTemplate"): pod_template_kind,
    ("", "ReplicationController"): workload,
    ("apps", "DaemonSet"): workload,
    ("apps", "Deployment"): workload,
    ("apps", "ReplicaSet"): workload,
    ("apps", "StatefulSet"): workload,
    ("batch", "CronJob"): cron_job,
    ("batch", "Job"): workload,
    ("coordination.k8s.io", "Lease"): lease,
    ("resource.k8s.io", "ResourceSlice"): resource_slice,
    ("storage.k8s.io", "CSIDriver"): csi_driver,
}

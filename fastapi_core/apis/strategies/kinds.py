"""Small per-kind behaviour: namespaces, workloads, storage, services, certificates."""

from __future__ import annotations

from fastapi_core.apis.defaulting.core import name_label
from fastapi_core.apis.strategies.basics import Tree, desired, keep, keep_metadata
from fastapi_core.errors import FieldError
from fastapi_core.meta import names, time
from fastapi_core.meta.names import TEMPLATE_GENERATION
from fastapi_core.registry.metadata import qualified_finalizer
from fastapi_core.request.context import User

_HOSTNAME = "kubernetes.io/hostname"


# Namespaces


def prepare_namespace(new: Tree, old: Tree | None) -> None:
    """Finalizers are the namespace controller's: set on create, changed by the finalize subresource only."""
    if old is not None:
        keep(new.setdefault("spec", {}), old.get("spec") or {}, "finalizers")
        return
    name_label(new)
    new["status"] = {"phase": "Active"}
    spec = new.setdefault("spec", {})
    finalizers = spec.get("finalizers") or []
    if "kubernetes" not in finalizers:
        finalizers = [*finalizers, "kubernetes"]
    spec["finalizers"] = finalizers


def prepare_namespace_finalize(new: Tree, old: Tree) -> None:
    """PUT .../finalize: takes spec.finalizers and labels, never the status."""
    keep(new, old, "status")
    name_label(new)


def validate_namespace(new: Tree, old: Tree | None) -> list[FieldError]:
    errors: list[FieldError] = []
    for finalizer in (new.get("spec") or {}).get("finalizers") or ():
        texts = names.qualified_name(finalizer)
        errors += [FieldError("Invalid value", "spec.finalizers", text, finalizer) for text in texts]
        errors += qualified_finalizer(finalizer, "spec.finalizers")
    if old is not None:
        phase = (new.get("status") or {}).get("phase") or ""
        deleting = bool(new["metadata"].get("deletionTimestamp"))
        if not deleting and phase != "Active":
            text = "may only be 'Active' if `deletionTimestamp` is empty"
            errors.append(FieldError("Invalid value", "status.Phase", text, phase))
        elif deleting and phase != "Terminating":
            text = "may only be 'Terminating' if `deletionTimestamp` is not empty"
            errors.append(FieldError("Invalid value", "status.Phase", text, phase))
    return errors


def prepare_limit_range(new: Tree, old: Tree | None) -> None:
    """A limit range without a name is called by its uid."""
    metadata: Tree = new["metadata"]
    if old is None and not metadata.get("name"):
        metadata["name"] = metadata["uid"]


# Endpoints


def prepare_endpoint_slice(new: Tree, old: Tree | None) -> None:
    """The topology of the first versions goes with the first change; a node it named moves into its own member."""
    before = (old or {}).get("endpoints") or []
    endpoints = new.get("endpoints") or []
    if not any(item.get("deprecatedTopology") for item in endpoints) or (old is not None and endpoints == before):
        return
    known = {(item.get("deprecatedTopology") or {}).get(_HOSTNAME) for item in before}
    kept = []
    for item in endpoints:
        topology = item.get("deprecatedTopology") or {}
        node = topology.get(_HOSTNAME)
        item = {name: value for name, value in item.items() if name != "deprecatedTopology"}
        if node and node in known and item.get("nodeName") is None and not names.dns1123_subdomain(node):
            item["nodeName"] = node
        kept.append(item)
    new["endpoints"] = kept


# Workloads


def prepare_daemon_set(new: Tree, old: Tree | None) -> None:
    """Counts template changes in an annotation, as the first API versions did in a field."""
    metadata: Tree = new["metadata"]
    annotations = dict(metadata.get("annotations") or {})
    if old is None:
        number = 1
    else:
        text = (old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "0")
        number = int(text) if text.isdigit() else 0
        if (new.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template"):
            number += 1
    annotations[TEMPLATE_GENERATION] = str(number)
    metadata["annotations"] = annotations


def prepare_daemon_set_status(new: Tree, old: Tree | None) -> None:
    """The count is part of what is wanted."""
    metadata: Tree = new["metadata"]
    before = ((old or {}).get("metadata") or {}).get("annotations") or {}
    if TEMPLATE_GENERATION in before:
        annotations = {**(metadata.get("annotations") or {}), TEMPLATE_GENERATION: before[TEMPLATE_GENERATION]}
        metadata["annotations"] = annotations


def prepare_stateful_set(new: Tree, old: Tree | None) -> None:
    """Drops the setting of a feature that is off."""
    rolling = ((new.get("spec") or {}).get("updateStrategy") or {}).get("rollingUpdate")
    if rolling:
        rolling.pop("maxUnavailable", None)


def keep_labels(new: Tree, old: Tree | None) -> None:
    """A deployment's status writer cannot change labels."""
    if old is not None:
        keep(new["metadata"], old["metadata"], "labels")


def prepare_job(new: Tree, old: Tree | None) -> None:
    """A job selects its pods by its own uid, unless the user manages the selector."""
    spec: Tree = new.setdefault("spec", {})
    if old is not None or spec.get("manualSelector"):
        return
    metadata: Tree = new["metadata"]
    uid, name = metadata.get("uid") or "", metadata.get("name") or ""
    template: Tree = spec.setdefault("template", {})
    template_metadata: Tree = template.setdefault("metadata", {})
    labels = template_metadata.get("labels") or {}
    own = metadata.get("labels")
    inherits = own is None or own == labels
    for prefix in ("", "batch.kubernetes.io/"):
        if uid:
            labels.setdefault(f"{prefix}controller-uid", uid)
        labels.setdefault(f"{prefix}job-name", name)
    template_metadata["labels"] = dict(sorted(labels.items()))
    if inherits:
        metadata["labels"] = dict(template_metadata["labels"])
    selector = spec.get("selector") or {}
    match = selector.get("matchLabels") or {}
    if uid:
        match.setdefault("batch.kubernetes.io/controller-uid", uid)
    selector["matchLabels"] = match
    spec["selector"] = selector


# Storage


def prepare_volume(new: Tree, old: Tree | None) -> None:
    if old is None:
        new["status"] = {"phase": "Pending", "lastPhaseTransitionTime": time.now()}
        protect(new, "kubernetes.io/pv-protection")


def prepare_volume_status(new: Tree, old: Tree | None) -> None:
    """Notes when the phase changed."""
    status: Tree = dict(new.get("status") or {})
    before: Tree = (old or {}).get("status") or {}
    told, known = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
    if status.get("phase") != before.get("phase"):
        if told is None or told == known:
            status["lastPhaseTransitionTime"] = time.now()
    elif told is None and known is not None:
        status["lastPhaseTransitionTime"] = known
    if status:
        new["status"] = status


def prepare_claim(new: Tree, old: Tree | None) -> None:
    if old is None:
        new["status"] = {"phase": "Pending"}
        protect(new, "kubernetes.io/pvc-protection")
        _data_sources(new.setdefault("spec", {}), {})
    else:
        _data_sources(new.setdefault("spec", {}), old.get("spec") or {})


def prepare_api_service(new: Tree, old: Tree | None) -> None:
    """A group version that is answered here is available from the first."""
    if old is None and (new.get("spec") or {}).get("service") is None:
        told = {"reason": "Local", "message": "Local APIServices are always available"}
        new["status"] = {
            "conditions": [{"type": "Available", "status": "True", "lastTransitionTime": time.now(), **told}]
        }


def prepare_attributes_class(new: Tree, old: Tree | None) -> None:
    if old is None:
        protect(new, "kubernetes.io/vac-protection")


def protect(new: Tree, finalizer: str) -> None:
    """What may be in use cannot be deleted outright."""
    metadata: Tree = new["metadata"]
    finalizers = metadata.get("finalizers") or []
    if finalizer not in finalizers:
        metadata["finalizers"] = [*finalizers, finalizer]


def _data_sources(spec: Tree, before: Tree) -> None:
    """The old and the new member for a claim's source say the same; kinds only the new one knows are dropped, and what
    is in another namespace (an alpha feature), unless the claim had a source before."""
    fresh = before.get("dataSource") is None and before.get("dataSourceRef") is None
    if before.get("dataSourceRef") is None and (spec.get("dataSourceRef") or {}).get("namespace"):
        del spec["dataSourceRef"]
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if fresh and source is not None and reference is None:
        known = (source.get("apiGroup") or "", source.get("kind"))
        if known not in (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")):
            del spec["dataSource"]
    _same_source(spec)


def _same_source(spec: Tree) -> None:
    """Whichever member is missing takes over what the other says."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif source is None and reference is not None and not reference.get("namespace"):
        spec["dataSource"] = {name: value for name, value in reference.items() if name != "namespace"}


def prepare_node(new: Tree, old: Tree | None) -> None:
    """A new node takes no pods until its kubelet says it is ready. Nodes may bring a status when they register."""
    if old is not None:
        keep(new, old, "status")
        if (old.get("spec") or {}).get("configSource") is None:
            (new.get("spec") or {}).pop("configSource", None)
        return
    (new.get("spec") or {}).pop("configSource", None)
    (new.get("status") or {}).pop("config", None)
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    spec: Tree = new.setdefault("spec", {})
    taints = spec.get("taints") or []
    if not any(t.get("key") == taint["key"] and t.get("effect") == taint["effect"] for t in taints):
        spec["taints"] = [*taints, taint]


def prepare_node_status(new: Tree, old: Tree | None) -> None:
    """Configuration over the API is gone, but for nodes that still say they have it."""
    if old is not None and (old.get("status") or {}).get("config") is None:
        (new.get("status") or {}).pop("config", None)


def prepare_claim_status(new: Tree, old: Tree | None) -> None:
    """The state of a device goes with the device."""
    if old is None:
        return
    keep_metadata(new, old)
    before, left = _allocated(old), _allocated(new)
    status: Tree = new.get("status") or {}
    devices = [device for device in status.get("devices") or () if _device(device) not in before - left]
    if devices:
        status["devices"] = devices
    else:
        status.pop("devices", None)


def _device(tree: Tree) -> tuple[str, ...]:
    return tuple(tree.get(name) or "" for name in ("driver", "pool", "device", "shareID"))


def _allocated(claim: Tree) -> set[tuple[str, ...]]:
    allocation: Tree = (claim.get("status") or {}).get("allocation") or {}
    return {_device(result) for result in (allocation.get("devices") or {}).get("results") or ()}


# Certificates


def prepare_request(new: Tree, old: Tree | None) -> None:
    """Who asks is not for the client to say (`fill_requester`); a request itself never changes."""
    spec: Tree = new.setdefault("spec", {})
    if old is None:
        for member in _REQUESTER:
            spec.pop(member, None)
    else:
        keep(new, old, *(set(desired(new)) | set(desired(old))))


_REQUESTER = ("username", "uid", "groups", "extra")


def fill_requester(new: Tree, user: User) -> None:
    """Write the user of a create request into a certificate signing request."""
    spec: Tree = new.setdefault("spec", {})
    extra = {key: list(values) for key, values in user.extra.items()}
    for member, value in zip(_REQUESTER, (user.name, user.uid, list(user.groups), extra), strict=True):
        if value:
            spec[member] = value


# Definitions


def prepare_definition(new: Tree, old: Tree | None) -> None:
    """A CustomResourceDefinition has stored what it stores now, and what it stored before."""
    versions = (new.get("spec") or {}).get("versions") or ()
    if old is not None:
        status: Tree = dict(new.get("status") or {})
        stored = list(status.get("storedVersions") or ())
        storage = [version.get("name") for version in versions if version.get("storage")][:1]
        stored += [name for name in storage if name not in stored]
        new["status"] = {**status, "storedVersions": stored}
    else:
        new["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": [version.get("name") or "" for version in versions if version.get("storage")][:1],
        }


def prepare_definition_status(new: Tree, old: Tree | None) -> None:
    """Who writes the status writes metadata, too, as with the reference, and cannot leave the stored versions empty."""
    status: Tree = dict(new.get("status") or {})
    if not status.get("storedVersions"):
        versions = (new.get("spec") or {}).get("versions") or ()
        status["storedVersions"] = [version.get("name") for version in versions if version.get("storage")]
        new["status"] = status


# Warnings


def ingress_warnings(new: Tree, old: Tree | None) -> list[str]:
    annotation = "kubernetes.io/ingress.class"
    if old is None and annotation in (new["metadata"].get("annotations") or {}):
        return [f"annotation \"{annotation}\" is deprecated, please use 'spec.ingressClassName' instead"]
    return []

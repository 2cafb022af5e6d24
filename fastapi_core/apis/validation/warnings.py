"""Warnings about what is accepted but deprecated, without effect or suspicious."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.formats import address_warnings, network_warnings
from fastapi_core.apis.validation.pod_warnings import (
    NODE_LABELS,
    VOLUMES,
    app_armor,
    claim_sizes,
    node_term,
    pod_spec,
)
from fastapi_core.apis.validation.quantities import amount
from fastapi_core.apis.validation.rules import Tree
from fastapi_core.later import later

if TYPE_CHECKING:
    from fastapi_core.apis.validation import config_warnings
    from fastapi_core.structural import nodes, structure
else:
    config_warnings = later("fastapi_core.apis.validation.config_warnings")
    structure = later("fastapi_core.structural.structure")
    nodes = later("fastapi_core.structural.nodes")

Warn = Callable[[Tree, Tree | None], list[str]]

_PERSISTENT: Final = ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd")
_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_RECYCLE: Final = (
    "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."
)
_BYTES: Final = ("memory", "ephemeral-storage")


def _surprising_name(tree: Tree, text: str) -> list[str]:
    name = (tree.get("metadata") or {}).get("name") or ""
    problems = formats.label(name) if name else []
    if not problems:
        return []
    return [
        (
            f"metadata.name: this is used in {text}, which can result in surprising behavior; "
            f"a DNS label is recommended: [{' '.join(problems)}]"
        )
    ]


def pod(new: Tree, old: Tree | None) -> list[str]:
    """On create only: people seldom update pods themselves."""
    if old is not None:
        return []
    own = app_armor(new) + _surprising_name(new, "the Pod's hostname")
    return own + pod_spec(new.get("spec") or {}, new.get("metadata") or {}, "")


def _template(template: Tree | None, path: str) -> list[str]:
    if not template:
        return []
    return pod_spec(template.get("spec") or {}, template.get("metadata") or {}, path + ".")


def _at(tree: Tree, path: str) -> Tree | None:
    value: Tree | None = tree
    for step in path.split("."):
        value = (value or {}).get(step)
    return value


def _changed(new: Tree, old: Tree | None) -> bool:
    """Whether what is wanted is new: the generation has just been counted up."""
    return old is None or new["metadata"].get("generation") != old["metadata"].get("generation")


def templated(path: str, *, named: bool = True, former: bool = False) -> Warn:
    """About the template of a kind, when the object is new or changed; and about the name of a new one, which its pods
    take over. `former`: after a change the old template is looked at, as the reference does it for one kind."""

    def warn(new: Tree, old: Tree | None) -> list[str]:
        if not _changed(new, old):
            return []
        out = _surprising_name(new, "Pod names and hostnames") if old is None and named else []
        return out + _template(_at(old if old is not None and former else new, path), path)

    return warn


_DAEMON = templated("spec.template", named=False)


def daemon_set(new: Tree, old: Tree | None) -> list[str]:
    """When the template changed."""
    if old is not None and _at(new, "spec.template") == _at(old, "spec.template"):
        return []
    return _DAEMON(new, old)


_STATEFUL = templated("spec.template", named=False)
_MANY: Final = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not "
    "be able to track completedIndexes when a big number of indexes fail"
)
_NO_ZONE: Final = (
    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)


def stateful_set(new: Tree, old: Tree | None) -> list[str]:
    out = _STATEFUL(new, old)
    spec: Tree = new.get("spec") or {}
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        at = f"spec.volumeClaimTemplates[{index}]"
        out += claim_sizes(claim.get("spec") or {}, at if old is None else at + ".Spec")
    if (spec.get("revisionHistoryLimit") or 0) < 0:
        text = "a negative value retains all historical revisions; a value >= 0 is recommended"
        out.append(f"spec.revisionHistoryLimit: {text}")
    return out


def _indexed(spec: Tree, path: str) -> list[str]:
    """Jobs with more indexes than can be kept track of."""
    many = (
        spec.get("completionMode") == "Indexed"
        and (spec.get("completions") or 0) > 100_000
        and (spec.get("parallelism") or 0) > 10_000
    )
    return [f"{path}: {_MANY}"] if many else []


def job(new: Tree, old: Tree | None) -> list[str]:
    if not _changed(new, old):
        return []
    name = _surprising_name(new, "Pod names and hostnames") if old is None else []
    spec: Tree = new.get("spec") or {}
    return [*name, *_indexed(spec, "spec"), *_template(spec.get("template"), "spec.template")]


def cron_job(new: Tree, old: Tree | None) -> list[str]:
    out = _surprising_name(new, "Pod names and hostnames") if old is None else []
    spec: Tree = new.get("spec") or {}
    if _changed(new, old):
        inner: Tree = (spec.get("jobTemplate") or {}).get("spec") or {}
        out += _indexed(inner, "spec.jobTemplate.spec")
        out += _template(inner.get("template"), "spec.jobTemplate.spec.template")
    if old is not None and "TZ" in (spec.get("schedule") or ""):
        out.append(_NO_ZONE)
    return out


def _class_annotation(new: Tree) -> Iterator[str]:
    if _STORAGE_CLASS in ((new.get("metadata") or {}).get("annotations") or ()):
        yield f'metadata.annotations[{_STORAGE_CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead'


def claim(new: Tree, old: Tree | None) -> list[str]:
    return [*_class_annotation(new), *claim_sizes(new.get("spec") or {}, "spec")]


def volume(new: Tree, old: Tree | None) -> list[str]:
    spec: Tree = new.get("spec") or {}
    out = [*_class_annotation(new)]
    needed = (spec.get("nodeAffinity") or {}).get("required") or {}
    for index, term in enumerate(needed.get("nodeSelectorTerms") or ()):
        out += node_term(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        out.append(f"spec.persistentVolumeReclaimPolicy: {_RECYCLE}")
    found = [VOLUMES[name] for name in _PERSISTENT if spec.get(name) is not None]
    return out + [f"spec.{shown}: {text}" for shown, text in found]


def storage_class(new: Tree, old: Tree | None) -> list[str]:
    return [
        f"allowedTopologies[{index}].matchLabelExpressions[{number}].key: {NODE_LABELS[item['key']]}"
        for index, term in enumerate(new.get("allowedTopologies") or ())
        for number, item in enumerate(term.get("matchLabelExpressions") or ())
        if item.get("key") in NODE_LABELS
    ]


def runtime_class(new: Tree, old: Tree | None) -> list[str]:
    keys = (new.get("scheduling") or {}).get("nodeSelector") or ()
    return [f"scheduling.nodeSelector: {NODE_LABELS[key]}" for key in keys if key in NODE_LABELS]


def resource_quota(new: Tree, old: Tree | None) -> list[str]:
    hard = (new.get("spec") or {}).get("hard") or {}
    out = []
    for name in ("cpu", *_BYTES):
        request, limit = hard.get(f"requests.{name}"), hard.get(f"limits.{name}")
        if request is not None and limit is not None and amount(limit) < amount(request):
            out.append(f"ResourceQuota requests.{name} ({request}) should be less than limits.{name} ({limit})")
    return out


_HINTS: Final = "service.kubernetes.io/topology-aware-hints"


def service(new: Tree, old: Tree | None) -> list[str]:
    spec: Tree = new.get("spec") or {}
    kind, first, external = spec.get("type") or "ClusterIP", spec.get("clusterIP"), spec.get("externalIPs") or ()
    headless = kind == "ClusterIP" and first == "None"
    balancer, name = spec.get("loadBalancerIP"), spec.get("externalName")
    out = []
    if _annotated(new, _HINTS):
        text = "please use service.kubernetes.io/topology-mode instead"
        out.append(f"annotation {_HINTS} is deprecated, {text}")
    if first and first != "None":
        for index, address in enumerate(spec.get("clusterIPs") or ()):
            out += address_warnings(address, f"spec.clusterIPs[{index}]")
    if headless:
        affinity = spec.get("sessionAffinity") != "None"
        for member, stated in (("loadBalancerIP", balancer), ("externalIPs", external), ("SessionAffinity", affinity)):
            if stated:
                out.append(f"spec.{member} is ignored for headless services")
    for index, address in enumerate(external):
        out += address_warnings(address, f"spec.externalIPs[{index}]")
    if external and not headless and kind != "ExternalName":
        out.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if balancer:
        out += address_warnings(balancer, "spec.loadBalancerIP")
    for index, value in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        out += network_warnings(value, f"spec.loadBalancerSourceRanges[{index}]")
    if external and kind == "ExternalName":
        out.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if name and kind != "ExternalName":
        out.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        out.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return out


def balancer_status(new: Tree, old: Tree | None) -> list[str]:
    status: Tree = (new.get("status") or {}).get("loadBalancer") or {}
    return [
        warning
        for index, item in enumerate(status.get("ingress") or ())
        if item.get("ip")
        for warning in address_warnings(item["ip"], f"status.loadBalancer.ingress[{index}]")
    ]


def pod_status(new: Tree, old: Tree | None) -> list[str]:
    status: Tree = new.get("status") or {}
    return [
        warning
        for member in ("podIPs", "hostIPs")
        for index, item in enumerate(status.get(member) or ())
        for warning in address_warnings(item.get("ip") or "", f"status.{member}[{index}].ip")
    ]


STATUS_WARNINGS: Final[dict[tuple[str, str], Warn]] = {
    ("", "Pod"): pod_status,
    ("", "Service"): balancer_status,
    ("networking.k8s.io", "Ingress"): balancer_status,
}


def endpoints(new: Tree, old: Tree | None) -> list[str]:
    """About addresses, unless the controller wrote them."""
    if _label(new, "endpoints.kubernetes.io/managed-by") == "endpoint-controller":
        return []
    return [
        warning
        for index, subset in enumerate(new.get("subsets") or ())
        for member in ("addresses", "notReadyAddresses")
        for number, item in enumerate(subset.get(member) or ())
        for warning in address_warnings(item.get("ip") or "", f"subsets[{index}].{member}[{number}].ip")
    ]


_SLICE_CONTROLLERS: Final = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")


def endpoint_slice(new: Tree, old: Tree | None) -> list[str]:
    out = []
    if old is None and new.get("addressType") == "FQDN":
        out.append("spec.addressType: FQDN endpoints are deprecated")
    if _label(new, "endpointslice.kubernetes.io/managed-by") not in _SLICE_CONTROLLERS:
        for index, item in enumerate(new.get("endpoints") or ()):
            for number, address in enumerate(item.get("addresses") or ()):
                out += address_warnings(address, f"endpoints[{index}].addresses[{number}]")
    return out


def network_policy(new: Tree, old: Tree | None) -> list[str]:
    spec: Tree = new.get("spec") or {}
    out = []
    for side, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(side) or ()):
            for number, peer in enumerate(rule.get(peers) or ()):
                block = peer.get("ipBlock")
                if block:
                    at = f"spec.{side}[{index}].{peers}[{number}].ipBlock"
                    out += network_warnings(block.get("cidr") or "", at + ".cidr")
                    for last, item in enumerate(block.get("except") or ()):
                        out += network_warnings(item, f"{at}.except[{last}]")
    return out


def node(new: Tree, old: Tree | None) -> list[str]:
    spec: Tree = new.get("spec") or {}
    out = []
    if spec.get("configSource") is not None:
        out.append("spec.configSource: the feature is removed")
    if spec.get("externalID"):
        out.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
    for index, value in enumerate(spec.get("podCIDRs") or ()):
        out += network_warnings(value, f"spec.podCIDRs[{index}]")
    return out


_MOUNTABLE: Final = "kubernetes.io/enforce-mountable-secrets"


def service_account(new: Tree, old: Tree | None) -> list[str]:
    """The annotation is reported when it comes, not on every later write."""
    if not _annotated(new, _MOUNTABLE) or (old is not None and _annotated(old, _MOUNTABLE)):
        return []
    text = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
    return [f"metadata.annotations[{_MOUNTABLE}]: {text}"]


def _label(tree: Tree, name: str) -> str:
    return ((tree.get("metadata") or {}).get("labels") or {}).get(name) or ""


def _annotated(tree: Tree, name: str) -> bool:
    return name in ((tree.get("metadata") or {}).get("annotations") or ())


def definition(new: Tree, old: Tree | None) -> list[str]:
    """Formats nobody checks; on an update only those that were not there before."""
    before = _unknown_formats(old) if old is not None else {}
    return [f'unrecognized format "{name}"' for name in _unknown_formats(new) if name not in before]


def _unknown_formats(tree: Tree) -> dict[str, None]:
    schemas = [
        (version.get("schema") or {}).get("openAPIV3Schema") or {}
        for version in (tree.get("spec") or {}).get("versions") or ()
    ]
    return {
        inner["format"]: None
        for schema in schemas
        for inner in structure.walk(schema)
        if inner.get("format") and not nodes.effective_format(inner["format"], nodes.types_of(inner))
    }


WARNINGS: Final[dict[tuple[str, str], Warn]] = {
    ("", "Endpoints"): endpoints,
    ("", "Node"): node,
    ("", "PersistentVolume"): volume,
    ("", "PersistentVolumeClaim"): claim,
    ("", "Pod"): pod,
    ("", "PodTemplate"): templated("template", named=False),
    ("", "ReplicationController"): templated("spec.template", former=True),
    ("", "ResourceQuota"): resource_quota,
    ("", "Secret"): lambda new, old: config_warnings.secret(new, old),
    ("", "Service"): service,
    ("", "ServiceAccount"): service_account,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): definition,
    ("apps", "DaemonSet"): daemon_set,
    ("apps", "Deployment"): templated("spec.template"),
    ("apps", "ReplicaSet"): templated("spec.template"),
    ("apps", "StatefulSet"): stateful_set,
    ("batch", "CronJob"): cron_job,
    ("batch", "Job"): job,
    ("discovery.k8s.io", "EndpointSlice"): endpoint_slice,
    ("networking.k8s.io", "NetworkPolicy"): network_policy,
    ("node.k8s.io", "RuntimeClass"): runtime_class,
    ("resource.k8s.io", "ResourceSlice"): lambda new, old: config_warnings.resource_slice(new, old),
    ("storage.k8s.io", "CSIDriver"): lambda new, old: config_warnings.csi_driver(new, old),
    ("storage.k8s.io", "StorageClass"): storage_class,
}

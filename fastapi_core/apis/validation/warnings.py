"""Warnings about what is accepted but deprecated, without effect or suspicious."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from fastapi_core.apis.validation import formats
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

_NODE_LABELS: Final = {
    old: f'deprecated since {since}; use "{new}" instead'
    for old, since, new in (
        ("beta.kubernetes.io/arch", "v1.14", "kubernetes.io/arch"),
        ("beta.kubernetes.io/os", "v1.14", "kubernetes.io/os"),
        ("failure-domain.beta.kubernetes.io/region", "v1.17", "topology.kubernetes.io/region"),
        ("failure-domain.beta.kubernetes.io/zone", "v1.17", "topology.kubernetes.io/zone"),
        ("beta.kubernetes.io/instance-type", "v1.17", "node.kubernetes.io/instance-type"),
    )
}
_POD_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "seccomp.security.alpha.kubernetes.io/pod": 'non-functional in v1.27+; use the "seccompProfile" field instead',
}
_CONTAINER_ANNOTATIONS: Final = {
    "container.seccomp.security.alpha.kubernetes.io/": 'non-functional in v1.27+; use the "seccompProfile" field instead',
    "container.apparmor.security.beta.kubernetes.io/": 'deprecated since v1.30; use the "appArmorProfile" field instead',
}
_VOLUMES: Final = {
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_PERSISTENT: Final = ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd")
_BYTES: Final = ("memory", "ephemeral-storage")
_NO_SELECTOR: Final = "a null labelSelector results in matching no pod"
_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_RECYCLE: Final = (
    "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."
)
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def _fractional(text: str, path: str) -> tuple[str, ...]:
    if amount(text).nanos % 1_000_000_000:
        return (f'{path}: fractional byte value "{text}" is invalid, must be an integer',)
    return ()


def _term(term: Tree, path: str) -> Iterator[str]:
    for index, item in enumerate(term.get("matchExpressions") or ()):
        if item.get("key") in _NODE_LABELS:
            yield f"{path}.matchExpressions[{index}].key: {_NODE_LABELS[item['key']]}"


def _node_affinity(affinity: Tree, path: str) -> Iterator[str]:
    needed = affinity.get(_REQUIRED) or {}
    for index, term in enumerate(needed.get("nodeSelectorTerms") or ()):
        yield from _term(term, f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}]")
    for index, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        yield from _term(preferred.get("preference") or {}, f"{path}.{_PREFERRED}[{index}].preference")


def _pod_affinity(affinity: Tree, path: str) -> Iterator[str]:
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        if term.get("labelSelector") is None:
            yield f"{path}.{_REQUIRED}[{index}].labelSelector: {_NO_SELECTOR}"
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
            yield f"{path}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NO_SELECTOR}"


def _placement(spec: Tree, path: str) -> Iterator[str]:
    for key in spec.get("nodeSelector") or ():
        if key in _NODE_LABELS:
            yield f"{path}.nodeSelector[{key}]: {_NODE_LABELS[key]}"
    node = (spec.get("affinity") or {}).get("nodeAffinity")
    if node:
        yield from _node_affinity(node, path + ".affinity.nodeAffinity")
    for index, item in enumerate(spec.get("topologySpreadConstraints") or ()):
        at = f"{path}.topologySpreadConstraints[{index}]"
        if item.get("topologyKey") in _NODE_LABELS:
            yield f"{at}.topologyKey: {_NODE_LABELS[item['topologyKey']]}"
        if item.get("labelSelector") is None:
            yield f"{at}.labelSelector: {_NO_SELECTOR}"


def _annotations(metadata: Tree, path: str) -> Iterator[str]:
    for key in metadata.get("annotations") or ():
        if key in _POD_ANNOTATIONS:
            yield f"{path}.annotations[{key}]: {_POD_ANNOTATIONS[key]}"
        elif key.startswith("container."):
            for prefix, text in _CONTAINER_ANNOTATIONS.items():
                if key.startswith(prefix):
                    yield f"{path}.annotations[{key}]: {text}"


def _volumes(volumes: list[Tree], path: str) -> Iterator[str]:
    for index, volume in enumerate(volumes):
        for name in volume:
            if name in _VOLUMES and volume[name] is not None:
                yield f"{path}[{index}].{name}: {_VOLUMES[name]}"
        claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if claim:
            at = f"{path}[{index}].ephemeral.volumeClaimTemplate"
            yield from _claim_sizes(claim.get("spec") or {}, at + ".spec")


def _container(container: Tree, path: str, out: list[str]) -> None:
    resources = container.get("resources")
    if resources:
        for side in ("limits", "requests"):
            amounts = resources.get(side)
            if amounts:
                for name in _BYTES:
                    if name in amounts:
                        out += _fractional(amounts[name], f"{path}.resources.{side}[{name}]")
    variables = container.get("env")
    if variables and len({item.get("name") or "" for item in variables}) < len(variables):
        out += _hidden(variables, path)
    ports = container.get("ports")
    if ports and len(ports) > 1:
        out += _ports(ports, path + ".ports")


def _hidden(variables: list[Tree], path: str) -> Iterator[str]:
    names: set[str] = set()
    for index, item in enumerate(variables):
        name = item.get("name") or ""
        if name in names:
            yield f'{path}.env[{index}]: hides previous definition of "{name}", which may be dropped when using apply'
        names.add(name)


def _ports(ports: list[Tree], path: str) -> Iterator[str]:
    first: dict[tuple[Any, ...], int] = {}
    for index, port in enumerate(ports):
        key = tuple(port.get(name) or "" for name in ("containerPort", "protocol", "hostPort", "hostIP"))
        earlier = first.setdefault(key, index)
        if earlier != index:
            yield f"{path}[{index}]: duplicate port definition with {path}[{earlier}]"


def _duplicates(items: list[Tree], member: str, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        value = item.get(member) or ""
        if member == "name" and not value:
            yield f'{path}[{index}].name: invalid empty name ""'
        elif value in seen:
            yield f'{path}[{index}].{member}: duplicate {member} "{value}"'
        seen.add(value)


def pod_spec(spec: Tree, metadata: Tree, path: str) -> list[str]:
    """About a pod or a template; `path` is empty or ends in a dot."""
    at = path + "spec"
    out: list[str] = []
    if "nodeSelector" in spec or "affinity" in spec or "topologySpreadConstraints" in spec:
        out += _placement(spec, at)
    if metadata.get("annotations"):
        out += _annotations(metadata, path + "metadata")
    if spec.get("volumes"):
        out += _volumes(spec["volumes"], at + ".volumes")
    if spec.get("hostAliases"):
        out += _duplicates(spec["hostAliases"], "ip", at + ".hostAliases")
    if spec.get("imagePullSecrets"):
        out += _duplicates(spec["imagePullSecrets"], "name", at + ".imagePullSecrets")
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            _container(container, f"{at}.{kind}[{index}]", out)
    if spec.get("overhead"):
        for name in _BYTES:
            if name in spec["overhead"]:
                out += _fractional(spec["overhead"][name], f"{at}.overhead[{name}]")
    if spec.get("affinity"):
        for name in ("podAffinity", "podAntiAffinity"):
            part = spec["affinity"].get(name)
            if part:
                out += _pod_affinity(part, f"{at}.affinity.{name}")
    return out


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
    own = _surprising_name(new, "the Pod's hostname")
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


def templated(path: str, *, named: bool = True) -> Warn:
    """About the template of a kind, when it is new; and about the kind's name, which its pods take over."""

    def warn(new: Tree, old: Tree | None) -> list[str]:
        out: list[str] = []
        if old is None and named:
            out += _surprising_name(new, "Pod names and hostnames")
        template = _at(new, path)
        if old is None or template != _at(old, path):
            out += _template(template, path)
        return out

    return warn


_STATEFUL = templated("spec.template")
_JOB = templated("spec.template")


def stateful_set(new: Tree, old: Tree | None) -> list[str]:
    out = _STATEFUL(new, old)
    spec: Tree = new.get("spec") or {}
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        out += _claim_sizes(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    if (spec.get("revisionHistoryLimit") or 0) < 0:
        text = "a negative value retains all historical revisions; a value >= 0 is recommended"
        out.append(f"spec.revisionHistoryLimit: {text}")
    return out


def job(new: Tree, old: Tree | None) -> list[str]:
    out = _JOB(new, old)
    spec: Tree = new.get("spec") or {}
    if (
        spec.get("completionMode") == "Indexed"
        and (spec.get("completions") or 0) > 100_000
        and (spec.get("parallelism") or 0) > 10_000
    ):
        out.append(
            "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes "
            "might not be able to track completedIndexes when a big number of indexes fail"
        )
    return out


def _claim_sizes(spec: Tree, path: str) -> Iterator[str]:
    resources: Tree = spec.get("resources") or {}
    for side in ("requests", "limits"):
        size = (resources.get(side) or {}).get("storage")
        if size is not None:
            yield from _fractional(size, f"{path}.resources.{side}[storage]")


def _class_annotation(new: Tree) -> Iterator[str]:
    if _STORAGE_CLASS in ((new.get("metadata") or {}).get("annotations") or ()):
        yield f'metadata.annotations[{_STORAGE_CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead'


def claim(new: Tree, old: Tree | None) -> list[str]:
    return [*_class_annotation(new), *_claim_sizes(new.get("spec") or {}, "spec")]


def volume(new: Tree, old: Tree | None) -> list[str]:
    spec: Tree = new.get("spec") or {}
    out = [*_class_annotation(new)]
    needed = (spec.get("nodeAffinity") or {}).get("required") or {}
    for index, term in enumerate(needed.get("nodeSelectorTerms") or ()):
        out += _term(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        out.append(f"spec.persistentVolumeReclaimPolicy: {_RECYCLE}")
    found = [name for name in _PERSISTENT if spec.get(name) is not None]
    return out + [f"spec.{'storageOS' if name == 'storageos' else name}: {_VOLUMES[name]}" for name in found]


def storage_class(new: Tree, old: Tree | None) -> list[str]:
    return [
        f"allowedTopologies[{index}].matchLabelExpressions[{number}].key: {_NODE_LABELS[item['key']]}"
        for index, term in enumerate(new.get("allowedTopologies") or ())
        for number, item in enumerate(term.get("matchLabelExpressions") or ())
        if item.get("key") in _NODE_LABELS
    ]


def runtime_class(new: Tree, old: Tree | None) -> list[str]:
    keys = (new.get("scheduling") or {}).get("nodeSelector") or ()
    return [f"scheduling.nodeSelector: {_NODE_LABELS[key]}" for key in keys if key in _NODE_LABELS]


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
    out = []
    if _annotated(new, _HINTS):
        text = "please use service.kubernetes.io/topology-mode instead"
        out.append(f"annotation {_HINTS} is deprecated, {text}")
    if (spec.get("type") or "ClusterIP") == "ClusterIP" and spec.get("clusterIP") == "None":
        if spec.get("externalIPs"):
            out.append("spec.externalIPs is ignored for headless services")
        if (spec.get("sessionAffinity") or "None") != "None":
            out.append("spec.SessionAffinity is ignored for headless services")
    elif spec.get("externalIPs"):
        out.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.get("trafficDistribution") == "PreferClose":
        out.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return out


def node(new: Tree, old: Tree | None) -> list[str]:
    spec: Tree = new.get("spec") or {}
    out = []
    if spec.get("configSource") is not None:
        text = "the spec.configSource feature was removed in v1.26"
        out.append(f"spec.configSource: {text}")
    if spec.get("externalID"):
        out.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
    return out


_MOUNTABLE: Final = "kubernetes.io/enforce-mountable-secrets"


def service_account(new: Tree, old: Tree | None) -> list[str]:
    """The annotation is reported when it comes, not on every later write."""
    if not _annotated(new, _MOUNTABLE) or (old is not None and _annotated(old, _MOUNTABLE)):
        return []
    text = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
    return [f"metadata.annotations[{_MOUNTABLE}]: {text}"]


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
    ("", "Node"): node,
    ("", "PersistentVolume"): volume,
    ("", "PersistentVolumeClaim"): claim,
    ("", "Pod"): pod,
    ("", "PodTemplate"): templated("template", named=False),
    ("", "ReplicationController"): templated("spec.template"),
    ("", "ResourceQuota"): resource_quota,
    ("", "Secret"): lambda new, old: config_warnings.secret(new, old),
    ("", "Service"): service,
    ("", "ServiceAccount"): service_account,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): definition,
    ("apps", "DaemonSet"): templated("spec.template"),
    ("apps", "Deployment"): templated("spec.template"),
    ("apps", "ReplicaSet"): templated("spec.template"),
    ("apps", "StatefulSet"): stateful_set,
    ("batch", "CronJob"): templated("spec.jobTemplate.spec.template"),
    ("batch", "Job"): job,
    ("node.k8s.io", "RuntimeClass"): runtime_class,
    ("storage.k8s.io", "CSIDriver"): lambda new, old: config_warnings.csi_driver(new, old),
    ("storage.k8s.io", "StorageClass"): storage_class,
}

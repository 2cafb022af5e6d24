"""Warnings about pods and the templates of pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from fastapi_core.apis.strategies.app_armor import ANNOTATION as APP_ARMOR
from fastapi_core.apis.strategies.app_armor import field_of
from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.quantities import amount
from fastapi_core.apis.validation.rules import Tree
from fastapi_core.errors import go_quote

NODE_LABELS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_SECCOMP_TEXT: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_APP_ARMOR_TEXT: Final = 'deprecated since v1.30; use the "appArmorProfile" field instead'
#: Kinds of volumes that are going away, in the order in which they are looked for; and the name shown.
VOLUMES: Final = {
    "photonPersistentDisk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "gitRepo": ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    "scaleIO": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "flocker": ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "quobyte": ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}
_BYTES: Final = ("memory", "ephemeral-storage")
_NO_SELECTOR: Final = "a null labelSelector results in matching no pod"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_KINDS: Final = ("initContainers", "containers", "ephemeralContainers")
_GRACE: Final = "must be >= 0; negative values are invalid and will be treated as 1"
#: So many equal ports are compared with each further one: the headers of an answer do not hold more warnings anyway.
_MOST_TWINS: Final = 16
#: A file that a volume makes: its path and what it comes from.
File = tuple[str, str]


def fractional(text: str, path: str) -> tuple[str, ...]:
    """Bytes come whole."""
    if -(-amount(text).nanos // 1_000_000) % 1000:
        return (f"{path}: fractional byte value {go_quote(text)} is invalid, must be an integer",)
    return ()


def claim_sizes(spec: Tree, path: str) -> Iterator[str]:
    resources: Tree = spec.get("resources") or {}
    for side in ("requests", "limits"):
        size = (resources.get(side) or {}).get("storage")
        if size is not None:
            yield from fractional(size, f"{path}.resources.{side}[storage]")


def node_term(term: Tree, path: str, *, values: bool = False) -> Iterator[str]:
    """About the expressions of a node selector term, and about values that no label can have."""
    for index, item in enumerate(term.get("matchExpressions") or ()):
        at, key = f"{path}.matchExpressions[{index}]", item.get("key")
        if key in NODE_LABELS:
            yield f"{at}.key: {key} is {NODE_LABELS[key]}"
        if values:
            for number, value in enumerate(item.get("values") or ()):
                for problem in formats.label_value(value):
                    yield f"{at}.values[{number}]: {value} is invalid, {problem}"


def _placement(spec: Tree, path: str) -> Iterator[str]:
    for key in sorted(spec.get("nodeSelector") or ()):
        if key in NODE_LABELS:
            yield f"{path}.nodeSelector[{key}]: {NODE_LABELS[key]}"
    node: Tree = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    at = path + ".affinity.nodeAffinity"
    for index, term in enumerate((node.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        yield from node_term(term, f"{at}.{_REQUIRED}.nodeSelectorTerms[{index}]")
    for index, preferred in enumerate(node.get(_PREFERRED) or ()):
        yield from node_term(preferred.get("preference") or {}, f"{at}.{_PREFERRED}[{index}].preference", values=True)
    for index, item in enumerate(spec.get("topologySpreadConstraints") or ()):
        at = f"{path}.topologySpreadConstraints[{index}]"
        key = item.get("topologyKey")
        if key in NODE_LABELS:
            yield f"{at}.topologyKey: {key} is {NODE_LABELS[key]}"
        if item.get("labelSelector") is None:
            yield f"{at}.labelSelector: {_NO_SELECTOR}"


def _pod_affinity(affinity: Tree, path: str) -> Iterator[str]:
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        if term.get("labelSelector") is None:
            yield f"{path}.{_REQUIRED}[{index}].labelSelector: {_NO_SELECTOR}"
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
            yield f"{path}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NO_SELECTOR}"


# Volumes


def _volumes(volumes: list[Tree], path: str) -> Iterator[str]:
    for index, volume in enumerate(volumes):
        for name, (shown, text) in VOLUMES.items():
            if name == "cephfs":
                claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
                if claim:
                    yield from claim_sizes(
                        claim.get("spec") or {}, f"{path}[{index}].ephemeral.volumeClaimTemplate.spec"
                    )
            if volume.get(name) is not None:
                yield f"{path}[{index}].{shown}: {text}"
    for volume in volumes:
        yield from _overlaps(volume)


def _files(items: Iterable[Tree] | None, source: str = "") -> list[File]:
    return [(item.get("path") or "", source) for item in items or ()]


def _projected(source: Tree) -> list[File]:
    """The files of one source of a projected volume."""
    for member, word in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if (source.get(member) or {}).get("items"):
            return _files(source[member]["items"], f"{word} {go_quote(source[member].get('name') or '')}")
    if (source.get("downwardAPI") or {}).get("items"):
        return _files(source["downwardAPI"]["items"], "DownwardAPI")
    if source.get("serviceAccountToken") is not None:
        return _files([source["serviceAccountToken"]], "ServiceAccountToken")
    bundle = source.get("clusterTrustBundle")
    if bundle is not None:
        name = bundle.get("name") if bundle.get("name") is not None else bundle.get("signerName")
        return _files([bundle], f"ClusterTrustBundle {go_quote(name or '')}")
    certificate: Tree = source.get("podCertificate") or {}
    members = (
        ("certificateChainPath", "chain"),
        ("keyPath", "key"),
        ("credentialBundlePath", "credential bundle"),
    )
    return [(certificate[member], f"PodCertificate {word}") for member, word in members if certificate.get(member)]


def _overlaps(volume: Tree) -> Iterator[str]:
    """Files of one volume that stand in each other's way."""
    name = go_quote(volume.get("name") or "")
    for member, title, word in (("configMap", "name", "ConfigMap"), ("secret", "secretName", "Secret")):
        source = volume.get(member)
        if source and source.get("items"):
            about = f"{word} {go_quote(source.get(title) or '')}"
            yield from _clashes(_files(source["items"]), [], f"volume {name} ({about})")
    if (volume.get("downwardAPI") or {}).get("items"):
        yield from _clashes(_files(volume["downwardAPI"]["items"]), [], f"volume {name} (DownwardAPI)")
    known: list[File] = []
    for source in (volume.get("projected") or {}).get("sources") or ():
        if not any(value is not None for value in source.values()):
            yield f"volume {name} (Projected) has no sources provided"
        else:
            yield from _clashes(_projected(source), known, f"volume {name} (Projected)")


def _clashes(files: list[File], known: list[File], volume: str) -> Iterator[str]:
    for path, source in files:
        one = (path.rstrip("/"), source)
        for other in known if one[0] else ():
            if other[0] and (f"{other[0]}/".startswith(f"{one[0]}/") or f"{one[0]}/".startswith(f"{other[0]}/")):
                yield f"{volume}: overlapping paths: {_file(one)} with {_file(other)}"
        known.append(one)


def _file(one: File) -> str:
    return f"{go_quote(one[0])} ({one[1]})" if one[1] else go_quote(one[0])


# Containers


def _containers(spec: Tree, path: str) -> list[tuple[Tree, str]]:
    return [
        (container, f"{path}.{kind}[{index}]")
        for kind in _KINDS
        for index, container in enumerate(spec.get(kind) or ())
    ]


def _container(container: Tree, path: str) -> Iterator[str]:
    resources = container.get("resources")
    if resources:
        for name in _BYTES:
            for side in ("limits", "requests"):
                text = (resources.get(side) or {}).get(name)
                if text is not None:
                    yield from fractional(text, f"{path}.resources.{side}[{name}]")
    variables = container.get("env")
    if variables and len({item.get("name") or "" for item in variables}) < len(variables):
        yield from _hidden(variables, path)


def _hidden(variables: list[Tree], path: str) -> Iterator[str]:
    """A later variable of the same name may only add to what the earlier one says."""
    names: set[str] = set()
    for index, item in enumerate(variables):
        name = item.get("name") or ""
        if name in names:
            value, reference = item.get("value") or "", f"$({name})"
            if item.get("valueFrom") is not None or value == reference or reference not in value:
                text = f"hides previous definition of {go_quote(name)}, which may be dropped when using apply"
                yield f"{path}.env[{index}]: {text}"
        names.add(name)


def _ports(containers: list[tuple[Tree, str]]) -> Iterator[str]:
    """Ports of all containers: the same one twice, and names used twice."""
    ports = [
        (port, f"{path}.ports[{index}]")
        for container, path in containers
        for index, port in enumerate(container.get("ports") or ())
    ]
    known: dict[tuple[Any, Any], list[tuple[Tree, str]]] = {}
    for port, at in ports:
        address, host = port.get("hostIP") or "", port.get("hostPort") or 0
        if address and not host:
            yield f"{at}: hostIP set without hostPort: {_printed(port)}"
        others = known.setdefault((port.get("containerPort"), port.get("protocol")), [])
        for other, where in others:
            problem = _same(address, host, other.get("hostIP") or "", other.get("hostPort") or 0)
            if problem:
                yield f"{at}: {problem} port definition with {where}"
        if len(others) < _MOST_TWINS:
            others.append((port, at))
    names: dict[str, str] = {}
    for port, at in ports:
        name = port.get("name")
        first = names.setdefault(name, at) if name else at
        if first != at:
            used = f"services and probes that select ports by name will use {first}"
            yield f"{at}: duplicate port name {go_quote(name or '')} with {first}, {used}"


def _same(address: str, host: int, other_address: str, other_host: int) -> str:
    """In which way two ports with the same number in the container are the same on the host."""
    if (address, host) == (other_address, other_host):
        return "duplicate"
    if not host or not other_host:
        return "overlapping"
    return "dangerously ambiguous" if host == other_host and bool(address) != bool(other_address) else ""


def _printed(port: Tree) -> str:
    """A port as the reference prints its struct."""
    return (
        f"{{Name:{port.get('name') or ''} HostPort:{port.get('hostPort') or 0} ContainerPort:"
        f"{port.get('containerPort') or 0} Protocol:{port.get('protocol') or ''} HostIP:{port.get('hostIP') or ''}}}"
    )


def _annotated(spec: Tree, annotations: dict[str, str], containers: list[tuple[Tree, str]], path: str) -> Iterator[str]:
    """Security settings from the time of annotations, as far as no field says the same."""
    whole: Tree = spec.get("securityContext") or {}
    if _SECCOMP in annotations and whole.get("seccompProfile") is None:
        yield f"{path}.annotations[{_SECCOMP}]: {_SECCOMP_TEXT}"
    for container, _ in containers:
        own: Tree = container.get("securityContext") or {}
        key = _SECCOMP_CONTAINER + (container.get("name") or "")
        if key in annotations and own.get("seccompProfile") is None:
            yield f"{path}.annotations[{key}]: {_SECCOMP_TEXT}"
        key = APP_ARMOR + (container.get("name") or "")
        if key in annotations and path != "metadata" and own.get("appArmorProfile") is None:
            pod: Tree | None = whole.get("appArmorProfile")
            if pod is None or field_of(annotations[key]) != pod:
                yield f"{path}.annotations[{key}]: {_APP_ARMOR_TEXT}"


def app_armor(tree: Tree) -> list[str]:
    """About the annotations of a new pod that a field is about to be made of, or cannot be."""
    annotations: dict[str, str] = (tree.get("metadata") or {}).get("annotations") or {}
    spec: Tree = tree.get("spec") or {}
    if not any(key.startswith(APP_ARMOR) for key in annotations) or (spec.get("os") or {}).get("name") == "windows":
        return []
    pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    out = []
    for container, _ in _containers(spec, ""):
        key = APP_ARMOR + (container.get("name") or "")
        if key in annotations and (container.get("securityContext") or {}).get("appArmorProfile") is None:
            made = field_of(annotations[key])
            if made is None or made != pod:
                out.append(f"metadata.annotations[{key}]: {_APP_ARMOR_TEXT}")
    return out


# The whole


def _duplicates(items: list[Tree], member: str, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        value = item.get(member) or ""
        if value in seen:
            yield f"{path}[{index}].{member}: duplicate {member} {go_quote(value)}"
        seen.add(value)


def _lists(spec: Tree, path: str) -> Iterator[str]:
    if spec.get("volumes"):
        yield from _volumes(spec["volumes"], path + ".volumes")
    if spec.get("hostAliases"):
        yield from _duplicates(spec["hostAliases"], "ip", path + ".hostAliases")
    secrets = spec.get("imagePullSecrets")
    if secrets:
        at = path + ".imagePullSecrets"
        yield from _duplicates(secrets, "name", at)
        for index, secret in enumerate(secrets):
            if not secret.get("name"):
                yield f'{at}[{index}].name: invalid empty name ""'
    for name in _BYTES if spec.get("overhead") else ():
        if name in spec["overhead"]:
            yield from fractional(spec["overhead"][name], f"{path}.overhead[{name}]")


def pod_spec(spec: Tree, metadata: Tree, path: str) -> list[str]:
    """About a pod or a template; `path` is empty or ends in a dot."""
    at = path + "spec"
    out: list[str] = []
    if "nodeSelector" in spec or "affinity" in spec or "topologySpreadConstraints" in spec:
        out += _placement(spec, at)
    annotations = metadata.get("annotations")
    if annotations:
        out += (f"{path}metadata.annotations[{key}]: {_ANNOTATIONS[key]}" for key in _ANNOTATIONS if key in annotations)
    out += _lists(spec, at)
    containers = _containers(spec, at)
    if annotations:
        out += _annotated(spec, annotations, containers, path + "metadata")
    for container, where in containers:
        out += _container(container, where)
    if any(container.get("ports") for container, _ in containers):
        out += _ports(containers)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        out.append(f"{at}.terminationGracePeriodSeconds: {_GRACE}")
    if spec.get("affinity"):
        for name in ("podAffinity", "podAntiAffinity"):
            part = spec["affinity"].get(name)
            if part:
                out += _pod_affinity(part, f"{at}.affinity.{name}")
    for index, server in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        out += formats.address_warnings(server, f"{at}.dnsConfig.nameservers[{index}]")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        out += formats.address_warnings(alias.get("ip") or "", f"{at}.hostAliases[{index}].ip")
    return out

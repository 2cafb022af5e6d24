"""Which objects belong to a node: its pods, and what they refer to.

Nothing is kept while no node asks. From the first question on the pods of each node and the volumes of each claim are
followed; what a pod refers to is worked out once and stays with the cached object.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi_core._ext.selector import selectable_fields
from fastapi_core.obs import logs
from fastapi_core.storage.interface import StorageError

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.storage.cacher.changes import WatchEvent
    from fastapi_core.storage.cacher.resource import ResourceCache

Tree = dict[str, Any]
References = frozenset[tuple[str, str]]
"""(resource, name) of objects in the pod's namespace."""

log = logs.get("node")

SECRETS, CONFIG_MAPS, CLAIMS, ACCOUNTS = "secrets", "configmaps", "persistentvolumeclaims", "serviceaccounts"
RESOURCE_CLAIMS, VOLUMES = "resourceclaims", "persistentvolumes"
MIRROR = "kubernetes.io/config.mirror"
_MEMO = object()

#: Volume sources that name a secret: source -> path of the name in it.
_VOLUME_SECRETS = {
    "azureFile": ("secretName",),
    "cephfs": ("secretRef", "name"),
    "cinder": ("secretRef", "name"),
    "csi": ("nodePublishSecretRef", "name"),
    "flexVolume": ("secretRef", "name"),
    "iscsi": ("secretRef", "name"),
    "rbd": ("secretRef", "name"),
    "scaleIO": ("secretRef", "name"),
    "secret": ("secretName",),
    "storageos": ("secretRef", "name"),
}
#: Of persistent volumes; where the second value is true the claim's namespace stands in for one that is missing.
_PERSISTENT_SECRETS = (
    ("cephfs", "secretRef", True),
    ("cinder", "secretRef", False),
    ("flexVolume", "secretRef", True),
    ("rbd", "secretRef", True),
    ("scaleIO", "secretRef", True),
    ("iscsi", "secretRef", True),
    ("storageos", "secretRef", False),
    ("csi", "nodePublishSecretRef", False),
    ("csi", "nodeStageSecretRef", False),
    ("csi", "nodeExpandSecretRef", False),
)


class NodeGraph:
    """What belongs to each node. Every method is about the state the caches show now."""

    def __init__(
        self, pods: ResourceCache, volumes: ResourceCache, attachments: ResourceCache, slices: ResourceCache
    ) -> None:
        self._pods = pods
        self._volumes = volumes
        self._attachments = attachments
        self._slices = slices
        self._of_node: dict[str, dict[str, CachedObject]] = {}
        self._node_of: dict[str, str] = {}
        self._of_claim: dict[tuple[str, str], dict[str, Tree]] = {}
        self._claim_of: dict[str, tuple[str, str]] = {}
        self._loaded = False

    # Following the caches

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        for cache, take in ((self._pods, self._take_pod), (self._volumes, self._take_volume)):
            try:
                for obj in cache.list().objects:
                    take(obj, deleted=False)
            except StorageError as error:
                log.error("Objects cannot be read, nodes do not get what depends on them", error, prefix=cache.prefix)
            cache.watch(since=cache.revision, deliver=partial(_follow, take))

    def _take_pod(self, obj: CachedObject, *, deleted: bool) -> None:
        key = obj.key
        node = "" if deleted else self._assigned(obj)
        former = self._node_of.pop(key, "")
        if former and former != node:
            del self._of_node[former][key]
            if not self._of_node[former]:
                del self._of_node[former]
        if node:
            self._node_of[key] = node
            self._of_node.setdefault(node, {})[key] = obj

    def _assigned(self, obj: CachedObject) -> str:
        if self._pods.extract is not None:
            return selectable_fields(obj, self._pods.extract).get("spec.nodeName", "")
        return (obj.tree().get("spec") or {}).get("nodeName") or ""

    def _take_volume(self, obj: CachedObject, *, deleted: bool) -> None:
        former = self._claim_of.pop(obj.name, None)
        if former is not None:
            del self._of_claim[former][obj.name]
            if not self._of_claim[former]:
                del self._of_claim[former]
        spec = {} if deleted else obj.tree().get("spec") or {}
        claim = spec.get("claimRef")
        if claim:
            key = claim.get("namespace") or "", claim.get("name") or ""
            self._claim_of[obj.name] = key
            self._of_claim.setdefault(key, {})[obj.name] = spec

    # Asking

    def has_pod(self, node: str, namespace: str, name: str) -> bool:
        self._load()
        return self._node_of.get(f"{self._pods.prefix}{namespace}/{name}") == node

    def refers(self, node: str, resource: str, namespace: str, name: str) -> bool:
        """Whether a pod of the node refers to an object, by itself or through a volume it has claimed."""
        self._load()
        if resource == VOLUMES:
            claim = self._claim_of.get(name)
            return claim is not None and self._in_pod(node, CLAIMS, *claim)
        if self._in_pod(node, resource, namespace, name):
            return True
        return resource == SECRETS and any(
            (namespace, name) in persistent_secrets(spec) for spec in self._claimed_by(node)
        )

    def _in_pod(self, node: str, resource: str, namespace: str, name: str) -> bool:
        wanted = resource, name
        pods = self._of_node.get(node, {})
        return any(pod.namespace == namespace and wanted in references(pod) for pod in pods.values())

    def _claimed_by(self, node: str) -> Iterator[Tree]:
        """Specs of the volumes that pods of the node have claimed."""
        if self._of_claim:
            for pod in self._of_node.get(node, {}).values():
                for resource, name in references(pod):
                    if resource == CLAIMS:
                        yield from self._of_claim.get((pod.namespace, name), {}).values()

    def has_attachment(self, node: str, name: str) -> bool:
        return _spec(self._attachments, name).get("nodeName") == node

    def has_slice(self, node: str, name: str) -> bool:
        return _spec(self._slices, name).get("nodeName") == node


def _follow(take: Any, events: list[WatchEvent]) -> None:
    for event in events:
        try:
            take(event.change.object, deleted=event.change.deleted)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.error("An object cannot be understood and gives nodes nothing", error, key=event.change.object.key)
            take(event.change.object, deleted=True)


def _spec(cache: ResourceCache, name: str) -> Tree:
    try:
        obj = cache.get(cache.prefix + name)
    except StorageError:
        return {}
    return {} if obj is None else obj.tree().get("spec") or {}


def references(pod: CachedObject) -> References:
    """What a pod refers to. Mirror pods, which nodes make themselves, give their node nothing."""
    known: References | None = pod.memo.get(_MEMO)
    if known is None:
        known = pod.memo[_MEMO] = frozenset(_references(pod.tree()))
    return known


def _references(pod: Tree) -> Iterator[tuple[str, str]]:
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    if MIRROR in (metadata.get("annotations") or {}):
        return
    yield from _named(ACCOUNTS, spec.get("serviceAccountName"))
    for secret in spec.get("imagePullSecrets") or ():
        yield from _named(SECRETS, secret.get("name"))
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            yield from _of_container(container)
    for volume in spec.get("volumes") or ():
        yield from _of_volume(volume, metadata["name"])
    generated = {
        entry.get("name"): entry.get("resourceClaimName") for entry in status.get("resourceClaimStatuses") or ()
    }
    for claim in spec.get("resourceClaims") or ():
        yield from _named(RESOURCE_CLAIMS, claim.get("resourceClaimName") or generated.get(claim.get("name")))
    yield from _named(RESOURCE_CLAIMS, (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName"))


def _named(resource: str, name: str | None) -> Iterator[tuple[str, str]]:
    if name:
        yield resource, name


def _of_container(container: Tree) -> Iterator[tuple[str, str]]:
    for source in container.get("envFrom") or ():
        yield from _named(SECRETS, (source.get("secretRef") or {}).get("name"))
        yield from _named(CONFIG_MAPS, (source.get("configMapRef") or {}).get("name"))
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        yield from _named(SECRETS, (source.get("secretKeyRef") or {}).get("name"))
        yield from _named(CONFIG_MAPS, (source.get("configMapKeyRef") or {}).get("name"))


def _of_volume(volume: Tree, pod: str) -> Iterator[tuple[str, str]]:
    for source, path in _VOLUME_SECRETS.items():
        found: Any = volume.get(source)
        for member in path:
            found = (found or {}).get(member)
        yield from _named(SECRETS, found)
    yield from _named(CONFIG_MAPS, (volume.get("configMap") or {}).get("name"))
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield from _named(SECRETS, (source.get("secret") or {}).get("name"))
        yield from _named(CONFIG_MAPS, (source.get("configMap") or {}).get("name"))
    if volume.get("persistentVolumeClaim"):
        yield from _named(CLAIMS, volume["persistentVolumeClaim"].get("claimName"))
    elif volume.get("ephemeral") is not None:
        yield CLAIMS, f"{pod}-{volume.get('name')}"


def persistent_secrets(spec: Tree) -> set[tuple[str, str]]:
    """(namespace, name) of the secrets a node needs for a persistent volume."""
    own = (spec.get("claimRef") or {}).get("namespace") or ""
    found = set()
    azure = spec.get("azureFile") or {}
    if azure.get("secretName"):
        found.add((azure.get("secretNamespace") or own, azure["secretName"]))
    for source, member, inherits in _PERSISTENT_SECRETS:
        reference = (spec.get(source) or {}).get(member) or {}
        if reference.get("name"):
            found.add((reference.get("namespace") or (own if inherits else ""), reference["name"]))
    return found

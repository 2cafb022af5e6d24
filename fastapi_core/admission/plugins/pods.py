"""Plugins that complete a new pod: its priority, how long it tolerates a lost node, its images, the zone it is in."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from fastapi_core.admission.chain import CREATE, UPDATE, Attributes, Plugin
from fastapi_core.admission.objects import Objects, decoded, is_core, pods
from fastapi_core.admission.refusals import all_of, forbidden
from fastapi_core.admission.tolerations import put
from fastapi_core.errors import FieldError
from fastapi_core.registry.definition import ResourceDefinition, Tree

TOLERATION_SECONDS = 300
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
HOSTNAME = "kubernetes.io/hostname"
TOPOLOGY = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
PREEMPT = "PreemptLowerPriority"
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


class Priority(Plugin):
    """Resolves priorityClassName, and keeps the default class the only one."""

    name = "Priority"

    def __init__(self, classes: Objects) -> None:
        self._classes = classes
        self._seen = -1
        self._default: Tree | None = None

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        classes = definition.plural == "priorityclasses" and definition.group == "scheduling.k8s.io"
        mine = classes and not subresource and operation in (CREATE, UPDATE)
        return mine or pods(operation, definition, subresource, CREATE, UPDATE)

    def admit(self, attributes: Attributes) -> None:
        pod = attributes.object
        if pod is None or attributes.definition.plural != "pods":
            return
        spec = pod["spec"]
        if attributes.operation == UPDATE:
            before = (attributes.old or {}).get("spec") or {}
            for member in ("priority", "preemptionPolicy"):
                if spec.get(member) is None and before.get(member) is not None:
                    spec[member] = before[member]
            return
        name = spec.get("priorityClassName") or ""
        found = self._classes.get("", name) if name else self.default()
        if found is None and name:
            raise forbidden(attributes, f"no PriorityClass with name {name} was found")
        value, policy = 0, PREEMPT
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
            value, policy = found.get("value", 0), found.get("preemptionPolicy") or policy
        given = spec.get("priority")
        if given is not None and given != value:
            raise forbidden(attributes, _computed(f"integer value of priority ({given})", value))
        spec["priority"] = value
        given = spec.get("preemptionPolicy")
        if given not in (None, policy):
            raise forbidden(attributes, _computed(f"string value of PreemptionPolicy ({given})", policy))
        spec["preemptionPolicy"] = policy

    def validate(self, attributes: Attributes) -> None:
        tree = attributes.object
        if tree is None or attributes.definition.plural == "pods" or not tree.get("globalDefault"):
            return
        known = self.default()
        if known is None:
            return
        name = known["metadata"]["name"]
        if attributes.operation == CREATE or name != tree["metadata"].get("name"):
            text = f"PriorityClass {name} is already marked as default. Only one default can exist"
            raise forbidden(attributes, text)

    def default(self) -> Tree | None:
        """The class of pods that name none: of several marked so the one with the lowest value."""
        cache = self._classes.store.cache
        if self._seen != cache.changes:
            marked = [decoded(c) for c in self._classes.list() if b'"globalDefault":true' in c.body]
            self._default = min(marked, key=lambda tree: int(tree.get("value", 0)), default=None)
            self._seen = cache.changes
        return self._default


def _computed(what: str, value: object) -> str:
    text = f"the {what} must not be provided in pod spec; priority admission controller computed {value}"
    return f"{text} from the given PriorityClass name"


class DefaultTolerationSeconds(Plugin):
    """A pod stays for a while on a node that is not ready or unreachable, unless it says otherwise."""

    name = "DefaultTolerationSeconds"

    def __init__(self, not_ready: int = TOLERATION_SECONDS, unreachable: int = TOLERATION_SECONDS) -> None:
        self._seconds = ((NOT_READY, not_ready), (UNREACHABLE, unreachable))

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return pods(operation, definition, subresource, CREATE, UPDATE)

    def admit(self, attributes: Attributes) -> None:
        if attributes.object is None:
            return
        spec = attributes.object["spec"]
        tolerations: list[Tree] = spec.get("tolerations") or []
        known = {t.get("key", "") for t in tolerations if t.get("effect", "") in ("", "NoExecute")}
        if "" in known:
            return
        added = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
            for key, seconds in self._seconds
            if key not in known
        ]
        if added:
            spec["tolerations"] = [*tolerations, *added]


class AlwaysPullImages(Plugin):
    """Images are pulled for every container, so that only who may pull an image can use it."""

    name = "AlwaysPullImages"

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return pods(operation, definition, subresource, CREATE, UPDATE)

    def admit(self, attributes: Attributes) -> None:
        if attributes.object is None or _no_new_images(attributes):
            return
        # The containers an update leaves alone may be those of the old object.
        attributes.object["spec"] = deepcopy(attributes.object.get("spec"))
        for _, holder, member in _pulled(attributes.object):
            holder[member] = "Always"

    def validate(self, attributes: Attributes) -> None:
        if attributes.object is None or _no_new_images(attributes):
            return
        wrong = [
            str(
                FieldError(
                    "Unsupported value", f"{path}.{member}", 'supported values: "Always"', holder.get(member, "")
                )
            )
            for path, holder, member in _pulled(attributes.object)
            if holder.get(member) != "Always"
        ]
        if wrong:
            raise forbidden(attributes, all_of(wrong))


def _pulled(pod: Tree) -> Iterator[tuple[str, Tree, str]]:
    """Everything with an image: its path, the tree and the member with the pull policy."""
    for group in _CONTAINERS:
        for index, container in enumerate(pod["spec"].get(group) or ()):
            yield f"spec.{group}[{index}]", container, "imagePullPolicy"
    for index, volume in enumerate(pod["spec"].get("volumes") or ()):
        if volume.get("image") is not None:
            yield f"spec.volumes[{index}].image", volume["image"], "pullPolicy"


def _no_new_images(attributes: Attributes) -> bool:
    """An update that only uses images the pod had before, whatever their policy."""
    if attributes.operation != UPDATE or attributes.old is None or attributes.object is None:
        return False
    known = {c.get("image") for group in _CONTAINERS for c in attributes.old["spec"].get(group) or ()}
    return all(c.get("image") in known for group in _CONTAINERS for c in attributes.object["spec"].get(group) or ())


class LimitPodHardAntiAffinityTopology(Plugin):
    """Pods keep others off their node at most, not off a whole zone."""

    name = "LimitPodHardAntiAffinityTopology"

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return pods(operation, definition, subresource, CREATE, UPDATE)

    def validate(self, attributes: Attributes) -> None:
        affinity = ((attributes.object or {}).get("spec") or {}).get("affinity") or {}
        terms = (affinity.get("podAntiAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for term in terms:
            key = term.get("topologyKey", "")
            if key != HOSTNAME:
                text = (
                    f"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {HOSTNAME}"
                )
                raise forbidden(attributes, f"{text} is allowed")


class ExtendedResourceToleration(Plugin):
    """A pod that asks for a device tolerates the taint that keeps others off nodes with it."""

    name = "ExtendedResourceToleration"

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return pods(operation, definition, subresource, CREATE, UPDATE)

    def admit(self, attributes: Attributes) -> None:
        if attributes.object is None:
            return
        spec = attributes.object["spec"]
        asked = {
            name
            for group in ("containers", "initContainers")
            for container in spec.get(group) or ()
            for name in (container.get("resources") or {}).get("requests") or ()
            if is_extended(name)
        }
        for name in sorted(asked):
            toleration = {"key": name, "operator": "Exists", "effect": "NoSchedule"}
            spec["tolerations"] = put(spec.get("tolerations") or (), toleration)


def is_extended(name: str) -> bool:
    """A resource that is neither Kubernetes' own nor a quota's name for one."""
    domain, slash, _ = name.partition("/")
    return bool(slash) and "kubernetes.io" not in domain and not name.startswith("requests.")


class PodTopologyLabels(Plugin):
    """A pod carries the zone and region of the node it is bound to."""

    name = "PodTopologyLabels"

    def __init__(self, nodes: Objects) -> None:
        self._nodes = nodes

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return operation == CREATE and is_core(definition, "pods") and subresource in ("", "binding")

    def admit(self, attributes: Attributes) -> None:
        tree = attributes.object or {}
        if attributes.subresource:
            target = tree.get("target") or {}
            node = target.get("name") if target.get("kind") == "Node" else None
        else:
            node = (tree.get("spec") or {}).get("nodeName")
        if not node:
            return
        found = self._nodes.find("", node)
        if found is None:
            return
        labels = found.labels()
        copied = {key: labels[key] for key in TOPOLOGY if key in labels}
        if copied:
            metadata = tree["metadata"]
            metadata["labels"] = dict(sorted({**copied, **(metadata.get("labels") or {})}.items()))

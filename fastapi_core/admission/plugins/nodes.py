"""Plugins about nodes, and about what a pod asks of the node it is on."""

from __future__ import annotations

from fastapi_core.admission.amounts import amounts, parse, pod_amounts, quality
from fastapi_core.admission.chain import CREATE, UPDATE, Attributes, Plugin
from fastapi_core.admission.objects import Objects, decoded, is_core
from fastapi_core.admission.refusals import forbidden
from fastapi_core.errors import APIError
from fastapi_core.registry.definition import ResourceDefinition, Tree

NOT_READY = "node.kubernetes.io/not-ready"
OS_LABEL = "kubernetes.io/os"
#: What a kubelet declares when it can change the CPU of a pod with exclusive cores in place.
GUARANTEED_CPU_RESIZE = "GuaranteedQoSPodCPUResize"
_NOTHING = parse("0")


class TaintNodesByCondition(Plugin):
    """A new node takes no pods before a controller has seen it ready."""

    name = "TaintNodesByCondition"

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return operation == CREATE and not subresource and is_core(definition, "nodes")

    def admit(self, attributes: Attributes) -> None:
        if attributes.object is None:
            return
        spec = attributes.object["spec"] = attributes.object.get("spec") or {}
        taints = spec.get("taints") or []
        if not any(taint.get("key") == NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints):
            spec["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]


def _resized(attributes: Attributes) -> Tree | None:
    """The pod on a node whose spec changes, else None."""
    pod, old = attributes.object, attributes.old
    if pod is None or old is None or not (pod.get("spec") or {}).get("nodeName"):
        return None
    return pod if pod["metadata"].get("generation") != old["metadata"].get("generation") else None


class NodeDeclaredFeatureValidator(Plugin):
    """A pod is not changed in a way its node has not declared to know."""

    name = "NodeDeclaredFeatureValidator"

    def __init__(self, nodes: Objects) -> None:
        self._nodes = nodes

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return operation == UPDATE and is_core(definition, "pods") and subresource in ("", "resize")

    def validate(self, attributes: Attributes) -> None:
        pod = _resized(attributes)
        if pod is None or attributes.old is None:
            return
        needed = _needed(attributes.old["spec"], pod["spec"])
        if not needed:
            return
        name = pod["spec"]["nodeName"]
        node = self._nodes.get("", name)
        if node is None:
            raise forbidden(attributes, f'node "{name}" not found')
        declared = (node.get("status") or {}).get("declaredFeatures") or ()
        lacking = [feature for feature in needed if feature not in declared]
        if lacking:
            text = f"pod update requires features {', '.join(lacking)} which are not available on node"
            raise forbidden(attributes, f'{text} "{name}"')


def _needed(old: Tree, new: Tree) -> list[str]:
    """Features of a node that carrying out a change takes."""
    if quality(new) != "Guaranteed":
        return []
    before, after = (pod_amounts(spec, "requests", overhead=False).get("cpu", _NOTHING) for spec in (old, new))
    return [GUARANTEED_CPU_RESIZE] if before != after else []


class PodResizeValidator(Plugin):
    """A pod on a node does not grow beyond what the node has to give."""

    name = "PodResizeValidator"

    def __init__(self, nodes: Objects) -> None:
        self._nodes = nodes

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return operation == UPDATE and is_core(definition, "pods") and subresource == "resize"

    def validate(self, attributes: Attributes) -> None:
        pod = _resized(attributes)
        if pod is None:
            return
        name = pod["spec"]["nodeName"]
        found = self._nodes.find("", name)
        if found is None:
            raise forbidden(attributes, f'node "{name}" not found')
        node = decoded(found)
        allocatable = amounts((node.get("status") or {}).get("allocatable"))
        requests = pod_amounts(pod["spec"], "requests", overhead=True)
        cpu, memory = requests.get("cpu", _NOTHING).milli, requests.get("memory", _NOTHING).value
        has_cpu, has_memory = allocatable.get("cpu", _NOTHING).milli, allocatable.get("memory", _NOTHING).value
        wrong = [f"cpu, requested: {cpu}, allocatable: {has_cpu}"] if cpu > has_cpu else []
        if memory > has_memory:
            wrong.append(f"memory, requested: {memory}, allocatable: {has_memory}")
        if wrong:
            text = f"Node didn't have enough allocatable resources: {'; '.join(wrong)}"
            raise _because(forbidden(attributes, text), "NodeCapacity")
        system = found.labels().get(OS_LABEL, "")
        if system != "linux":
            text = f'pod resize is only supported on linux nodes, node "{name}" is "{system}"'
            raise _because(forbidden(attributes, text), "UnsupportedPlatform")


def _because(refusal: APIError, reason: str) -> APIError:
    refusal.details = {**(refusal.details or {}), "causes": [{"reason": reason}]}
    return refusal

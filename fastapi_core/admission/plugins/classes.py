"""Plugins that copy from a class into what uses it: the runtime's overhead and nodes, the default ingress class."""

from __future__ import annotations

from collections.abc import Awaitable

from fastapi_core.admission.amounts import amounts
from fastapi_core.admission.chain import CREATE, Attributes, Plugin
from fastapi_core.admission.objects import Objects, annotations_of, pods
from fastapi_core.admission.plugins.storage import newest_default
from fastapi_core.admission.refusals import forbidden, unaskable
from fastapi_core.admission.tolerations import merge
from fastapi_core.errors import APIError, go_quote
from fastapi_core.registry.definition import ResourceDefinition, Tree

DEFAULT_INGRESS = "ingressclass.kubernetes.io/is-default-class"
INGRESS_CLASS = "kubernetes.io/ingress.class"
MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
UNFOUNDED = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClass(Plugin):
    """A pod of a runtime class has its overhead and goes to the nodes that have the runtime."""

    name = "RuntimeClass"

    def __init__(self, classes: Objects) -> None:
        self._classes = classes

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return pods(operation, definition, subresource, CREATE)

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        spec = (attributes.object or {}).get("spec") or {}
        name = spec.get("runtimeClassName")
        if name is None:
            return None
        found = self._classes.get("", name)
        if found is None:
            return self._late(attributes, spec, name)
        self._settle(attributes, spec, found)
        return None

    async def _late(self, attributes: Attributes, spec: Tree, name: str) -> None:
        pending = self._classes.fresh()
        if pending is not None:
            await pending
        found = self._classes.get("", name)
        if found is None:
            wrong = unaskable(name)
            if wrong:
                raise APIError("", wrong, code=500)
            raise forbidden(attributes, f"pod rejected: RuntimeClass {go_quote(name)} not found")
        self._settle(attributes, spec, found)

    @staticmethod
    def _settle(attributes: Attributes, spec: Tree, found: Tree) -> None:
        overhead = _overhead(found)
        if overhead is not None:
            if spec.get("overhead") and amounts(spec["overhead"]) != amounts(overhead):
                raise forbidden(attributes, MISMATCH)
            spec["overhead"] = dict(overhead)
        scheduling = found.get("scheduling")
        if scheduling is None:
            return
        selector: dict[str, str] = dict(spec.get("nodeSelector") or {})
        for key, value in (scheduling.get("nodeSelector") or {}).items():
            if selector.setdefault(key, value) != value:
                rule = f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}"
                raise forbidden(attributes, f"{rule}; pod.spec.nodeSelector[{key}] = {selector[key]}")
        if selector:
            spec["nodeSelector"] = dict(sorted(selector.items()))
        tolerations = merge(spec.get("tolerations") or (), scheduling.get("tolerations") or ())
        if tolerations:
            spec["tolerations"] = tolerations

    def validate(self, attributes: Attributes) -> None:
        spec = (attributes.object or {}).get("spec") or {}
        given = spec.get("overhead")
        if not given:
            return
        name = spec.get("runtimeClassName")
        found = self._classes.get("", name) if name else None
        overhead = _overhead(found) if found is not None else None
        if overhead is None:
            raise forbidden(attributes, UNFOUNDED)
        if amounts(given) != amounts(overhead):
            raise forbidden(attributes, MISMATCH)


def _overhead(found: Tree) -> Tree | None:
    overhead = found.get("overhead")
    return None if overhead is None else overhead.get("podFixed") or {}


class DefaultIngressClass(Plugin):
    name = "DefaultIngressClass"

    def __init__(self, classes: Objects) -> None:
        self._classes = classes

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        ingresses = definition.plural == "ingresses" and definition.group == "networking.k8s.io"
        return operation == CREATE and not subresource and ingresses

    def admit(self, attributes: Attributes) -> None:
        ingress = attributes.object
        if ingress is None or INGRESS_CLASS in annotations_of(ingress):
            return
        spec = ingress.setdefault("spec", {})
        if spec.get("ingressClassName") is None:
            name = newest_default(self._classes, DEFAULT_INGRESS)
            if name is not None:
                spec["ingressClassName"] = name

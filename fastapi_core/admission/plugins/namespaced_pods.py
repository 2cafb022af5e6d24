"""Plugins by which a namespace decides over its pods: on which nodes they run and what they tolerate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from fastapi_core import errors
from fastapi_core.admission.amounts import quality
from fastapi_core.admission.chain import CREATE, UPDATE, Attributes, Plugin
from fastapi_core.admission.objects import Objects, annotations_of, pods
from fastapi_core.admission.refusals import failure, forbidden
from fastapi_core.admission.tolerations import allowed, merge
from fastapi_core.registry.definition import ResourceDefinition, Tree

NODE_SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
CLUSTER_DEFAULT = "clusterDefaultNodeSelector"
DEFAULT_TOLERATIONS = "scheduler.alpha.kubernetes.io/defaultTolerations"
TOLERATIONS_WHITELIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
MEMORY_PRESSURE: Tree = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}


def selector_map(text: str) -> dict[str, str]:
    """`a=b,c=d` as a map; ValueError for what is none."""
    selector: dict[str, str] = {}
    for part in text.split(",") if text else ():
        key, equals, value = part.partition("=")
        if not equals or "=" in value:
            raise ValueError(f"invalid selector: [{part}]")
        selector[key.strip()] = value.strip()
    return selector


class PodNodeSelector(Plugin):
    """The namespace's node selector holds for all its pods, and may be all they can select by."""

    name = "PodNodeSelector"

    def __init__(self, namespaces: Objects, selectors: Mapping[str, str] | None = None) -> None:
        self._namespaces = namespaces
        self._selectors = selectors or {}

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return pods(operation, definition, subresource, CREATE)

    def admit(self, attributes: Attributes) -> None:
        if attributes.object is None:
            return
        spec = attributes.object["spec"]
        wanted = self._wanted(attributes)
        own: dict[str, str] = spec.get("nodeSelector") or {}
        self._check(attributes, wanted, own)
        if wanted:
            spec["nodeSelector"] = dict(sorted({**wanted, **own}.items()))

    def validate(self, attributes: Attributes) -> None:
        own: dict[str, str] = ((attributes.object or {}).get("spec") or {}).get("nodeSelector") or {}
        self._check(attributes, self._wanted(attributes), own)
        permitted = self._parsed(self._selectors.get(attributes.namespace, ""))
        if own and permitted and any(permitted.get(key) != value for key, value in own.items()):
            raise forbidden(attributes, "pod node label selector labels conflict with its namespace whitelist")

    @staticmethod
    def _check(attributes: Attributes, wanted: Mapping[str, str], own: Mapping[str, str]) -> None:
        if any(own.get(key, value) != value for key, value in wanted.items()):
            raise forbidden(attributes, "pod node label selector conflicts with its namespace node label selector")

    def _wanted(self, attributes: Attributes) -> dict[str, str]:
        namespace = self._namespaces.get("", attributes.namespace)
        if namespace is None:
            raise errors.not_found("namespaces", "", attributes.namespace)
        given = annotations_of(namespace).get(NODE_SELECTOR)
        return self._parsed(self._selectors.get(CLUSTER_DEFAULT, "") if given is None else given)

    @staticmethod
    def _parsed(text: str) -> dict[str, str]:
        try:
            return selector_map(text)
        except ValueError as error:
            raise failure(str(error)) from error


class PodTolerationRestriction(Plugin):
    """Pods get the namespace's tolerations, and may have no others than it permits."""

    name = "PodTolerationRestriction"

    def __init__(self, namespaces: Objects, default: Sequence[Tree] = (), whitelist: Sequence[Tree] = ()) -> None:
        self._namespaces = namespaces
        self._default = list(default)
        self._whitelist = list(whitelist)

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return pods(operation, definition, subresource, CREATE, UPDATE)

    def admit(self, attributes: Attributes) -> None:
        if attributes.object is None:
            return
        spec = attributes.object["spec"]
        extra: list[Tree] = []
        if attributes.operation == CREATE:
            extra = list(self._annotated(attributes, DEFAULT_TOLERATIONS, self._default))
        if quality(spec) != "BestEffort":
            extra.append(MEMORY_PRESSURE)
        if extra:
            spec["tolerations"] = merge(spec.get("tolerations") or (), extra)
        self.validate(attributes)

    def validate(self, attributes: Attributes) -> None:
        tolerations = ((attributes.object or {}).get("spec") or {}).get("tolerations") or ()
        if not tolerations:
            return
        if not allowed(tolerations, self._annotated(attributes, TOLERATIONS_WHITELIST, self._whitelist)):
            what = "pod tolerations (possibly merged with namespace default tolerations)"
            raise failure(f"{what} conflict with its namespace whitelist")

    def _annotated(self, attributes: Attributes, key: str, fallback: list[Tree]) -> list[Tree]:
        """The tolerations in an annotation of the namespace; the cluster's when there is none."""
        namespace = self._namespaces.get("", attributes.namespace)
        if namespace is None:
            raise errors.not_found("namespaces", "", attributes.namespace)
        text = annotations_of(namespace).get(key)
        if text is None:
            return fallback
        if not text:
            return []
        try:
            found = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise failure(str(error)) from error
        if not isinstance(found, list) or not all(isinstance(toleration, dict) for toleration in found):
            raise failure("json: cannot unmarshal into Go value of type []v1.Toleration")
        return found

"""LimitRanger: what containers, pods and claims of a namespace may ask for, and what they get when they do not ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fastapi_core._ext.objects import CachedObject
from fastapi_core.admission.amounts import Amounts, amounts, parse, pod_amounts
from fastapi_core.admission.chain import CREATE, UPDATE, Attributes, Plugin
from fastapi_core.admission.objects import Objects, decoded, is_core
from fastapi_core.admission.refusals import all_of, forbidden
from fastapi_core.meta.quantity import Quantity
from fastapi_core.registry.definition import ResourceDefinition, Tree

ANNOTATION = "kubernetes.io/limit-ranger"
_DEFAULTS = "admission/limit-defaults"


class LimitRanger(Plugin):
    """Follows every LimitRange of the namespace, in the order of their names."""

    name = "LimitRanger"

    def __init__(self, ranges: Objects) -> None:
        self._ranges = ranges

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        if is_core(definition, "pods"):
            return (operation, subresource) in ((CREATE, ""), (UPDATE, "resize"))
        return is_core(definition, "persistentvolumeclaims") and not subresource and operation in (CREATE, UPDATE)

    def admit(self, attributes: Attributes) -> None:
        ranges = self._applying(attributes)
        tree = attributes.object
        if not ranges or tree is None or attributes.definition.plural != "pods":
            return
        for found in ranges:
            requests, limits = container_defaults(found)
            if requests or limits:
                complete(tree, requests, limits)

    def validate(self, attributes: Attributes) -> None:
        ranges = self._applying(attributes)
        tree = attributes.object
        if not ranges or tree is None:
            return
        problems = pod_problems if attributes.definition.plural == "pods" else claim_problems
        for found in ranges:
            texts = [text for limit in _limits(found) for text in problems(limit, tree)]
            if texts:
                raise forbidden(attributes, all_of(texts))

    def _applying(self, attributes: Attributes) -> list[CachedObject]:
        ranges = self._ranges.list(attributes.namespace)
        if ranges and attributes.old is not None and attributes.old["metadata"].get("deletionTimestamp"):
            return []
        return ranges


def _limits(found: CachedObject) -> list[Tree]:
    limits: list[Tree] = (decoded(found).get("spec") or {}).get("limits") or []
    return limits


def container_defaults(found: CachedObject) -> tuple[Tree, Tree]:
    """What a LimitRange gives containers: (requests, limits)."""
    known: tuple[Tree, Tree] | None = found.memo.get(_DEFAULTS)
    if known is None:
        requests: Tree = {}
        limits: Tree = {}
        for limit in _limits(found):
            if limit.get("type") == "Container":
                requests.update(limit.get("defaultRequest") or {})
                limits.update(limit.get("default") or {})
        known = found.memo[_DEFAULTS] = (requests, limits)
    return known


def complete(pod: Tree, requests: Tree, limits: Tree) -> None:
    """Give containers what they do not ask for, and say so in an annotation."""
    said: list[str] = []
    spec = pod["spec"]
    for member, label in (("containers", "container"), ("initContainers", "init container")):
        for container in spec.get(member) or ():
            resources: Tree = dict(container.get("resources") or {})
            for kind, defaults, word in (("requests", requests, "request"), ("limits", limits, "limit")):
                given = resources.get(kind) or {}
                added = {name: text for name, text in defaults.items() if name not in given}
                if added:
                    resources[kind] = dict(sorted({**given, **added}.items()))
                    said.append(f"{', '.join(sorted(added))} {word} for {label} {container['name']}")
            container["resources"] = resources
    if said:
        metadata = pod["metadata"]
        annotations = {**(metadata.get("annotations") or {}), ANNOTATION: "LimitRanger plugin set: " + "; ".join(said)}
        metadata["annotations"] = dict(sorted(annotations.items()))


def pod_problems(limit: Tree, pod: Tree) -> Iterator[str]:
    """What a pod violates of one limit."""
    kind = limit.get("type")
    spec = pod.get("spec") or {}
    if kind == "Container":
        for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
            resources: Tree = container.get("resources") or {}
            yield from _problems(limit, amounts(resources.get("requests")), amounts(resources.get("limits")))
    elif kind == "Pod":
        requests = pod_amounts(spec, "requests", overhead=False)
        yield from _problems(limit, requests, pod_amounts(spec, "limits", overhead=False))


def claim_problems(limit: Tree, claim: Tree) -> Iterator[str]:
    """What a volume claim violates of one limit: it has requests only."""
    if limit.get("type") != "PersistentVolumeClaim":
        return
    requests = amounts((((claim.get("spec") or {}).get("resources")) or {}).get("requests"))
    yield from _each(limit, "min", lambda name, bound: _below(limit, name, bound, requests, {}))
    yield from _each(limit, "max", lambda name, bound: _request_above(limit, name, bound, requests))


def _problems(limit: Tree, requests: Amounts, limits: Amounts) -> Iterator[str]:
    yield from _each(limit, "min", lambda name, bound: _below(limit, name, bound, requests, limits))
    yield from _each(limit, "max", lambda name, bound: _above(limit, name, bound, requests, limits))
    yield from _each(limit, "maxLimitRequestRatio", lambda name, bound: _ratio(limit, name, bound, requests, limits))


def _each(limit: Tree, member: str, check: Callable[[str, Quantity], str]) -> Iterator[str]:
    bounds: dict[str, Any] = limit.get(member) or {}
    for name in sorted(bounds):
        text = check(name, parse(str(bounds[name])))
        if text:
            yield text


def _below(limit: Tree, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    rule = f"minimum {name} usage per {limit['type']} is {bound}"
    request, ceiling = requests.get(name), limits.get(name)
    if request is None:
        return f"{rule}.  No request is specified"
    if request < bound:
        return f"{rule}, but request is {request}"
    return f"{rule}, but limit is {ceiling}" if ceiling is not None and ceiling < bound else ""


def _above(limit: Tree, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    rule = f"maximum {name} usage per {limit['type']} is {bound}"
    request, ceiling = requests.get(name), limits.get(name)
    if ceiling is None:
        return f"{rule}.  No limit is specified"
    if bound < ceiling:
        return f"{rule}, but limit is {ceiling}"
    return f"{rule}, but request is {request}" if request is not None and bound < request else ""


def _request_above(limit: Tree, name: str, bound: Quantity, requests: Amounts) -> str:
    rule = f"maximum {name} usage per {limit['type']} is {bound}"
    request = requests.get(name)
    if request is None:
        return f"{rule}.  No request is specified"
    return f"{rule}, but request is {request}" if bound < request else ""


def _ratio(limit: Tree, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    rule = f"{name} max limit to request ratio per {limit['type']} is {bound}"
    request, ceiling = requests.get(name), limits.get(name)
    if not request:
        return f"{rule}, but no request is specified or request is 0"
    if not ceiling:
        return f"{rule}, but no limit is specified or limit is 0"
    # Compared in thousandths, as the reference does where the numbers are small enough.
    observed = ceiling.milli / request.milli
    return f"{rule}, but provided ratio is {observed:.6f}" if observed * 1000 > bound.milli else ""

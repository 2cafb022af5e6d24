"""Writes to a part of a pod: pods/ephemeralcontainers and pods/resize take their own fields and nothing else."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi_core.apis.strategies.basics import Tree, keep, keep_metadata
from fastapi_core.apis.strategies.pods import qos_class
from fastapi_core.apis.validation import pods as pod_rules
from fastapi_core.apis.validation.rules import Report
from fastapi_core.errors import FieldError
from fastapi_core.registry.definition import Strategy

MIRROR = "kubernetes.io/config.mirror"
_CONTAINERS = ("initContainers", "containers")
_ORDERED = ("containers", "initContainers")
_RESIZABLE = ("cpu", "memory")
_AMOUNTS = ("requests", "limits")


def _only(new: Tree, old: Tree, spec: Tree) -> None:
    """The old pod with `spec`; a change of what is wanted counts the generation up."""
    keep_metadata(new, old)
    keep(new, old, "status")
    new["spec"] = spec
    generation = old["metadata"].get("generation")
    if generation and spec != (old.get("spec") or {}):
        new["metadata"]["generation"] = generation + 1


def _static(old: Tree | None) -> bool:
    return old is not None and MIRROR in (old["metadata"].get("annotations") or {})


# Ephemeral containers


def prepare_ephemeral(new: Tree, old: Tree | None) -> None:
    if old is None:
        return
    spec = dict(old.get("spec") or {})
    keep(spec, new.get("spec") or {}, "ephemeralContainers")
    _only(new, old, spec)


def validate_ephemeral(new: Tree, old: Tree | None) -> list[FieldError]:
    """Debug containers come and stay as they are."""
    if _static(old):
        return [FieldError("Forbidden", "[]", "static pods do not support ephemeral containers")]
    report = Report(old)
    pod_rules.ephemeral_update(new, "", report)
    return report


# Resize


def prepare_resize(new: Tree, old: Tree | None) -> None:
    """Resources and resize policies from the new pod. Containers that do not correspond stay for validation to see."""
    if old is None:
        return
    asked: Tree = new.get("spec") or {}
    spec = dict(old.get("spec") or {})
    keep(spec, asked, "resources")
    for kind in _CONTAINERS:
        before, after = spec.get(kind) or [], asked.get(kind) or []
        if [c["name"] for c in before] != [c.get("name") for c in after]:
            spec[kind] = after
        elif before:
            spec[kind] = [_resized(*pair) for pair in zip(before, after, strict=True)]
    _only(new, old, spec)


def _resized(before: Tree, after: Tree) -> Tree:
    container = dict(before)
    keep(container, after, "resources", "resizePolicy")
    return container


def validate_resize(new: Tree, old: Tree | None) -> list[FieldError]:
    """What a resize may do: other amounts of cpu and memory, in the same class of service."""
    if old is None:
        return []
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if _static(old):
        return [FieldError("Forbidden", "[]", "static pods cannot be resized")]
    if (before.get("os") or {}).get("name") == "windows":
        return [FieldError("Forbidden", "[]", "windows pods cannot be resized")]
    errors = Report(old)
    pod_rules.pod(new, "", errors)
    status: Tree = old.get("status") or {}
    if qos_class(spec) != (status.get("qosClass") or qos_class(before)):
        text = "Pod QOS Class may not change as a result of resizing"
        errors.append(FieldError("Invalid value", "spec", text, status.get("qosClass") or ""))
    if not _node_resizes(status):
        errors.append(FieldError("Forbidden", "spec", "Pod running on node without support for resize"))
    errors += _whole_errors(spec.get("resources"), before.get("resources"))
    order = list(_order_errors(spec, before))
    if order:
        return [*errors, *order]
    pairs = {kind: list(zip(spec.get(kind) or (), before.get(kind) or (), strict=True)) for kind in _CONTAINERS}
    for kind in _CONTAINERS:
        for index, (container, earlier) in enumerate(pairs[kind]):
            after, amounts = container.get("resources") or {}, earlier.get("resources") or {}
            errors += _removed(after, amounts, f"spec.{kind}[{index}].resources", "resource")
    fixed = [pair for pair in pairs["containers"] if _fixed(pair[0]) != _fixed(pair[1])]
    errors += [FieldError("Forbidden", "spec", "only cpu and memory resources are mutable") for _ in fixed]
    for index, (container, earlier) in enumerate(pairs["initContainers"]):
        errors += _initial_errors(container, earlier, f"spec.initContainers[{index}]")
    return errors


def _node_resizes(status: Tree) -> bool:
    """A kubelet that can resize reports the resources of what runs."""
    running = [c for c in status.get("containerStatuses") or () if (c.get("state") or {}).get("running") is not None]
    return not running or running[0].get("resources") is not None


def _order_errors(spec: Tree, before: Tree) -> Iterable[FieldError]:
    for kind in _ORDERED:
        after, earlier = spec.get(kind) or (), before.get(kind) or ()
        if len(after) != len(earlier):
            yield FieldError("Forbidden", f"spec.{kind}", f"{kind} may not be added or removed on resize")
            continue
        for index, (one, other) in enumerate(zip(after, earlier, strict=True)):
            if one.get("name") != other.get("name"):
                text = f"{kind} may not be renamed or reordered on resize"
                yield FieldError("Forbidden", f"spec.{kind}[{index}].name", text)


def _whole_errors(after: Tree | None, before: Tree | None) -> list[FieldError]:
    """About the amounts of the pod as a whole."""
    if not any((resources or {}).get(member) for resources in (after, before) for member in _AMOUNTS):
        return []
    if after is None:
        return [FieldError("Forbidden", "spec.resources", "pod-level resources cannot be removed")]
    errors = _removed(after, before or {}, "spec.resources", "pod-level resource")
    if _unsized(after) != _unsized(before or {}):
        errors.append(FieldError("Forbidden", "spec", "only cpu and memory resources are mutable at pod-level"))
    return errors


def _removed(after: Tree, before: Tree, path: str, text: str) -> list[FieldError]:
    return [
        FieldError("Forbidden", f"{path}.{member}", f"{text} {member} cannot be removed")
        for member in _AMOUNTS
        if set(before.get(member) or ()) - set(after.get(member) or ())
    ]


def _initial_errors(container: Tree, earlier: Tree, path: str) -> list[FieldError]:
    errors = []
    if _fixed(container) != _fixed(earlier):
        text = "only cpu and memory resources for init or sidecar containers are mutable"
        errors.append(FieldError("Forbidden", path, text))
    if container != earlier and container.get("restartPolicy") != "Always":
        text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
        policies = container.get("resizePolicy") or ()
        errors += [
            FieldError("Forbidden", path, text) for p in policies if p.get("restartPolicy") == "RestartContainer"
        ]
    return errors


def _fixed(container: Tree) -> Tree:
    """The part of a container that a resize cannot touch."""
    fixed = {name: value for name, value in container.items() if value or name != "resizePolicy"}
    fixed["resources"] = {m: _unsized(container.get("resources") or {}).get(m) or {} for m in _AMOUNTS}
    return fixed


def _unsized(resources: Tree) -> Tree:
    """Resources without cpu and memory."""
    fixed: Tree = {name: value for name, value in resources.items() if name not in _AMOUNTS and value}
    for member in _AMOUNTS:
        amounts = resources.get(member) or {}
        fixed[member] = {name: amount for name, amount in amounts.items() if name not in _RESIZABLE}
    return fixed


EPHEMERAL = Strategy(prepare=prepare_ephemeral, validate=validate_ephemeral)
RESIZE = Strategy(prepare=prepare_resize, validate=validate_resize)

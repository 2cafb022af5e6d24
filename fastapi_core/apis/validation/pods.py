"""Pods: what a new one must be, and what of it may still change."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.podspec import pod_spec
from fastapi_core.apis.validation.rules import INT32_MAX, Report, Tree, between

_MUTABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)
FROZEN: Final = f"pod updates may not change fields other than {_MUTABLE}"
_FREE: Final = frozenset({"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"})
_TOLERATION: Final = "existing toleration can not be modified except its tolerationSeconds"
_SELECTOR: Final = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
_TERMS: Final = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
_EXPRESSIONS: Final = "only additions are allowed (no mutations or deletions)"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_MIRROR: Final = "kubernetes.io/config.mirror"


def pod(tree: Tree, path: str, report: Report) -> None:
    """A pod on its own."""
    metadata: Tree = tree.get("metadata") or {}
    report.facts["name"] = metadata.get("name")
    report.facts["labels"] = metadata.get("labels")
    spec: Tree = tree.get("spec") or {}
    pod_spec(spec, ".spec", report)
    if report.old is None:
        if spec.get("ephemeralContainers"):
            report.forbidden(".spec.ephemeralContainers", "cannot be set on create")
        if spec.get("schedulingGates") and spec.get("nodeName"):
            report.forbidden(".spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    if spec.get("schedulerName") and (metadata.get("annotations") or {}).get(_MIRROR) and not spec.get("nodeName"):
        report.invalid(
            f".metadata.annotations[{_MIRROR}]", "", "must set spec.nodeName if mirror pod annotation is set"
        )


def pod_update(tree: Tree, path: str, report: Report) -> None:
    """A pod's spec is nearly fixed; a gated one may still be steered to nodes, narrower only."""
    old: Tree = report.old or {}
    spec: Tree = tree.get("spec") or {}
    before: Tree = old.get("spec") or {}
    if spec == before:
        return
    pod(tree, path, report)
    for name in ("containers", "initContainers"):
        if len(spec.get(name) or ()) != len(before.get(name) or ()):
            report.forbidden(f".spec.{name}", "pod updates may not add or remove containers")
            return
    if not _deadline(spec, before, report):
        return
    _tolerations(spec, before, report)
    _gates(spec, before, report)
    gated = bool(before.get("schedulingGates"))
    if gated:
        _narrowed(spec, before, report)
    if _fixed(spec, before, gated=gated) != _fixed(before, before, gated=gated):
        report.forbidden(".spec", FROZEN)


def ephemeral_update(tree: Tree, path: str, report: Report) -> None:
    """Ephemeral containers are added by their subresource, and stay."""
    old: Tree = report.old or {}
    spec: Tree = tree.get("spec") or {}
    before: Tree = old.get("spec") or {}
    pod(tree, path, report)
    present = {container.get("name"): container for container in spec.get("ephemeralContainers") or ()}
    for container in before.get("ephemeralContainers") or ():
        name = container.get("name")
        if name not in present:
            text = f'existing ephemeral containers "{name}" may not be removed\n'
            report.forbidden(".spec.ephemeralContainers", text)
        elif present[name] != container:
            text = f'existing ephemeral containers "{name}" may not be changed\n'
            report.forbidden(".spec.ephemeralContainers", text)


def _deadline(spec: Tree, before: Tree, report: Report) -> bool:
    value, earlier = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    at = ".spec.activeDeadlineSeconds"
    if value is not None:
        if not 0 <= value <= INT32_MAX:
            report.invalid(at, value, between(0, INT32_MAX))
            return False
        if earlier is not None and earlier < value:
            report.invalid(at, value, "must be less than or equal to previous value")
            return False
    elif earlier is not None:
        report.invalid(at, None, "must not update from a positive integer to nil value")
        return False
    return True


def _tolerations(spec: Tree, before: Tree, report: Report) -> None:
    def key(item: Tree) -> tuple[Any, ...]:
        return tuple(item.get(name) or "" for name in ("key", "operator", "value", "effect"))

    present = {key(item) for item in spec.get("tolerations") or ()}
    if any(key(item) not in present for item in before.get("tolerations") or ()):
        report.forbidden(".spec.tolerations", _TOLERATION)


def _gates(spec: Tree, before: Tree, report: Report) -> None:
    known = {gate.get("name") for gate in before.get("schedulingGates") or ()}
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate.get("name") not in known:
            text = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            report.forbidden(f".spec.schedulingGates[{index}].name", text)


def _narrowed(spec: Tree, before: Tree, report: Report) -> None:
    now, earlier = spec.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if any(now.get(key) != value for key, value in earlier.items()):
        report.invalid(".spec.nodeSelector", spec.get("nodeSelector"), _SELECTOR)
    node = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    node_before = ((before.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    if node_before is None:
        return
    at = f".spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    terms = (node or {}).get("nodeSelectorTerms") or []
    terms_before = node_before.get("nodeSelectorTerms") or []
    if terms_before and len(terms) != len(terms_before):
        report.invalid(at, terms, _TERMS)
        return
    for index, (term, earlier_term) in enumerate(zip(terms, terms_before, strict=False)):
        for name in ("matchExpressions", "matchFields"):
            items, kept = term.get(name) or [], earlier_term.get(name) or []
            if items[: len(kept)] != kept:
                report.invalid(f"{at}[{index}].{name}", items, _EXPRESSIONS)


def _fixed(spec: Tree, before: Tree, *, gated: bool) -> Tree:
    """The part of a spec that an update may not touch."""
    out = {name: value for name, value in spec.items() if name not in _FREE and value is not None}
    grace, earlier = spec.get("terminationGracePeriodSeconds"), before.get("terminationGracePeriodSeconds")
    if grace != earlier and not (grace == 1 and (earlier or 0) < 0):
        out["terminationGracePeriodSeconds"] = grace
    if gated:
        out.pop("nodeSelector", None)
        affinity = dict(out.get("affinity") or {})
        node = dict(affinity.get("nodeAffinity") or {})
        node.pop(_REQUIRED, None)
        affinity["nodeAffinity"] = node or None
        affinity = {name: value for name, value in affinity.items() if value is not None}
        out.pop("affinity", None)
        if affinity:
            out["affinity"] = affinity
    for name in ("containers", "initContainers"):
        if name in out:
            out[name] = [{k: v for k, v in container.items() if k != "image"} for container in out[name]]
    return out


def pod_status(tree: Tree, path: str, report: Report) -> None:
    """What a node reports."""
    status: Tree = tree.get("status") or {}
    nominated = status.get("nominatedNodeName")
    if nominated:
        report.each_invalid(".status.nominatedNodeName", nominated, formats.subdomain(nominated))
    for index, address in enumerate(status.get("podIPs") or ()):
        value = address.get("ip") or ""
        report.each_invalid(f".status.podIPs[{index}]", value, formats.ip(value))

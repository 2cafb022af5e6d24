"""Pods: what a new one must be, and what of it may still change."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.apis.validation import scheduling
from fastapi_core.apis.validation.differences import difference
from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.pod_annotations import annotated, annotations_update, consistent
from fastapi_core.apis.validation.pod_annotations import of as annotations_of
from fastapi_core.apis.validation.podspec import pod_spec
from fastapi_core.apis.validation.rules import INT32_MAX, Report, Tree, between

_MUTABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)
FROZEN: Final = f"pod updates may not change fields other than {_MUTABLE}"
_FREE: Final = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
_TOLERATION: Final = "existing toleration can not be modified except its tolerationSeconds"
_SELECTOR: Final = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
_TERMS: Final = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
_EXPRESSIONS: Final = "only additions are allowed (no mutations or deletions)"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PADDED: Final = "must not have leading or trailing whitespace"


def _images(containers: list[Tree], path: str, report: Report) -> None:
    for index, container in enumerate(containers):
        image = container.get("image")
        if image and image.strip() != image:
            report.invalid(f"{path}[{index}].image", image, _PADDED)


def pod(tree: Tree, path: str, report: Report) -> None:
    """A pod on its own."""
    metadata: Tree = tree.get("metadata") or {}
    report.facts["name"] = metadata.get("name")
    report.facts["pod"] = True
    spec: Tree = tree.get("spec") or {}
    if metadata.get("annotations"):
        annotated(tree, report)
    pod_spec(spec, ".spec", report)
    if not spec.get("serviceAccountName"):
        for index, volume in enumerate(spec.get("volumes") or ()):
            for number, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
                if source.get("serviceAccountToken") is not None:
                    at = f".spec.volumes[{index}].projected.sources[{number}].serviceAccountToken"
                    report.forbidden(at, "must not be specified when serviceAccountName is not set")
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        if spec.get(kind):
            _images(spec[kind], f".spec.{kind}", report)
    if report.old is None:
        if spec.get("ephemeralContainers"):
            report.forbidden(".spec.ephemeralContainers", "cannot be set on create")
        if spec.get("schedulingGates") and spec.get("nodeName"):
            report.forbidden(".spec.nodeName", "cannot be set until all schedulingGates have been cleared")
        if metadata.get("annotations"):
            consistent(tree, report)


def pod_update(tree: Tree, path: str, report: Report) -> None:
    """A pod's spec is nearly fixed; a gated one may still be steered to nodes, narrower only."""
    old: Tree = report.old or {}
    spec: Tree = tree.get("spec") or {}
    before: Tree = old.get("spec") or {}
    same = spec == before
    if same and annotations_of(tree) == annotations_of(old):
        return
    pod(tree, path, report)
    annotations_update(tree, report)
    if same:
        return
    for name in ("containers", "initContainers"):
        now, earlier = spec.get(name) or [], before.get(name) or []
        if len(now) != len(earlier):
            report.forbidden(f".spec.{name}", "pod updates may not add or remove containers")
            return
        for index, container in enumerate(now):
            if not container.get("image"):
                report.required(f".spec.{name}[{index}].image")
        _images(now, f".spec.{name}", report)
    if not _deadline(spec, before, report):
        return
    _tolerations(spec, before, report)
    _gates(spec, before, report)
    gated = bool(before.get("schedulingGates"))
    if gated:
        _narrowed(spec, before, report)
    munged = _munged(spec, before, gated=gated)
    if munged != {name: value for name, value in before.items() if value is not None}:
        report.forbidden(".spec", f"{FROZEN}\n{difference('core/v1.PodSpec', before, munged)}")


def ephemeral_update(tree: Tree, path: str, report: Report) -> None:
    """Ephemeral containers are added by their subresource, and stay."""
    old: Tree = report.old or {}
    spec: Tree = tree.get("spec") or {}
    before: Tree = old.get("spec") or {}
    pod(tree, path, report)
    annotations_update(tree, report)
    present = {container.get("name"): container for container in spec.get("ephemeralContainers") or ()}
    for container in before.get("ephemeralContainers") or ():
        name = container.get("name")
        if name not in present:
            text = f'existing ephemeral containers "{name}" may not be removed\n'
            report.forbidden(".spec.ephemeralContainers", text)
        elif present[name] != container:
            shown_ = difference("core/v1.EphemeralContainer", container, present[name])
            text = f'existing ephemeral containers "{name}" may not be changed\n{shown_}'
            report.forbidden(".spec.ephemeralContainers", text)


def _keep(new: Tree, old: Tree, *members: str) -> Tree:
    """Members take their old value."""
    for member in members:
        if old.get(member) is not None:
            new[member] = old[member]
        else:
            new.pop(member, None)
    return new


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
    return True


def _tolerations(spec: Tree, before: Tree, report: Report) -> None:
    def key(item: Tree) -> tuple[Any, ...]:
        return tuple(item.get(name) or "" for name in ("key", "operator", "value", "effect"))

    present = {key(item) for item in spec.get("tolerations") or ()}
    if any(key(item) not in present for item in before.get("tolerations") or ()):
        report.forbidden(".spec.tolerations", _TOLERATION)
    else:
        scheduling.tolerations(spec.get("tolerations") or [], ".spec.tolerations", report)


def _gates(spec: Tree, before: Tree, report: Report) -> None:
    known = {gate.get("name") for gate in before.get("schedulingGates") or ()}
    added = {gate.get("name"): index for index, gate in enumerate(spec.get("schedulingGates") or ())}
    for name, index in added.items():
        if name not in known:
            text = f"only deletion is allowed, but found new scheduling gate '{name}'"
            report.forbidden(f".spec.schedulingGates[{index}].name", text)


def _narrowed(spec: Tree, before: Tree, report: Report) -> None:
    now, kept = spec.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if any(now.get(key) != value for key, value in kept.items()):
        report.invalid(".spec.nodeSelector", spec.get("nodeSelector"), _SELECTOR)
    node = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    node_before = ((before.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    if node_before is None:
        return
    at = f".spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    terms = (node or {}).get("nodeSelectorTerms") or []
    terms_before = node_before.get("nodeSelectorTerms") or []
    if terms_before and len(terms) != len(terms_before):
        report.invalid(at, [shown("core/v1.NodeSelectorTerm", term) for term in terms] or None, _TERMS)
        return
    for index, (term, earlier) in enumerate(zip(terms, terms_before, strict=False)):
        if not _only_added(term, earlier):
            report.invalid(f"{at}[{index}]", shown("core/v1.NodeSelectorTerm", term), _EXPRESSIONS)


def _only_added(term: Tree, before: Tree) -> bool:
    """A term that matches nothing must stay so; any other may become narrower."""
    members = ("matchExpressions", "matchFields")
    if not any(before.get(name) for name in members):
        return not any(term.get(name) for name in members)
    for name in members:
        kept = before.get(name) or []
        if (term.get(name) or [])[: len(kept)] != kept:
            return False
    return True


def _munged(spec: Tree, before: Tree, *, gated: bool) -> Tree:
    """The new spec with the old value of all that an update may change."""
    out = {name: value for name, value in spec.items() if value is not None}
    _keep(out, before, *_FREE)
    grace = spec.get("terminationGracePeriodSeconds")
    if grace == 1 and (before.get("terminationGracePeriodSeconds") or 0) < 0:
        _keep(out, before, "terminationGracePeriodSeconds")
    if gated:
        _keep(out, before, "nodeSelector")
        _keep_node_affinity(out, before)
    for name in ("containers", "initContainers"):
        if name in out:
            pairs = zip(out[name], before[name], strict=True)
            out[name] = [_keep(dict(container), earlier, "image") for container, earlier in pairs]
    return out


def _keep_node_affinity(out: Tree, before: Tree) -> None:
    now, earlier = out.get("affinity"), before.get("affinity")
    if (now or {}).get("nodeAffinity") == (earlier or {}).get("nodeAffinity"):
        return
    affinity = _keep(dict(now or {}), earlier or {}, "nodeAffinity")
    if affinity or earlier is not None:
        out["affinity"] = affinity
    else:
        del out["affinity"]

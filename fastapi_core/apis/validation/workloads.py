"""Kinds that keep pods running: deployments, replica sets, daemon sets, stateful sets, replication controllers."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.apis.validation import claims, formats
from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.labelling import (
    INVALID_SELECTOR,
    annotations_at,
    int_or_percent,
    is_empty,
    labels_at,
    matches,
    percent_over,
    selectable,
    selector,
)
from fastapi_core.apis.validation.pod_annotations import annotated
from fastapi_core.apis.validation.podspec import pod_template
from fastapi_core.apis.validation.rules import (
    CHECK,
    IMMUTABLE,
    Report,
    Tree,
    choice,
    immutable,
    natural,
    text,
)
from fastapi_core.meta import names

MISMATCH: Final = "`selector` does not match template `labels`"
_COUNTS = natural("replicas", "minReadySeconds")
_REPLICAS, _READY = natural("replicas"), natural("minReadySeconds")
_HISTORY, _PROGRESS = natural("revisionHistoryLimit"), natural("progressDeadlineSeconds")
_SELECTOR_FIXED = immutable("spec.selector")


def _labels(template: Tree) -> dict[str, str] | None:
    return (template.get("metadata") or {}).get("labels")


def replicated_template(template: Tree, chosen: Any, path: str, report: Report, kind: str) -> None:
    """A template whose pods are replaced when they end; `chosen` is a sound selector or `_NOTHING`."""
    labels = _labels(template)
    if chosen is _NOTHING or not matches(chosen, labels or {}):
        report.invalid(path + ".metadata.labels", labels, MISMATCH)
    pod_template(template, path, report)
    spec: Tree = template.get("spec") or {}
    restart = spec.get("restartPolicy") or ""
    if restart != "Always":
        report.unsupported(path + ".spec.restartPolicy", restart, ("Always",))
    if kind and spec.get("activeDeadlineSeconds") is not None:
        report.forbidden(path + ".spec.activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported")


def _selector(spec: Tree, path: str, report: Report, kind: str) -> None:
    chosen = spec.get("selector")
    if chosen is None:
        report.required(path + ".selector")
        return
    selector(chosen, path + ".selector", report)
    if is_empty(chosen):
        report.invalid(path + ".selector", chosen, f"empty selector is invalid for {kind}")


def _sound(spec: Tree, path: str, report: Report, detail: str = INVALID_SELECTOR) -> Any:
    """The selector to match with: None tells that it cannot be used (which is reported), {} that it is missing."""
    chosen = spec.get("selector")
    if chosen is None:
        return _NOTHING
    if not selectable(chosen):
        report.invalid(path + ".selector", chosen, detail)
        return None
    return chosen


#: Matches no pod at all.
_NOTHING: Final[Tree] = {}


def _deployment_strategy(strategy: Tree, path: str, report: Report) -> None:
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            report.forbidden(path + ".rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
    elif kind == "RollingUpdate":
        if rolling is None:
            report.required(path + ".rollingUpdate", "this should be defaulted and never be nil")
        else:
            _rolling(rolling, path + ".rollingUpdate", report)
    else:
        report.unsupported(path, shown("apps/v1.DeploymentStrategy", strategy), ("Recreate", "RollingUpdate"))


def _amount(value: Any) -> int:
    """A count or percentage as a number; a text may also be a count."""
    if isinstance(value, str):
        number = value[:-1] if not names.percent(value) else value
        return int(number) if number.isascii() and number.isdigit() else 0
    return value or 0


def _zero(value: Any) -> bool:
    """Whether it is nothing; text that is no percentage is not."""
    if isinstance(value, str):
        return not names.percent(value) and int(value[:-1]) == 0
    return not value


def _rolling(rolling: Tree, path: str, report: Report) -> None:
    down, up = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    int_or_percent(down, path + ".maxUnavailable", report)
    int_or_percent(up, path + ".maxSurge", report)
    if _zero(down) and _zero(up):
        report.invalid(path + ".maxUnavailable", down, "may not be 0 when `maxSurge` is 0")
    percent_over(down, path + ".maxUnavailable", report)


def deployment(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    at = ".spec"
    _REPLICAS(spec, at, report)
    _selector(spec, at, report, "deployment")
    chosen = _sound(spec, at, report)
    if chosen is not None:
        replicated_template(spec.get("template") or {}, chosen, at + ".template", report, "ReplicaSet")
    _deployment_strategy(spec.get("strategy") or {}, at + ".strategy", report)
    _READY(spec, at, report)
    _HISTORY(spec, at, report)
    progress = spec.get("progressDeadlineSeconds")
    if progress is not None:
        _PROGRESS(spec, at, report)
        if progress <= (spec.get("minReadySeconds") or 0):
            report.invalid(at + ".progressDeadlineSeconds", progress, "must be greater than minReadySeconds")


def deployment_update(tree: Tree, path: str, report: Report) -> None:
    deployment(tree, path, report)
    _SELECTOR_FIXED(tree, "", report)


def replica_set(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    _COUNTS(spec, ".spec", report)
    _selector(spec, ".spec", report, "deployment")
    chosen = _sound(spec, ".spec", report)
    if chosen is not None:
        replicated_template(spec.get("template") or {}, chosen, ".spec.template", report, "ReplicaSet")


def replica_set_update(tree: Tree, path: str, report: Report) -> None:
    replica_set(tree, path, report)
    _SELECTOR_FIXED(tree, "", report)


def replication_controller(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    _READY(spec, ".spec", report)
    chosen = spec.get("selector")
    if not chosen:
        report.required(".spec.selector")
    _REPLICAS(spec, ".spec", report)
    template = spec.get("template")
    if template is None:
        report.required(".spec.template")
        return
    labels = _labels(template) or {}
    if chosen and any(labels.get(key) != value for key, value in chosen.items()):
        report.invalid(".spec.template.metadata.labels", _labels(template), MISMATCH)
    pod_template(template, ".spec.template", report)
    _controlled(template.get("spec") or {}, report)


def _controlled(spec: Tree, report: Report) -> None:
    restart = spec.get("restartPolicy") or ""
    if restart != "Always":
        report.unsupported(".spec.template.spec.restartPolicy", restart, ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        text_ = "activeDeadlineSeconds in ReplicationController is not Supported"
        report.forbidden(".spec.template.spec.activeDeadlineSeconds", text_)


_DAEMON_STRATEGIES: Final = ("RollingUpdate", "OnDelete")


def _daemon_rolling(rolling: Tree, path: str, report: Report) -> None:
    down, up = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    int_or_percent(down, path + ".maxUnavailable", report, capped=True)
    int_or_percent(up, path + ".maxSurge", report, capped=True)
    has_down, has_up = _amount(down) != 0, _amount(up) != 0
    if has_down and has_up:
        report.invalid(path + ".maxSurge", up, "may not be set when maxUnavailable is non-zero")
    elif not has_down and not has_up:
        report.required(path + ".maxUnavailable", "cannot be 0 when maxSurge is 0")


def daemon_set(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    at = ".spec"
    chosen = spec.get("selector")
    if chosen is not None:
        selector(chosen, at + ".selector", report)
    template: Tree = spec.get("template") or {}
    sound = chosen is not None and selectable(chosen)
    if chosen is None or (sound and not matches(chosen, _labels(template) or {})):
        report.invalid(at + ".template.metadata.labels", _labels(template), MISMATCH)
    if chosen is not None and is_empty(chosen):
        report.invalid(at + ".selector", chosen, "empty selector is invalid for daemonset")
    pod_template(template, at + ".template", report)
    inner: Tree = template.get("spec") or {}
    restart = inner.get("restartPolicy") or ""
    if restart != "Always":
        report.unsupported(at + ".template.spec.restartPolicy", restart, ("Always",))
    if inner.get("activeDeadlineSeconds") is not None:
        text_ = "activeDeadlineSeconds in DaemonSet is not Supported"
        report.forbidden(at + ".template.spec.activeDeadlineSeconds", text_)
    _READY(spec, at, report)
    _daemon_strategy(spec.get("updateStrategy") or {}, at + ".updateStrategy", report)
    _HISTORY(spec, at, report)


def _daemon_strategy(strategy: Tree, path: str, report: Report) -> None:
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate")
    if kind == "RollingUpdate":
        if rolling is None:
            report.required(path + ".rollingUpdate")
        else:
            _daemon_rolling(rolling, path + ".rollingUpdate", report)
    elif kind != "OnDelete":
        report.unsupported(path, shown("apps/v1.DaemonSetUpdateStrategy", strategy), _DAEMON_STRATEGIES)


def daemon_set_update(tree: Tree, path: str, report: Report) -> None:
    _SELECTOR_FIXED(tree, "", report)
    daemon_set(tree, path, report)


STATEFUL_MUTABLE: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_STATEFUL_FREE: Final = frozenset(
    {
        "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
    }
)  # fmt: skip
_SERVICE = text("serviceName", formats.label)
_RETENTION = (
    choice("whenDeleted", "Retain", "Delete", empty=CHECK),
    choice("whenScaled", "Retain", "Delete", empty=CHECK),
)


def stateful_set(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    at = ".spec"
    policy = spec.get("podManagementPolicy") or ""
    if not policy:
        report.required(at + ".podManagementPolicy")
    elif policy not in ("OrderedReady", "Parallel"):
        report.invalid(at + ".podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    _stateful_strategy(spec.get("updateStrategy") or {}, at + ".updateStrategy", report)
    for rule in _RETENTION:
        rule(
            spec.get("persistentVolumeClaimRetentionPolicy") or {}, at + ".persistentVolumeClaimRetentionPolicy", report
        )
    _REPLICAS(spec, at, report)
    _READY(spec, at, report)
    _ordinals(spec, at, report)
    if report.old is None:
        _SERVICE(spec, at, report)
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            claims.claim_spec(claim.get("spec") or {}, f"{at}.volumeClaimTemplates[{index}].spec", report)
    _selector(spec, at, report, "statefulset")
    chosen = _sound(spec, at, report, "")
    if chosen is not None:
        _stateful_template(spec, chosen, at + ".template", report)
    inner: Tree = (spec.get("template") or {}).get("spec") or {}
    if (inner.get("restartPolicy") or "") != "Always":
        report.unsupported(at + ".template.spec.restartPolicy", inner.get("restartPolicy") or "", ("Always",))
    if inner.get("activeDeadlineSeconds") is not None:
        text_ = "activeDeadlineSeconds in StatefulSet is not Supported"
        report.forbidden(at + ".template.spec.activeDeadlineSeconds", text_)


def _stateful_strategy(strategy: Tree, path: str, report: Report) -> None:
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate")
    if not kind:
        report.required(path)
    elif kind == "OnDelete":
        if rolling is not None:
            text_ = "only allowed for updateStrategy 'RollingUpdate'"
            value = shown("apps/v1.RollingUpdateStatefulSetStrategy", rolling)
            report.invalid(path + ".rollingUpdate", value, text_)
    elif kind == "RollingUpdate":
        if rolling is not None and (rolling.get("partition") or 0) < 0:
            report.invalid(
                path + ".rollingUpdate.partition", rolling["partition"], "must be greater than or equal to 0"
            )
    else:
        value = shown("apps/v1.StatefulSetUpdateStrategy", strategy)
        report.invalid(path, value, "must be 'RollingUpdate' or 'OnDelete'")


def _ordinals(spec: Tree, path: str, report: Report) -> None:
    start = (spec.get("ordinals") or {}).get("start") or 0
    if start < 0:
        report.invalid(path + ".ordinals.start", start, "must be greater than or equal to 0")


def _stateful_template(spec: Tree, chosen: Tree, path: str, report: Report) -> None:
    """The claims of a stateful set stand in for volumes of their names."""
    template: Tree = spec.get("template") or {}
    labels = _labels(template)
    if chosen is _NOTHING or not matches(chosen, labels or {}):
        report.invalid(path + ".metadata.labels", labels, MISMATCH)
    claim_names = [(claim.get("metadata") or {}).get("name") or "" for claim in spec.get("volumeClaimTemplates") or ()]
    inner: Tree = template.get("spec") or {}
    if claim_names:
        own = [volume for volume in inner.get("volumes") or () if volume.get("name") not in claim_names]
        standing = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(claim_names)]
        inner = {**inner, "volumes": standing + own}
        template = {**template, "spec": inner}
    report.facts["named by index"] = True
    pod_template(template, path, report)
    metadata: Tree = template.get("metadata") or {}
    labels_at(labels, path + ".labels", report)
    if metadata.get("annotations"):
        annotations_at(metadata["annotations"], path + ".annotations", report)
        annotated(template, report, path + ".annotations")


def stateful_set_update(tree: Tree, path: str, report: Report) -> None:
    stateful_set(tree, path, report)
    spec: Tree = tree.get("spec") or {}
    before: Tree = (report.old or {}).get("spec") or {}
    if any(spec.get(name) != before.get(name) for name in (spec.keys() | before.keys()) - _STATEFUL_FREE):
        report.forbidden(".spec", STATEFUL_MUTABLE)


def controller_revision(tree: Tree, path: str, report: Report) -> None:
    revision = tree.get("revision") or 0
    if revision < 0:
        report.invalid(".revision", revision, "must be greater than or equal to 0")
    if tree.get("data") is None:
        report.required(".data", "data is mandatory")
    elif not isinstance(tree["data"], dict):
        report.required(".data", "data must be a valid JSON object")


def controller_revision_update(tree: Tree, path: str, report: Report) -> None:
    natural("revision")(tree, "", report)
    if tree.get("data") != (report.old or {}).get("data"):
        report.invalid(".data", tree.get("data"), IMMUTABLE)


def pod_template_kind(tree: Tree, path: str, report: Report) -> None:
    pod_template(tree.get("template") or {}, ".template", report)


_ABOVE: Final = "cannot be greater than status.replicas"


def _counted(tree: Tree, report: Report, counts: tuple[str, ...], limits: tuple[tuple[str, str, str], ...]) -> None:
    """Numbers of a status: not negative, and parts not above the whole."""
    status: Tree = tree.get("status") or {}
    natural(*counts)(status, ".status", report)
    before: Tree = (report.old or {}).get("status") or {}
    collisions = status.get("collisionCount")
    earlier = before.get("collisionCount")
    if "collisionCount" in counts and earlier is not None and (collisions is None or earlier > collisions):
        report.invalid(".status.collisionCount", collisions or 0, "cannot be decremented")
    for part, whole, detail in limits:
        if (status.get(part) or 0) > (status.get(whole) or 0):
            report.invalid(f".status.{part}", status.get(part), detail)


def replicas_status(tree: Tree, path: str, report: Report) -> None:
    """Status of replica sets and replication controllers."""
    _counted(
        tree,
        report,
        (
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ),
        (
            ("fullyLabeledReplicas", "replicas", _ABOVE),
            ("readyReplicas", "replicas", _ABOVE),
            ("availableReplicas", "replicas", _ABOVE),
            ("availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"),
        ),
    )


_DEPLOYMENT_COUNTS: Final = (
    "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas",
    "terminatingReplicas", "collisionCount",
)  # fmt: skip
_STATEFUL_COUNTS: Final = (
    "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration",
    "collisionCount",
)  # fmt: skip
_DAEMON_COUNTS: Final = (
    "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
    "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
)  # fmt: skip
_DEPLOYMENT_ORDER: Final = (
    ("updatedReplicas", "replicas", _ABOVE),
    ("readyReplicas", "replicas", _ABOVE),
    ("availableReplicas", "replicas", _ABOVE),
    ("availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"),
)
_STATEFUL_ORDER: Final = (
    ("readyReplicas", "replicas", _ABOVE),
    ("currentReplicas", "replicas", _ABOVE),
    ("updatedReplicas", "replicas", _ABOVE),
    ("availableReplicas", "replicas", _ABOVE),
    ("availableReplicas", "readyReplicas", "cannot be greater than status.readyReplicas"),
)


def deployment_status(tree: Tree, path: str, report: Report) -> None:
    _counted(tree, report, _DEPLOYMENT_COUNTS, _DEPLOYMENT_ORDER)


def stateful_status(tree: Tree, path: str, report: Report) -> None:
    _counted(tree, report, _STATEFUL_COUNTS, _STATEFUL_ORDER)


def daemon_status(tree: Tree, path: str, report: Report) -> None:
    _counted(tree, report, _DAEMON_COUNTS, ())

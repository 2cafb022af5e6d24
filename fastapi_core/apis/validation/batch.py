"""Jobs and cron jobs."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.apis.validation import cron, formats
from fastapi_core.apis.validation.indexes import count as count_indexes
from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.labelling import matches, selectable, selector
from fastapi_core.apis.validation.podspec import pod_template
from fastapi_core.apis.validation.rules import CHECK, IMMUTABLE, Report, Tree, choice, natural, text
from fastapi_core.apis.validation.workloads import MISMATCH
from fastapi_core.errors import OMITTED

_NUMBERS = natural(
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_INDEXED: Final = "requires indexed completion mode"
_MODE = choice("completionMode", "NonIndexed", "Indexed", empty=CHECK)
_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_MANY: Final = 100_000
_FEW: Final = 10_000
_SCALE: Final = "when completions are above 100000 and used with backoff limit per index"
_STATUS = choice("status", "False", "True", "Unknown", empty=CHECK)
_TYPE = text("type", formats.qualified, empty=3)


def _indexed(spec: Tree, path: str, report: Report) -> None:
    completions, failed = spec.get("completions"), spec.get("maxFailedIndexes")
    parallelism = spec.get("parallelism") or 0
    if completions is None:
        report.required(path + ".completions", "when completion mode is Indexed")
    if parallelism > _MANY:
        text_ = f"must be less than or equal to {_MANY} when completion mode is Indexed"
        report.invalid(path + ".parallelism", parallelism, text_)
    if failed is not None:
        if completions is not None and failed > completions:
            report.invalid(path + ".maxFailedIndexes", failed, "must be less than or equal to completions")
        if failed > _MANY:
            report.invalid(path + ".maxFailedIndexes", failed, f"must be less than or equal to {_MANY}")
    if completions is not None and completions > _MANY and spec.get("backoffLimitPerIndex") is not None:
        if failed is None:
            report.required(path + ".maxFailedIndexes", f"must be specified when completions is above {_MANY}")
        elif failed > _FEW:
            report.invalid(path + ".maxFailedIndexes", failed, f"must be less than or equal to {_FEW} {_SCALE}")
        if parallelism > _FEW:
            report.invalid(path + ".parallelism", parallelism, f"must be less than or equal to {_FEW} {_SCALE}")


def _manager(name: str, path: str, report: Report) -> None:
    if not name:
        report.required(path)
        return
    report.each_invalid(path, name, formats.domain_path(name))
    if len(name) > 63:
        report.too_long(path, 63)


def _exit_codes(tree: Tree, names: set[str], path: str, report: Report) -> None:
    container, operator, values = tree.get("containerName"), tree.get("operator") or "", tree.get("values") or []
    if container is not None and container not in names:
        text_ = "must be one of the container or initContainer names in the pod template"
        report.invalid(path + ".containerName", container, text_)
    if not operator:
        report.required(path + ".operator", 'valid values: ["In" "NotIn"]')
    elif operator not in ("In", "NotIn"):
        report.unsupported(path + ".operator", operator, ("In", "NotIn"))
    at = path + ".values"
    if not values:
        report.invalid(at, tree.get("values"), "at least one value is required")
    elif len(values) > 255:
        report.too_many(at, len(values), 255)
    seen: set[int] = set()
    for index, value in enumerate(values):
        if value in seen:
            report.duplicate(f"{at}[{index}]", value)
        elif operator == "In" and value == 0:
            report.invalid(f"{at}[{index}]", value, "must not be 0 for the In operator")
        seen.add(value)
    if values != sorted(values):
        report.invalid(at, values, "must be ordered")


def _failure_rule(rule: Tree, spec: Tree, names: set[str], path: str, report: Report) -> None:
    action, codes, conditions = rule.get("action") or "", rule.get("onExitCodes"), rule.get("onPodConditions") or []
    if not action:
        report.required(path + ".action", 'valid values: ["Count" "FailIndex" "FailJob" "Ignore"]')
    elif action not in _ACTIONS:
        report.unsupported(path + ".action", action, _ACTIONS)
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        report.invalid(path + ".action", action, "requires the backoffLimitPerIndex to be set")
    if codes is not None:
        _exit_codes(codes, names, path + ".onExitCodes", report)
    if len(conditions) > 20:
        report.too_many(path + ".onPodConditions", len(conditions), 20)
    for index, condition in enumerate(conditions):
        at = f"{path}.onPodConditions[{index}]"
        _TYPE(condition, at, report)
        _STATUS(condition, at, report)
    if codes is not None and conditions:
        report.invalid(path, OMITTED, "specifying both OnExitCodes and OnPodConditions is not supported")
    elif codes is None and not conditions:
        report.invalid(path, OMITTED, "specifying one of OnExitCodes and OnPodConditions is required")


def _failure_policy(spec: Tree, path: str, report: Report) -> None:
    rules = spec["podFailurePolicy"].get("rules") or []
    at = path + ".podFailurePolicy.rules"
    if len(rules) > 20:
        report.too_many(at, len(rules), 20)
    inner: Tree = (spec.get("template") or {}).get("spec") or {}
    names = {
        container.get("name") or "" for kind in ("containers", "initContainers") for container in inner.get(kind) or ()
    }
    for index, rule in enumerate(rules):
        _failure_rule(rule, spec, names, f"{at}[{index}]", report)


def _success_policy(spec: Tree, path: str, report: Report) -> None:
    rules = spec["successPolicy"].get("rules") or []
    completions = spec.get("completions") or 0
    if not rules:
        report.required(path + ".rules", "at least one rules must be specified when the successPolicy is specified")
    elif len(rules) > 20:
        report.too_many(path + ".rules", len(rules), 20)
    for index, rule in enumerate(rules):
        at = f"{path}.rules[{index}]"
        count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
        if count is None and indexes is None:
            report.required(at, "at least one of succeededCount or succeededIndexes must be specified")
        total = 0
        if indexes is not None:
            if len(indexes) > 64 * 1024:
                report.too_long(at + ".succeededIndexes", 64 * 1024)
            try:
                total = count_indexes(indexes, completions)
            except ValueError as error:
                report.invalid(at + ".succeededIndexes", indexes, f"error parsing succeededIndexes: {error}")
        if count is None:
            continue
        if count < 0:
            report.invalid(at + ".succeededCount", count, "must be greater than or equal to 0")
        if count > completions:
            text_ = f"must be less than or equal to {completions} (the number of specified completions)"
            report.invalid(at + ".succeededCount", count, text_)
        if indexes is not None and count > total:
            text_ = (
                f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            )
            report.invalid(at + ".succeededCount", count, text_)


def _plain_spec(spec: Tree, path: str, report: Report) -> None:
    """What holds for the spec of a job and of its template alike."""
    _NUMBERS(spec, path, report)
    if spec.get("backoffLimitPerIndex") is None and spec.get("maxFailedIndexes") is not None:
        report.required(path + ".backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if spec.get("managedBy") is not None:
        _manager(spec["managedBy"], path + ".managedBy", report)
    mode = spec.get("completionMode")
    _MODE(spec, path, report)
    if mode == "Indexed":
        _indexed(spec, path, report)
    elif mode in (None, "NonIndexed"):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                report.invalid(f"{path}.{name}", spec[name], _INDEXED)
    if spec.get("podFailurePolicy") is not None:
        _failure_policy(spec, path, report)
    if spec.get("successPolicy") is not None:
        at = path + ".successPolicy"
        if mode != "Indexed":
            value = shown("batch/v1.SuccessPolicy", spec["successPolicy"])
            report.invalid(at, {**value, "Rules": value.get("Rules") or []}, _INDEXED)
        else:
            _success_policy(spec, at, report)
    _replacement(spec, path, report)
    template: Tree = spec.get("template") or {}
    pod_template(template, path + ".template", report)
    _restart(
        spec, (template.get("spec") or {}).get("restartPolicy") or "", path + ".template.spec.restartPolicy", report
    )


def _replacement(spec: Tree, path: str, report: Report) -> None:
    policy = spec.get("podReplacementPolicy")
    if policy is None:
        return
    known = ("Failed",) if spec.get("podFailurePolicy") is not None else ("Failed", "TerminatingOrFailed")
    if policy not in known:
        report.unsupported(path + ".podReplacementPolicy", policy, known)


def _restart(spec: Tree, policy: str, path: str, report: Report) -> None:
    if policy in ("", "Always"):
        report.required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        report.unsupported(path, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        report.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')


def _job_spec(spec: Tree, report: Report) -> None:
    _plain_spec(spec, ".spec", report)
    chosen = spec.get("selector")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if chosen is None:
        report.required(".spec.selector")
        report.invalid(".spec.template.metadata.labels", labels, MISMATCH)
        return
    selector(chosen, ".spec.selector", report)
    if selectable(chosen) and not matches(chosen, labels or {}):
        report.invalid(".spec.template.metadata.labels", labels, MISMATCH)


def _generated(tree: Tree, report: Report) -> None:
    """A job whose selector is not the user's own selects its pods by its uid."""
    spec: Tree = tree.get("spec") or {}
    chosen = spec.get("selector")
    if spec.get("manualSelector") or chosen is None:
        return
    metadata: Tree = tree.get("metadata") or {}
    uid, name = metadata.get("uid") or "", metadata.get("name") or ""
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    expected = {
        "controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
    }
    for key, value in expected.items():
        at = f".spec.template.metadata.labels[{key}]"
        if key not in labels:
            report.required(at, f"must be '{value}'")
        elif labels[key] != value:
            report.invalid(at, labels, f"must be '{value}'")
    if selectable(chosen) and not matches(chosen, expected):
        report.invalid(".spec.selector", chosen, "`selector` not auto-generated")


def job(tree: Tree, path: str, report: Report) -> None:
    _generated(tree, report)
    spec: Tree = tree.get("spec") or {}
    _job_spec(spec, report)
    completions = spec.get("completions")
    if spec.get("completionMode") == "Indexed" and completions is not None and completions > 0:
        name = f"{(tree.get('metadata') or {}).get('name') or ''}-{completions - 1}"
        if formats.label(name):
            report.invalid(".metadata.name", (tree.get("metadata") or {}).get("name") or "", _POD_NAME + name)


_POD_NAME: Final = "will not able to create pod with invalid DNS label: "


def job_update(tree: Tree, path: str, report: Report) -> None:
    """The reference checks the spec twice here."""
    job(tree, path, report)
    spec: Tree = tree.get("spec") or {}
    before: Tree = (report.old or {}).get("spec") or {}
    if report:
        _job_spec(spec, report)
    _completions(spec, before, report)
    if spec.get("selector") != before.get("selector"):
        report.invalid(".spec.selector", spec.get("selector"), IMMUTABLE)
    _template_update(spec, before, report)
    for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        if spec.get(name) != before.get(name):
            value = spec.get(name)
            kind = _SHOWN.get(name)
            report.invalid(f".spec.{name}", shown(kind, value) if kind and value is not None else value, IMMUTABLE)


_SHOWN: Final = {"podFailurePolicy": "batch/v1.PodFailurePolicy", "successPolicy": "batch/v1.SuccessPolicy"}


def _completions(spec: Tree, before: Tree, report: Report) -> None:
    """An indexed job may be resized: completions and parallelism together."""
    value = spec.get("completions")
    if value == before.get("completions"):
        return
    if spec.get("completionMode") != "Indexed" or value is None:
        report.invalid(".spec.completions", value, IMMUTABLE)
    elif value != spec.get("parallelism"):
        report.invalid(".spec.completions", value, "can only be modified in tandem with spec.parallelism")


_DIRECTIVES: Final = frozenset({"nodeSelector", "tolerations", "schedulingGates"})


def _template_update(spec: Tree, before: Tree, report: Report) -> None:
    new: Tree = spec.get("template") or {}
    old: Tree = before.get("template") or {}
    if new == old:
        return
    status: Tree = (report.old or {}).get("status") or {}
    suspended = any(c.get("type") == "Suspended" and c.get("status") == "True" for c in status.get("conditions") or ())
    if before.get("suspend") and (suspended or not status.get("startTime")) and not status.get("active"):
        if _undirected(new.get("spec") or {}) != _undirected(old.get("spec") or {}):
            report.invalid(".spec.template.spec", shown("core/v1.PodSpec", new.get("spec") or {}), IMMUTABLE)
    elif _stated(new) != _stated(old):
        report.invalid(".spec.template", shown("core/v1.PodTemplateSpec", new), IMMUTABLE)


def _stated(value: Any) -> Any:
    """A tree without empty lists, which are as good as none, and without what is not set."""
    if isinstance(value, dict):
        return {name: _stated(inner) for name, inner in value.items() if inner is not None and inner != []}
    return [_stated(inner) for inner in value] if isinstance(value, list) else value


def _undirected(spec: Tree) -> Tree:
    """A spec without what a suspended job may still say about where its pods go."""
    out: Tree = _stated({name: value for name, value in spec.items() if name not in _DIRECTIVES})
    for kind in ("containers", "initContainers"):
        if kind in out:
            out[kind] = [{name: part for name, part in item.items() if name != "resources"} for item in out[kind]]
    affinity = {
        name: value for name, value in (out.pop("affinity", None) or {}).items() if name != "nodeAffinity" and value
    }
    if affinity:
        out["affinity"] = affinity
    return out


_POLICY = choice("concurrencyPolicy", "Allow", "Forbid", "Replace", empty=1)
_LIMITS = natural("successfulJobsHistoryLimit", "failedJobsHistoryLimit")
_DEADLINE = natural("startingDeadlineSeconds")


def _schedule(spec: Tree, path: str, report: Report) -> None:
    schedule, zone = spec.get("schedule") or "", spec.get("timeZone")
    at = path + ".schedule"
    if not schedule:
        report.required(at)
    else:
        wrong = cron.problem(schedule.partition(" ")[2] if schedule.startswith(("TZ=", "CRON_TZ=")) else schedule)
        if wrong:
            report.invalid(at, schedule, wrong)
        if "TZ" in schedule:
            report.invalid(at, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    _DEADLINE(spec, path, report)
    if zone is not None:
        _zone(zone, path + ".timeZone", report)


def _zone(zone: str, path: str, report: Report) -> None:
    if not zone:
        report.invalid(path, zone, "timeZone must be nil or non-empty string")
    elif zone.lower() == "local":
        text_ = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        report.invalid(path, zone, text_)
    elif not cron.known_zone(zone):
        report.invalid(path, zone, f"unknown time zone {zone}")


def cron_job(tree: Tree, path: str, report: Report) -> None:
    name = (tree.get("metadata") or {}).get("name") or ""
    if report.old is None and len(name) > 52:
        report.invalid(".metadata.name", name, "must be no more than 52 characters")
    spec: Tree = tree.get("spec") or {}
    _schedule(spec, ".spec", report)
    _POLICY(spec, ".spec", report)
    inner: Tree = (spec.get("jobTemplate") or {}).get("spec") or {}
    at = ".spec.jobTemplate.spec"
    _plain_spec(inner, at, report)
    if inner.get("selector") is not None:
        report.invalid(at + ".selector", inner["selector"], "`selector` will be auto-generated")
    if inner.get("manualSelector"):
        report.unsupported(at + ".manualSelector", True, ("nil", "false"))
    _LIMITS(spec, ".spec", report)

"""What a controller may report about a job: the conditions of its end, its times, counters and indexes fit together.

Rules about a member hold when it or the condition they speak of has just changed, so that a status that is already odd can
still be brought forward.
"""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.apis.validation.indexes import count, overlap
from fastapi_core.apis.validation.rules import IMMUTABLE, Report, Tree, natural
from fastapi_core.errors import OMITTED

_COUNTS = natural("active", "succeeded", "failed", "ready", "terminating")
_AT: Final = ".status.conditions"
_FINAL: Final = ("Failed", "Complete", "FailureTarget")


class _State:
    """A status and the conditions that are true of it."""

    def __init__(self, tree: Tree) -> None:
        self.status: Tree = tree.get("status") or {}
        self.true = {
            condition.get("type")
            for condition in self.status.get("conditions") or ()
            if condition.get("status") == "True"
        }
        self.complete, self.failed = "Complete" in self.true, "Failed" in self.true
        self.finished = self.complete or self.failed
        self.target, self.met = "FailureTarget" in self.true, "SuccessCriteriaMet" in self.true


def job_status(tree: Tree, path: str, report: Report) -> None:
    old: Tree = report.old or {}
    spec: Tree = tree.get("spec") or {}
    now, before = _State(tree), _State(old)
    changed = {
        name
        for name in now.status.keys() | before.status.keys()
        if (now.status.get(name) or None) != (before.status.get(name) or None)
    }
    changed |= {kind for kind in now.true ^ before.true if isinstance(kind, str)}
    if now.finished != before.finished:
        changed.add("finished")
    _COUNTS(now.status, ".status", report)
    _uncounted(now.status.get("uncountedTerminatedPods") or {}, report)
    _conditions(now, changed, report)
    _finished(now, spec, changed, report)
    _indexes(now.status, spec, changed, report)
    _rest(now, spec, changed, report)
    _forward(now, before, tree, changed, report)


def _uncounted(tree: Tree, report: Report) -> None:
    seen: set[str] = set()
    for name in ("succeeded", "failed"):
        for index, value in enumerate(tree.get(name) or ()):
            at = f".status.uncountedTerminatedPods.{name}[{index}]"
            if not value:
                report.invalid(at, value, "must not be empty")
            elif value in seen:
                report.duplicate(at, value)
            seen.add(value)


def _conditions(now: _State, changed: set[str], report: Report) -> None:
    status = now.status
    started, completed = status.get("startTime"), status.get("completionTime")
    at = ".status.completionTime"
    if now.complete and now.failed and changed & {"Complete", "Failed"}:
        report.invalid(_AT, OMITTED, "cannot set Complete=True and Failed=true conditions")
    if now.complete and now.target and changed & {"Complete", "FailureTarget"}:
        report.invalid(_AT, OMITTED, "cannot set Complete=True and FailureTarget=true conditions")
    if changed & {"Complete", "completionTime"}:
        if completed and not now.complete:
            report.invalid(at, completed, "cannot set completionTime when there is no Complete=True condition")
        if not completed and now.complete:
            report.required(at, "completionTime is required for Complete jobs")
    if changed & {"startTime", "completionTime"} and started and completed and completed < started:
        report.invalid(at, completed, "must be equal to or after `startTime`")
    if now.failed and not now.target and changed & {"Failed", "failedIndexes"}:
        report.invalid(_AT, OMITTED, "cannot set Failed=True condition without the FailureTarget=true condition")
    if now.complete and not now.met and changed & {"Complete", "SuccessCriteriaMet"}:
        report.invalid(_AT, OMITTED, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition")


def _finished(now: _State, spec: Tree, changed: set[str], report: Report) -> None:
    """Nothing runs on once a job has ended."""
    status = now.status
    if not now.finished:
        return
    if (status.get("active") or 0) > 0 and changed & {"finished", "active"}:
        report.invalid(".status.active", status["active"], "active>0 is invalid for finished job")
    never_ran = spec.get("suspend") and spec.get("completions") == 0
    if not status.get("startTime") and changed & {"finished", "startTime"} and not never_ran:
        report.required(".status.startTime", "startTime is required for finished job")
    uncounted: Tree = status.get("uncountedTerminatedPods") or {}
    if (uncounted.get("succeeded") or uncounted.get("failed")) and changed & {"finished", "uncountedTerminatedPods"}:
        value = {"Succeeded": uncounted.get("succeeded"), "Failed": uncounted.get("failed")}
        report.invalid(".status.uncountedTerminatedPods", value, "must be empty for finished job")


def _indexes(status: Tree, spec: Tree, changed: set[str], report: Report) -> None:
    completions, limit = spec.get("completions"), spec.get("backoffLimitPerIndex")
    done, failed = status.get("completedIndexes") or "", status.get("failedIndexes")
    new_done, new_failed = "completedIndexes" in changed, "failedIndexes" in changed
    if new_done and completions is not None:
        _parsed(done, completions, "completedIndexes", report)
    if new_failed and completions is not None and limit is not None and failed is not None:
        _parsed(failed, completions, "failedIndexes", report)
    if new_done and done and spec.get("completionMode") != "Indexed":
        text = "cannot set non-empty completedIndexes when non-indexed completion mode"
        report.invalid(".status.completedIndexes", done, text)
    if new_failed and limit is None and failed is not None:
        text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        report.invalid(".status.failedIndexes", failed, text)
    if (new_done or new_failed) and completions is not None and failed is not None:
        both = overlap(done, failed, completions)
        if both is not None:
            text = f"failedIndexes and completedIndexes overlap at index: {both}"
            report.invalid(".status.failedIndexes", failed, text)


def _parsed(value: str, completions: int, name: str, report: Report) -> None:
    try:
        count(value, completions)
    except ValueError as error:
        report.invalid(f".status.{name}", value, f"error parsing {name}: {error}")


def _rest(now: _State, spec: Tree, changed: set[str], report: Report) -> None:
    status = now.status
    terminating, ready, active = status.get("terminating") or 0, status.get("ready"), status.get("active") or 0
    if terminating > 0 and now.finished and changed & {"finished", "terminating"}:
        report.invalid(".status.terminating", terminating, "terminating>0 is invalid for finished job")
    if ready is not None and ready > active and changed & {"ready", "active"}:
        report.invalid(".status.ready", ready, "cannot set more ready pods than active")
    if now.met and now.failed:
        report.invalid(_AT, OMITTED, "cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if now.met and now.target:
        report.invalid(_AT, OMITTED, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    if spec.get("successPolicy") is not None and now.complete and not now.met:
        text = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        report.invalid(_AT, OMITTED, text)


def _forward(now: _State, before: _State, tree: Tree, changed: set[str], report: Report) -> None:
    """An end is an end, and what was counted stays counted."""
    spec: Tree = tree.get("spec") or {}
    status, earlier = now.status, before.status
    for kind in _FINAL:
        if kind in before.true and kind not in now.true:
            report.invalid(_AT, OMITTED, f"cannot disable the terminal {kind}=True condition")
    if (status.get("failed") or 0) < (earlier.get("failed") or 0):
        report.invalid(".status.failed", status.get("failed") or 0, "cannot decrease the failed counter")
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    if (status.get("succeeded") or 0) < (earlier.get("succeeded") or 0) and not elastic:
        report.invalid(".status.succeeded", status.get("succeeded") or 0, "cannot decrease the succeeded counter")
    times: list[tuple[Any, Any]] = [(status.get(n), earlier.get(n)) for n in ("completionTime", "startTime")]
    if times[0][0] and times[0][1] and times[0][0] != times[0][1]:
        report.invalid(".status.completionTime", times[0][0], IMMUTABLE)
    resumed = "Suspended" in before.true and any(
        condition.get("type") == "Suspended" and condition.get("status") == "False"
        for condition in status.get("conditions") or ()
    )
    if times[1][1] and times[1][0] != times[1][1] and not spec.get("suspend") and not resumed:
        report.invalid(".status.startTime", times[1][0], "field is immutable for unsuspended job once set")
    if before.met and not now.met:
        report.invalid(_AT, OMITTED, "cannot disable the SuccessCriteriaMet=True condition")
    if before.complete and not before.met and now.met:
        text = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        report.invalid(_AT, OMITTED, text)

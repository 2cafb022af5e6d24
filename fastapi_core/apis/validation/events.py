"""Events of both groups: old ones are free, those with an event time keep rules, those of events.k8s.io keep more.

The errors name the members of the core group, whatever the request calls them.
"""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.rules import IMMUTABLE, Report, Tree

#: Name in the core group -> name in events.k8s.io.
_NEW_NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_SPACES_OF_CLUSTER: Final = ("default", "kube-system")


def _about(tree: Tree, involved: str, report: Report) -> None:
    """An event lies in the namespace of what it is about."""
    namespace = (tree.get("metadata") or {}).get("namespace") or ""
    if tree.get("eventTime") is None:
        wrong = involved != namespace if involved else namespace not in ("", "default")
    else:
        wrong = not involved and namespace not in _SPACES_OF_CLUSTER
    if wrong:
        report.invalid(".involvedObject.namespace", involved, "does not match event.namespace")


def _limited(path: str, value: str, report: Report) -> None:
    if not value:
        report.required(path)
    elif len(value.encode()) > 128:
        report.invalid(path, "", "can have at most 128 characters")


def _common(tree: Tree, names: dict[str, str], report: Report) -> None:
    reference: Tree = tree.get(names.get("involvedObject", "involvedObject")) or {}
    _about(tree, reference.get("namespace") or "", report)
    if tree.get("eventTime") is None:
        return
    named = names.get("reportingComponent", "reportingComponent")
    controller = tree.get(named) or ""
    if not controller:
        report.required(f".{named}")
    report.each_invalid(f".{named}", controller, formats.qualified(controller))
    for member in ("reportingInstance", "action", "reason"):
        _limited(f".{member}", tree.get(member) or "", report)
    if len((tree.get(names.get("message", "message")) or "").encode()) > 1024:
        report.invalid(".message", "", "can have at most 1024 characters")


def core_event(tree: Tree, path: str, report: Report) -> None:
    _common(tree, {}, report)


def _series(tree: Tree, report: Report) -> None:
    series = tree.get("series")
    if series is None:
        return
    if (series.get("count") or 0) < 2:
        report.invalid(".series.count", "", "should be at least 2")
    if series.get("lastObservedTime") is None:
        report.required(".series.lastObservedTime")


def event(tree: Tree, path: str, report: Report) -> None:
    _common(tree, _NEW_NAMES, report)
    _series(tree, report)
    if tree.get("eventTime") is None:
        report.required(".eventTime")
    kind = tree.get("type") or ""
    if kind not in ("Normal", "Warning"):
        report.invalid(".type", "", f"has invalid value: {kind}")
    for name in ("firstTimestamp", "lastTimestamp", "count", "source"):
        value = tree.get(_NEW_NAMES[name])
        if any(value.values()) if isinstance(value, dict) else value:
            report.invalid(f".{name}", "", "needs to be unset")


_REFERENCE, _SOURCE = "core/v1.ObjectReference", "core/v1.EventSource"
#: What does not change: name, what an absent one is, type of an object.
_FIXED: Final[tuple[tuple[str, Any, str], ...]] = (
    ("involvedObject", {}, _REFERENCE), ("reason", "", ""), ("message", "", ""), ("source", {}, _SOURCE),
    ("firstTimestamp", None, ""), ("lastTimestamp", None, ""), ("count", 0, ""), ("reason", "", ""), ("type", "", ""),
    ("eventTime", None, ""), ("action", "", ""), ("related", None, _REFERENCE), ("reportingController", "", ""),
    ("reportingInstance", "", ""),
)  # fmt: skip


def event_update(tree: Tree, path: str, report: Report) -> None:
    _common(tree, _NEW_NAMES, report)
    old: Tree = report.old or {}
    if tree.get("series") != old.get("series"):
        _series(tree, report)
    for name, absent, ref in _FIXED:
        member = _NEW_NAMES.get(name, name)
        value, before = (absent if found is None else found for found in (tree.get(member), old.get(member)))
        if value != before:
            report.invalid(f".{name}", shown(ref, value) if ref and value is not None else value, IMMUTABLE)

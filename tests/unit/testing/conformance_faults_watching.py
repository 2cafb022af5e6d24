"""Faults of watches: check -> what breaks it."""

from __future__ import annotations

from tests.fixtures.faulty import Ask, Fault, Reply, Tree, said
from tests.unit.testing.breaking import altering, dropping, ignoring, meta, moving, setting

_BOOKMARK = {"type": "BOOKMARK", "object": {"kind": "Database", "metadata": {"resourceVersion": "1"}}}


def _first_lost(ask: Ask, event: Tree) -> list[Tree] | None:
    count = ask.memory["count"] = ask.memory.get("count", 0) + 1
    return [] if count == 1 else None


def _later(ask: Ask) -> None:
    """Watches that begin one change too late."""
    if ask.watch and ask.query.get("resourceVersion", "").isdigit():
        ask.query["resourceVersion"] = str(int(ask.query["resourceVersion"]) + 1)


def _now(ask: Ask) -> None:
    """Watches from long ago that begin today."""
    if ask.watch and ask.query.get("resourceVersion") == "1":
        ask.query["resourceVersion"] = meta(ask.upstream("GET").json)["resourceVersion"]


def _quiet_no_more(ask: Ask, event: Tree) -> list[Tree]:
    return [{"type": "MODIFIED", "object": {"metadata": {"name": "x", "resourceVersion": "1"}}}, event]


def _late_bookmarks(ask: Ask) -> None:
    if ask.watch:
        ask.query.pop("allowWatchBookmarks", None)
        ask.query["timeoutSeconds"] = "1"


def _no_list(ask: Ask) -> Reply | None:
    return said(200, {"kind": "WatchEvent"}) if ask.query.get("watch") == "false" else None


def _typed(old: str, new: str) -> Fault:
    return altering(lambda event: event.update(type=new) if event["type"] == old else None)


def _error(ask: Ask, event: Tree) -> list[Tree]:
    return [{"type": "ERROR", "object": {"kind": "Status", "code": 500, "metadata": {"resourceVersion": "1"}}}]


FAULTS: dict[str, list[Fault]] = {
    "watch.events": [
        dropping(lambda event: event["type"] == "MODIFIED"),
        Fault(event=lambda ask, event: [event, event]),
        _typed("ADDED", "MODIFIED"),
        altering(lambda event: meta(event["object"]).pop("labels")),
        Fault(event=_error),
    ],
    "watch.deleted-state": [
        altering(lambda event: event["type"] == "DELETED" and meta(event["object"]).pop("annotations", 0)),
        altering(lambda event: event["type"] == "DELETED" and meta(event["object"]).update(uid="other")),
    ],
    "watch.resumes": [Fault(_later), ignoring("resourceVersion", what="GET watch")],
    "watch.follows-list": [Fault(event=_first_lost), Fault(event=lambda ask, event: [event, event])],
    "watch.burst": [Fault(event=_first_lost), Fault(event=lambda ask, event: [event, event])],
    "watch.dry-run": [ignoring("dryRun")],
    "watch.timeout": [Fault(torn=True)],
    "watch.bad-version": [ignoring("resourceVersion")],
    "watch.too-old": [Fault(_now)],
    "watch.quiet": [Fault(event=_quiet_no_more)],
    "start.now": [_typed("ADDED", "MODIFIED"), Fault(event=lambda ask, event: [event, event])],
    "start.any": [_typed("ADDED", "MODIFIED"), Fault(event=lambda ask, event: [event, event])],
    "start.list": [
        altering(lambda event: meta(event["object"]).pop("annotations", 0)),
        dropping(lambda event: event["type"] == "BOOKMARK"),
        altering(lambda event: event["type"] == "BOOKMARK" and meta(event["object"]).update(resourceVersion="")),
    ],
    "start.list-alone": [setting("GET watch", resourceVersionMatch="NotOlderThan")],
    "start.no-bookmarks": [Fault(event=lambda ask, event: [_BOOKMARK, event])],
    "start.bookmarks": [Fault(_late_bookmarks)],
    "start.plain-get": [Fault(_no_list)],
    "scope.labels": [ignoring("labelSelector"), _typed("DELETED", "MODIFIED")],
    "scope.name": [ignoring("fieldSelector")],
    "scope.namespace": [moving("GET watch", "/namespaces/conformance-one", "")],
    "scope.all-namespaces": [altering(lambda event: meta(event["object"]).update(namespace="x"))],
    "scope.invalid": [ignoring("labelSelector"), ignoring("fieldSelector")],
    "delete.finalizer-events": [
        dropping(lambda event: "deletionTimestamp" in meta(event["object"]) and event["type"] == "MODIFIED"),
        _typed("MODIFIED", "ADDED"),
    ],
}

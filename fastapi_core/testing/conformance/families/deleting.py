"""Deleting objects."""

from __future__ import annotations

import time

from fastapi_core.testing.conformance.client import Answer, Tree
from fastapi_core.testing.conformance.subject import Subject, error, mark, marked, metadata, name_of, success, version
from fastapi_core.testing.conformance.verdicts import SHOULD, check, demand

_FINALIZER = "fastapi-core.conformance/hold"
_NO_UID = "11111111-2222-3333-4444-555555555555"


def _options(**members: object) -> Tree:
    return {"kind": "DeleteOptions", "apiVersion": "v1", **members}


@check("delete.object", needs="delete create get")
def delete_object(t: Subject) -> None:
    """A delete answers with the object or a Status of success that names it, and then it is gone."""
    made = t.create()
    answer = success(t.delete(name_of(made)), "the deletion", 200, 202)
    tree = answer.tree()
    if tree.get("kind") == "Status":
        demand(tree.get("status") == "Success", "status Success", answer)
        details = tree.get("details") or {}
        demand(details.get("name") == name_of(made), "details.name", answer)
        demand(details.get("uid", metadata(made)["uid"]) == metadata(made)["uid"], "details.uid", answer)
    else:
        demand(tree.get("kind") == t.resource.kind and name_of(tree) == name_of(made), "the object", answer)
    after = t.get(name_of(made))
    if after.status == 200:
        # Some kinds take their time; then they must say that they are going.
        demand(metadata(after.tree()).get("deletionTimestamp"), "gone, or deletionTimestamp is set", answer, after)
    else:
        error(after, 404, "NotFound", "the object is gone")


@check("delete.missing", needs="delete")
def delete_missing(t: Subject) -> None:
    """A delete of what is not there is a 404 NotFound; clients take it as done."""
    error(t.delete("conformance-nothing"), 404, "NotFound")


@check("delete.uid", needs="delete create get")
def delete_uid(t: Subject) -> None:
    """preconditions.uid: only that object is deleted, not a newer one of its name (409)."""
    made = t.create()
    error(t.delete(name_of(made), _options(preconditions={"uid": _NO_UID})), 409, "Conflict", "another uid")
    t.read(name_of(made))
    success(t.delete(name_of(made), _options(preconditions={"uid": metadata(made)["uid"]})), "its own uid", 200, 202)


@check("delete.version", needs="delete create get update")
def delete_version(t: Subject) -> None:
    """preconditions.resourceVersion: only that state of the object is deleted (409)."""
    made = t.create()
    after = success(t.put(marked(made, "new")), "the update").tree()
    answer = t.delete(name_of(made), _options(preconditions={"resourceVersion": version(made)}))
    error(answer, 409, "Conflict", "an old resourceVersion")
    t.read(name_of(made))
    answer = t.delete(name_of(made), _options(preconditions={"resourceVersion": version(after)}))
    success(answer, "its resourceVersion", 200, 202)


@check("delete.dry-run", needs="delete create get")
def delete_dry_run(t: Subject) -> None:
    """dryRun=All, in the query or in the body, deletes nothing."""
    made = t.create()
    success(t.delete(name_of(made), query={"dryRun": "All"}), "as the deletion would be answered", 200, 202)
    demand(version(t.read(name_of(made))) == version(made), "it is there, unchanged", t.get(name_of(made)))
    success(t.delete(name_of(made), _options(dryRun=["All"])), "as the deletion would be answered", 200, 202)
    demand(version(t.read(name_of(made))) == version(made), "it is there, unchanged", t.get(name_of(made)))


@check("delete.bad-options", needs="delete create get")
def delete_bad_options(t: Subject) -> None:
    """Options that make no sense are refused, and nothing is deleted."""
    made = t.create()
    wrong = (
        _options(propagationPolicy="Sideways"),
        _options(propagationPolicy="Orphan", orphanDependents=True),
        _options(dryRun=["Nearly"]),
        b"{",
    )
    for body in wrong:
        error(t.delete(name_of(made), body), (400, 422))
        t.read(name_of(made))


@check("delete.propagation", needs="delete create get")
def delete_propagation(t: Subject) -> None:
    """Each propagationPolicy is taken; until dependents are dealt with, a finalizer of that name holds the object."""
    t.prompt()
    for policy, finalizer in (("Background", ""), ("Foreground", "foregroundDeletion"), ("Orphan", "orphan")):
        made = t.create()
        answer = success(t.delete(name_of(made), _options(propagationPolicy=policy)), f"the policy {policy}", 200, 202)
        after = t.get(name_of(made))
        if after.status == 200:
            found = metadata(after.tree())
            demand(found.get("deletionTimestamp"), "gone, or deletionTimestamp is set", answer, after)
            demand(not finalizer or finalizer in (found.get("finalizers") or ()), f"the finalizer {finalizer}", after)


@check("delete.finalizers", needs="delete create get update")
def delete_finalizers(t: Subject) -> None:
    """Finalizers hold a deleted object, marked by deletionTimestamp, until the last of them is removed."""
    t.prompt()
    made = t.create(finalizers=[_FINALIZER])
    answer = success(t.delete(name_of(made)), "the deletion", 200, 202)
    after = t.get(name_of(made))
    demand(after.status == 200, "200: the finalizer holds the object", answer, after)
    held = after.tree()
    demand(metadata(held).get("deletionTimestamp"), "deletionTimestamp", after)
    demand(_FINALIZER in (metadata(held).get("finalizers") or ()), "the finalizer", after)
    again = success(t.delete(name_of(made)), "a second deletion", 200, 202)
    demand(t.get(name_of(made)).status == 200, "the object is held still", again)
    last = _release(t, name_of(made))
    demand(name_of(last.tree()) == name_of(made), "the object as it was at last", last)
    after = t.get(name_of(made))
    if after.status == 200 and metadata(after.tree()).get("finalizers"):
        # The server's own have to be seen to by its own.
        t.remove(name_of(made))
        after = t.get(name_of(made))
    error(after, 404, "NotFound", "the object goes with its last finalizer")


def _release(t: Subject, name: str) -> Answer:
    """Take the kit's finalizer away; again when somebody else was faster, where somebody else is about."""
    until = time.monotonic() + t.client.target.patience
    while True:
        held = t.read(name)
        left = [finalizer for finalizer in metadata(held).get("finalizers") or () if finalizer != _FINALIZER]
        metadata(held)["finalizers"] = left
        answer = t.put(held)
        if answer.status != 409 or not t.unrest or time.monotonic() > until:
            return success(answer, "the update without the finalizer")


@check("delete.held", SHOULD, needs="delete create get update")
def delete_held(t: Subject) -> None:
    """An object that is being deleted gets no new finalizers, and no second object takes its name."""
    made = t.create(finalizers=[_FINALIZER])
    success(t.delete(name_of(made)), "the deletion", 200, 202)
    held = t.settled(t.read(name_of(made)))
    metadata(held)["finalizers"] = [*metadata(held)["finalizers"], "fastapi-core.conformance/more"]
    error(t.put(held), (403, 422), what="a new finalizer")
    error(t.post(t.new(name_of(made))), 409, "AlreadyExists")
    answer = success(t.put(marked(t.read(name_of(made)), "still")), "other changes are fine")
    demand(mark(answer.tree()) == "still", "the annotation", answer)


@check("delete.finalizer-events", needs="delete create get update watch list")
def delete_finalizer_events(t: Subject) -> None:
    """A held object is MODIFIED by its deletion and DELETED when it goes; controllers clean up in between."""
    t.prompt()
    made = t.create(finalizers=[_FINALIZER])
    with t.watch({"resourceVersion": version(made)}) as watch:
        success(t.delete(name_of(made)), "the deletion", 200, 202)
        event = watch.next("MODIFIED with deletionTimestamp")
        demand(
            event.type == "MODIFIED" and metadata(event.object).get("deletionTimestamp"),
            "MODIFIED, being deleted",
            watch,
        )
        _release(t, name_of(made))
        demand(watch.until(name_of(made), "DELETED"), "DELETED", watch)


@check("delete.grace", needs="delete create get")
def delete_grace(t: Subject) -> None:
    """gracePeriodSeconds is taken, also by kinds that know no grace; kubectl sends it with --now and --force."""
    for period in (0, 1):
        made = t.create()
        answer = t.delete(name_of(made), _options(gracePeriodSeconds=period))
        success(answer, f"{period} seconds of grace", 200, 202)
        after = t.get(name_of(made))
        going = after.status == 404 or metadata(after.tree()).get("deletionTimestamp")
        demand(going, "gone, or deletionTimestamp is set", answer, after)


@check("delete.repeated", needs="delete create get")
def delete_repeated(t: Subject) -> None:
    """A second delete of what is gone is a 404, not another success."""
    made = t.create()
    t.remove(name_of(made))
    error(t.delete(name_of(made)), 404, "NotFound")

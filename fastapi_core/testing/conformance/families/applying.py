"""Server-side apply and managedFields."""

from __future__ import annotations

import json

from fastapi_core.testing.conformance.client import Answer, Tree
from fastapi_core.testing.conformance.subject import (
    MARK,
    Subject,
    error,
    mark,
    marked,
    metadata,
    name_of,
    success,
    version,
)
from fastapi_core.testing.conformance.verdicts import SHOULD, Skipped, check, demand

APPLY = "application/apply-patch+yaml"
_OTHER = "fastapi-core.conformance/other"


def _apply(t: Subject, body: Tree, manager: str = "conformance-a", **query: str) -> Answer:
    given = {"fieldManager": manager} if manager else {}
    return t.patch(name_of(body), json.dumps(body).encode(), {**given, **query}, media=APPLY)


def _applied(t: Subject, body: Tree, manager: str = "conformance-a", **query: str) -> Answer:
    """An apply that has to succeed, where the server has apply at all."""
    answer = _apply(t, body, manager, **query)
    if answer.status == 415:
        raise Skipped("the server has no server-side apply")
    success(answer, "the apply", 200, 201)
    if answer.status == 201 and "dryRun" not in query:
        t.settled(answer.tree())
    return answer


def _only(body: Tree, value: str) -> Tree:
    """What applies nothing but the mark."""
    return marked({**{key: body[key] for key in ("apiVersion", "kind")}, "metadata": {"name": name_of(body)}}, value)


def _entries(answer: Answer, manager: str) -> list[Tree]:
    return [entry for entry in metadata(answer.tree()).get("managedFields") or () if entry.get("manager") == manager]


@check("apply.supported", SHOULD, needs="patch create delete")
def apply_supported(t: Subject) -> None:
    """Server-side apply is offered; `kubectl apply --server-side` and many controllers use nothing else."""
    answer = _apply(t, t.new())
    demand(answer.status == 201, "201: apply has created the object", answer)


@check("apply.creates", needs="patch create get delete")
def apply_creates(t: Subject) -> None:
    """Apply of what is not there creates it (201), and notes the manager's fields in managedFields."""
    body = marked(t.new(), "applied")
    answer = _applied(t, body)
    demand(answer.status == 201, "201: it is created", answer)
    found = _entries(answer, "conformance-a")
    demand(len(found) == 1 and found[0].get("operation") == "Apply", "one Apply entry of conformance-a", answer)
    demand(found[0].get("apiVersion") == t.resource.api_version, "with its apiVersion", answer)
    fields = json.dumps(found[0].get("fieldsV1"))
    demand(f"f:{MARK}" in fields, "with the fields that were applied", answer)
    success(t.get(name_of(body)), "the object is there")


@check("apply.same", needs="patch create get delete")
def apply_same(t: Subject) -> None:
    """Applying the same again changes nothing, not even the resourceVersion; controllers do it all the time."""
    body = marked(t.new(), "applied")
    _applied(t, body)
    # The second may store what is only shown until then: defaults that were no part of what was created.
    _applied(t, body)
    before = success(t.get(name_of(body)), "the object")
    again = _applied(t, body)
    demand(again.status == 200, "200: it exists", again)
    demand(version(again.tree()) == version(before.tree()), "the same resourceVersion", before, again)


@check("apply.conflict", needs="patch create get delete")
def apply_conflict(t: Subject) -> None:
    """A field that another manager owns is a 409 that names manager and field, until it is forced."""
    body = marked(t.new(), "first")
    _applied(t, body)
    answer = _apply(t, _only(body, "second"), "conformance-b")
    causes = (error(answer, 409, "Conflict", "the field has an owner").get("details") or {}).get("causes") or []
    found = [cause for cause in causes if cause.get("reason") == "FieldManagerConflict"]
    demand(found and any(MARK in str(cause.get("field")) for cause in found), "a cause for the field", answer)
    demand(any("conformance-a" in str(cause.get("message")) for cause in found), "its owner in the message", answer)
    demand(mark(t.read(name_of(body))) == "first", "nothing changes", answer, t.get(name_of(body)))
    forced = success(_apply(t, _only(body, "second"), "conformance-b", force="true"), "the forced apply")
    demand(mark(forced.tree()) == "second", "the value that was forced", forced)
    fields = json.dumps([entry.get("fieldsV1") for entry in _entries(forced, "conformance-a")])
    demand(f"f:{MARK}" not in fields, "the field has left its former owner", forced)


@check("apply.shared", needs="patch create get delete")
def apply_shared(t: Subject) -> None:
    """Two managers that apply the same value own it together; no conflict."""
    body = marked(t.new(), "same")
    _applied(t, body)
    answer = success(_apply(t, _only(body, "same"), "conformance-b"), "the apply of the same value")
    for manager in ("conformance-a", "conformance-b"):
        fields = json.dumps([entry.get("fieldsV1") for entry in _entries(answer, manager)])
        demand(f"f:{MARK}" in fields, f"{manager} owns the field", answer)


@check("apply.removes", needs="patch create get delete")
def apply_removes(t: Subject) -> None:
    """What a manager applies no longer is removed, and what others own stays."""
    body = t.new(annotations={MARK: "mine", _OTHER: "mine"})
    _applied(t, body)
    success(t.patch(name_of(body), {"metadata": {"annotations": {"fastapi-core.conformance/third": "x"}}}), "a patch")
    body["metadata"]["annotations"].pop(MARK)
    answer = _applied(t, body)
    demand(mark(answer.tree()) is None, "the annotation that is applied no longer is removed", answer)
    demand(mark(answer.tree(), key=_OTHER) == "mine", "the one still applied stays", answer)
    demand(mark(answer.tree(), key="fastapi-core.conformance/third") == "x", "that of another manager stays", answer)


@check("apply.manager", needs="patch create get delete")
def apply_manager(t: Subject) -> None:
    """Apply needs a fieldManager; nobody would own the fields otherwise."""
    body = t.new()
    _applied(t, body)
    fresh = t.new()
    answer = _apply(t, fresh, "")
    error(answer, (400, 422), what="no fieldManager")
    demand(t.get(name_of(fresh)).status == 404, "nothing is created", answer)


@check("apply.yaml", needs="patch create get delete")
def apply_yaml(t: Subject) -> None:
    """An apply is YAML, of which JSON is a part; people write it by hand."""
    import yaml

    body = marked(t.new(), "yaml")
    answer = t.patch(name_of(body), yaml.safe_dump(body).encode(), {"fieldManager": "conformance-a"}, media=APPLY)
    if answer.status == 415:
        raise Skipped("the server has no server-side apply")
    success(answer, "the apply", 201)
    demand(mark(answer.tree()) == "yaml", "the annotation that was applied", answer)


@check("apply.dry-run", needs="patch create get delete")
def apply_dry_run(t: Subject) -> None:
    """dryRun=All answers as an apply would and stores nothing; `kubectl diff --server-side` is made of it."""
    body = marked(t.new(), "dry")
    answer = _applied(t, body, dryRun="All")
    demand(mark(answer.tree()) == "dry", "the object as it would be", answer)
    demand(t.get(name_of(body)).status == 404, "nothing is stored", answer)


@check("apply.after-update", needs="patch update create get delete")
def apply_after_update(t: Subject) -> None:
    """A field that an update changed is the updater's: applying another value to it is a conflict."""
    body = marked(t.new(), "applied")
    _applied(t, body)
    success(t.put(marked(t.read(name_of(body)), "updated"), {"fieldManager": "conformance-b"}), "the update")
    answer = _apply(t, body)
    error(answer, 409, "Conflict", "the updater owns the field now")
    demand(mark(t.read(name_of(body))) == "updated", "nothing changes", answer)


@check("apply.managed-fields", SHOULD, needs="patch create get delete")
def apply_managed_fields(t: Subject) -> None:
    """An apply that brings managedFields along is refused: they are the server's book."""
    body = t.new()
    first = _applied(t, body).tree()
    body["metadata"]["managedFields"] = metadata(first).get("managedFields") or [{"manager": "x", "operation": "Apply"}]
    error(_apply(t, body), (400, 422), what="managedFields in an apply")


@check("apply.malformed", needs="patch create get delete")
def apply_malformed(t: Subject) -> None:
    """An apply that is no YAML, or of another object, is a 400."""
    body = t.new()
    _applied(t, body)
    query = {"fieldManager": "conformance-a"}
    error(t.patch(name_of(body), b"{a: [", query, media=APPLY), 400)
    other = {**body, "metadata": {**body["metadata"], "name": t.fresh()}}
    answer = t.patch(name_of(body), json.dumps(other).encode(), query, media=APPLY)
    error(answer, (400, 422), what="another name than in the path")

"""Deleting many objects at once. Only tried where nothing but the kit's own objects can be hit."""

from __future__ import annotations

from fastapi_core.testing.conformance.client import Answer, Query
from fastapi_core.testing.conformance.subject import Subject, error, items, metadata, name_of, names, success
from fastapi_core.testing.conformance.verdicts import Skipped, check, demand

_KEY = "fastapi-core.conformance/batch"


def _delete(t: Subject, query: Query) -> Answer:
    # A server that ignores selectors would delete it.
    if stranger := t.stranger():
        raise Skipped(f"the collection has objects that are not the kit's: {stranger}")
    return t.client.request("DELETE", t.path(), query=query)


@check("deletecollection.selected", needs="deletecollection list create delete get")
def deletecollection_selected(t: Subject) -> None:
    """What a selector selects is deleted, and nothing else; `kubectl delete -l` is that."""
    chosen = [name_of(t.create(t.new(labels={_KEY: "a"}))) for _ in range(3)]
    others = [name_of(t.create(t.new(labels={_KEY: "b"}))), name_of(t.create())]
    answer = success(_delete(t, {"labelSelector": f"{_KEY}=a"}), "the deletion", 200, 202)
    left = {name_of(item) for item in items(t.listing()) if not metadata(item).get("deletionTimestamp")}
    demand(set(others) <= left, "those not selected stay", answer, t.listing())
    demand(not left & set(chosen), "those selected are gone", answer, t.listing())


@check("deletecollection.all", needs="deletecollection list create delete get")
def deletecollection_all(t: Subject) -> None:
    """Without a selector all of the collection is deleted; that is how namespaces are emptied."""
    for _ in range(3):
        t.create()
    answer = success(_delete(t, {}), "the deletion", 200, 202)
    left = [name_of(item) for item in items(t.listing()) if not metadata(item).get("deletionTimestamp")]
    demand(not left, "nothing is left", answer, t.listing())


@check("deletecollection.fields", needs="deletecollection list create delete get")
def deletecollection_fields(t: Subject) -> None:
    """Field selectors choose as well."""
    made, other = name_of(t.create()), name_of(t.create())
    answer = success(_delete(t, {"fieldSelector": f"metadata.name={made}"}), "the deletion", 200, 202)
    left = names([item for item in items(t.listing()) if not metadata(item).get("deletionTimestamp")])
    demand(other in left and made not in left, "the one selected is gone, the other stays", answer, t.listing())


@check("deletecollection.dry-run", needs="deletecollection list create delete get")
def deletecollection_dry_run(t: Subject) -> None:
    """dryRun=All deletes nothing."""
    made = [name_of(t.create()) for _ in range(2)]
    answer = success(_delete(t, {"dryRun": "All"}), "as the deletion would be answered", 200, 202)
    demand(set(made) <= set(names(items(t.listing()))), "all are there", answer, t.listing())


@check("deletecollection.bad-selector", needs="deletecollection list create delete get")
def deletecollection_bad_selector(t: Subject) -> None:
    """A selector that cannot be read is a 400 and deletes nothing; ignoring it would delete everything."""
    made = name_of(t.create())
    answer = _delete(t, {"labelSelector": "a in"})
    error(answer, 400, "BadRequest")
    demand(made in names(items(t.listing())), "nothing is deleted", answer, t.listing())


@check("deletecollection.namespaces-apart", needs="deletecollection list create delete get namespaced")
def deletecollection_namespaces_apart(t: Subject) -> None:
    """Only the namespace of the path is emptied."""
    if not t.around.elsewhere:
        raise Skipped("there is no second namespace")
    body = t.new()
    body["metadata"]["namespace"] = t.around.elsewhere
    other = success(t.post(body, namespace=t.around.elsewhere), "a create elsewhere", 201).tree()
    t.create()
    answer = success(_delete(t, {}), "the deletion", 200, 202)
    found = names(items(t.listing(namespace=t.around.elsewhere)))
    demand(
        name_of(other) in found, "what is in another namespace stays", answer, t.listing(namespace=t.around.elsewhere)
    )

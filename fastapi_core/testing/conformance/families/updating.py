"""Replacing objects."""

from __future__ import annotations

import copy

from fastapi_core.testing.conformance.subject import Subject, error, mark, marked, metadata, name_of, success, version
from fastapi_core.testing.conformance.verdicts import SHOULD, Skipped, check, demand


@check("update.replaces", needs="update create get delete")
def update_replaces(t: Subject) -> None:
    """An update answers the new object under a new resourceVersion, and it is there at once."""
    made = t.create()
    answer = success(t.put(marked(made, "new")), "the update")
    tree = answer.tree()
    demand(mark(tree) == "new", "the annotation that was sent", answer)
    demand(version(tree) and version(tree) != version(made), "another resourceVersion", answer)
    for name in ("uid", "creationTimestamp"):
        demand(metadata(tree).get(name) == metadata(made).get(name), f"the same {name}", answer)
    demand(t.read(name_of(made)) == tree, "get answers the same", answer, t.get(name_of(made)))


@check("update.removes", needs="update create get delete")
def update_removes(t: Subject) -> None:
    """An update replaces: what the new object lacks is gone."""
    made = t.create(marked(t.new(), "old"))
    body = copy.deepcopy(made)
    metadata(body)["annotations"].pop("fastapi-core.conformance/mark", None)
    answer = success(t.put(body), "the update")
    demand(mark(answer.tree()) is None, "no annotation any more", answer)


@check("update.conflict", needs="update create get delete")
def update_conflict(t: Subject) -> None:
    """An update of an old resourceVersion is a 409 Conflict and changes nothing; no write is lost by that."""
    made = t.create()
    success(t.put(marked(made, "first")), "the update")
    answer = t.put(marked(made, "second"))
    details = error(answer, 409, "Conflict", "the object has changed since").get("details") or {}
    demand(details.get("name") == name_of(made), "details.name", answer)
    demand(mark(t.read(name_of(made))) == "first", "the first update stands", answer, t.get(name_of(made)))


@check("update.unconditional", needs="update create get delete")
def update_unconditional(t: Subject) -> None:
    """An update without resourceVersion is done, or refused as invalid; which of both is the kind's choice."""
    made = t.create()
    body = marked(made, "new")
    del body["metadata"]["resourceVersion"]
    answer = t.put(body)
    if answer.status != 200:
        error(answer, (400, 409, 422))
    wanted = "new" if answer.status == 200 else None
    demand(mark(t.read(name_of(made))) == wanted, "done or not, as it says", answer, t.get(name_of(made)))


@check("update.missing", needs="update create get delete")
def update_missing(t: Subject) -> None:
    """An update of what is not there is a 404, or creates it (201); it never claims to have updated."""
    body = t.new()
    answer = t.put(body)
    if answer.status == 201:
        success(t.get(name_of(body)), "the object it has created")
        return
    error(answer, (404, 409, 422))
    demand(t.get(name_of(body)).status == 404, "nothing is created", answer)


@check("update.deleted", needs="update create get delete")
def update_deleted(t: Subject) -> None:
    """An update of an object that was deleted meanwhile does not bring it back."""
    made = t.create()
    t.remove(name_of(made))
    answer = t.put(marked(made, "back"))
    error(answer, (404, 409, 422), what="the object is gone")
    demand(t.get(name_of(made)).status == 404, "it stays gone", answer)


@check("update.other-name", needs="update create get delete")
def update_other_name(t: Subject) -> None:
    """The name in the body is that of the path, else a 400; objects are not renamed."""
    made = t.create()
    body = copy.deepcopy(made)
    body["metadata"]["name"] = t.fresh()
    error(t.put(body, name=name_of(made)), (400, 422), what="another name than in the path")
    t.read(name_of(made))


@check("update.other-uid", needs="update create get delete")
def update_other_uid(t: Subject) -> None:
    """Another uid than the object's is a 409: the writer means an object of that name which is gone."""
    made = t.create()
    body = marked(made, "other")
    body["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555"
    error(t.put(body), (409, 422), what="another uid")
    demand(mark(t.read(name_of(made))) is None, "nothing changes", t.get(name_of(made)))


@check("update.creation-time", needs="update create get delete")
def update_creation_time(t: Subject) -> None:
    """creationTimestamp never changes."""
    made = t.create()
    body = marked(made, "new")
    body["metadata"]["creationTimestamp"] = "2001-02-03T04:05:06Z"
    answer = t.put(body)
    demand(answer.status in (200, 400, 422), "200, or refused", answer)
    found = metadata(t.read(name_of(made))).get("creationTimestamp")
    demand(found == metadata(made).get("creationTimestamp"), "the same creationTimestamp", answer, t.get(name_of(made)))


@check("update.nothing", SHOULD, needs="update create get delete")
def update_nothing(t: Subject) -> None:
    """An update that changes nothing writes nothing: the resourceVersion stays, and watchers are left in peace."""
    # The first may store what is only shown until then: defaults that were no part of what was created.
    made = success(t.put(t.create()), "the update").tree()
    answer = success(t.put(made), "the update")
    demand(version(answer.tree()) == version(made), "the same resourceVersion", answer)


@check("update.dry-run", needs="update create get delete")
def update_dry_run(t: Subject) -> None:
    """dryRun=All answers as an update would and changes nothing; `kubectl diff` relies on it."""
    made = t.create()
    answer = success(t.put(marked(made, "dry"), {"dryRun": "All"}), "as the update would be answered")
    demand(mark(answer.tree()) == "dry", "the object as it would be", answer)
    after = t.read(name_of(made))
    demand(mark(after) is None and version(after) == version(made), "nothing changes", answer, t.get(name_of(made)))


@check("update.wrong-kind", needs="update create get delete")
def update_wrong_kind(t: Subject) -> None:
    """A body of another kind is refused (400, 422 for custom resources)."""
    made = t.create()
    error(t.put({**made, "kind": "ConformanceOther"}), (400, 422), what="another kind")


@check("update.strict", SHOULD, needs="update create get delete")
def update_strict(t: Subject) -> None:
    """fieldValidation=Strict holds for updates as well."""
    if t.schema is not None and t.schema.open:
        raise Skipped("the kind takes fields that nobody has declared")
    made = t.create()
    answer = t.put({**marked(made, "x"), "conformanceUnknown": 1}, {"fieldValidation": "Strict"})
    error(answer, 400, "BadRequest", "an unknown field")
    demand(mark(t.read(name_of(made))) is None, "nothing changes", answer)


@check("update.generation", needs="update create get delete")
def update_generation(t: Subject) -> None:
    """generation stays when labels change and grows with the spec; controllers compare it with what they have seen."""
    made = t.create()
    before = metadata(made).get("generation")
    if before is None:
        raise Skipped("the kind has no generation")
    body = copy.deepcopy(made)
    metadata(body)["labels"]["conformance-new"] = "yes"
    answer = success(t.put(body), "the update")
    demand(metadata(answer.tree()).get("generation") == before, f"generation {before} after a label", answer)
    if len(t.samples) < 2:
        return
    # A second sample of the user is another valid state.
    body = {**answer.tree(), "spec": t.new(name_of(made), sample=1).get("spec")}
    answer = success(t.put(body), "the update to the second sample")
    found = metadata(answer.tree()).get("generation")
    demand(isinstance(found, int) and found > before, f"a generation above {before} after the spec", answer)


@check("update.manager", SHOULD, needs="update create get delete patch")
def update_manager(t: Subject) -> None:
    """The fields an update sets belong to its fieldManager; apply finds its conflicts there."""
    made = t.create()
    answer = success(t.put(marked(made, "mine"), {"fieldManager": "conformance-b"}), "the update")
    entries = metadata(answer.tree()).get("managedFields") or []
    found = [entry for entry in entries if entry.get("manager") == "conformance-b"]
    demand(
        len(found) == 1 and "f:fastapi-core.conformance/mark" in str(found[0].get("fieldsV1")),
        "an entry of conformance-b with the annotation",
        answer,
    )

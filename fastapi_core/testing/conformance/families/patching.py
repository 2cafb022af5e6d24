"""Patches: JSON, merge and strategic."""

from __future__ import annotations

from fastapi_core.testing.conformance.subject import MARK, Subject, error, mark, metadata, name_of, success, version
from fastapi_core.testing.conformance.verdicts import SHOULD, Skipped, check, demand

JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
#: The path of the mark in a JSON pointer.
_POINTER = "/metadata/annotations/" + MARK.replace("~", "~0").replace("/", "~1")


def annotated(value: str | None) -> dict[str, object]:
    """A merge patch that sets or removes the mark."""
    return {"metadata": {"annotations": {MARK: value}}}


@check("patch.merge", needs="patch create get delete")
def patch_merge(t: Subject) -> None:
    """A merge patch sets what it names, removes what it names null, and leaves the rest."""
    made = t.create(annotations={"fastapi-core.conformance/other": "stays"})
    answer = success(t.patch(name_of(made), annotated("set")), "the patch")
    demand(mark(answer.tree()) == "set", "the annotation is set", answer)
    demand(mark(answer.tree(), key="fastapi-core.conformance/other") == "stays", "the other one stays", answer)
    demand(version(answer.tree()) != version(made), "another resourceVersion", answer)
    answer = success(t.patch(name_of(made), annotated(None)), "the patch")
    demand(mark(answer.tree()) is None, "the annotation is removed", answer)
    after = t.read(name_of(made))
    demand(after == answer.tree(), "get answers the same", answer, t.get(name_of(made)))


@check("patch.json", needs="patch create get delete")
def patch_json(t: Subject) -> None:
    """A JSON patch does its operations in order: test, add, replace, remove."""
    made = t.create(annotations={MARK: "old"})
    steps: list[dict[str, object]] = [
        {"op": "test", "path": _POINTER, "value": "old"},
        {"op": "replace", "path": _POINTER, "value": "new"},
        {"op": "add", "path": "/metadata/labels/conformance-added", "value": "yes"},
    ]
    answer = success(t.patch(name_of(made), steps, media=JSON_PATCH), "the patch")
    demand(mark(answer.tree()) == "new", "the annotation is replaced", answer)
    demand(metadata(answer.tree())["labels"].get("conformance-added") == "yes", "the label is added", answer)
    answer = success(t.patch(name_of(made), [{"op": "remove", "path": _POINTER}], media=JSON_PATCH), "the patch")
    demand(mark(answer.tree()) is None, "the annotation is removed", answer)


@check("patch.json-test", needs="patch create get delete")
def patch_json_test(t: Subject) -> None:
    """A JSON patch whose test fails is refused as a whole; clients make changes conditional by it."""
    made = t.create(annotations={MARK: "old"})
    steps = [
        {"op": "replace", "path": _POINTER, "value": "new"},
        {"op": "test", "path": "/metadata/name", "value": "another"},
    ]
    answer = t.patch(name_of(made), steps, media=JSON_PATCH)
    error(answer, (409, 422), what="the test fails")
    after = t.read(name_of(made))
    demand(mark(after) == "old" and version(after) == version(made), "nothing changes", answer, t.get(name_of(made)))


@check("patch.malformed", needs="patch create get delete")
def patch_malformed(t: Subject) -> None:
    """A patch that is none is a 400."""
    made = t.create()
    for media, body in (
        (JSON_PATCH, b'[{"op": '),
        (JSON_PATCH, b'{"metadata": {}}'),
        ("application/merge-patch+json", b"{"),
    ):
        error(t.patch(name_of(made), body, media=media), (400, 422), what=f"{body.decode()} as {media}")


@check("patch.strategic", needs="patch create get delete")
def patch_strategic(t: Subject) -> None:
    """A strategic merge patch is done, or refused with 415, as for custom resources; kubectl then sends another."""
    made = t.create()
    answer = t.patch(name_of(made), annotated("set"), media=STRATEGIC)
    if answer.status == 415:
        error(answer, 415, "UnsupportedMediaType")
        demand(mark(t.read(name_of(made))) is None, "nothing changes", answer)
        return
    success(answer, "the patch, or 415")
    demand(mark(t.read(name_of(made))) == "set", "the annotation is set", answer, t.get(name_of(made)))


@check("patch.unknown-type", needs="patch create get delete")
def patch_unknown_type(t: Subject) -> None:
    """A patch of an unknown type is a 415; it cannot be guessed what it means."""
    made = t.create()
    for media in ("application/json", "application/x-conformance"):
        error(t.patch(name_of(made), annotated("x"), media=media), 415, "UnsupportedMediaType")


@check("patch.missing", needs="patch")
def patch_missing(t: Subject) -> None:
    """A patch of what is not there is a 404 NotFound; only apply creates."""
    error(t.patch("conformance-nothing", annotated("x")), 404, "NotFound")


@check("patch.conflict", needs="patch create get delete")
def patch_conflict(t: Subject) -> None:
    """A patch that names an old resourceVersion is a 409 Conflict and changes nothing."""
    made = t.create()
    success(t.patch(name_of(made), annotated("first")), "the patch")
    old = {"metadata": {"resourceVersion": version(made), "annotations": {MARK: "second"}}}
    answer = t.patch(name_of(made), old)
    error(answer, 409, "Conflict")
    demand(mark(t.read(name_of(made))) == "first", "the first patch stands", answer, t.get(name_of(made)))


@check("patch.nothing", SHOULD, needs="patch create get delete")
def patch_nothing(t: Subject) -> None:
    """A patch that changes nothing writes nothing: the resourceVersion stays, and watchers are left in peace."""
    made = t.create(annotations={MARK: "same"})
    # The first may store what is only shown until then: defaults that were no part of what was created.
    made = success(t.patch(name_of(made), annotated("same")), "the patch").tree()
    answer = success(t.patch(name_of(made), annotated("same")), "the patch")
    demand(version(answer.tree()) == version(made), "the same resourceVersion", answer)


@check("patch.dry-run", needs="patch create get delete")
def patch_dry_run(t: Subject) -> None:
    """dryRun=All answers as a patch would and changes nothing."""
    made = t.create()
    answer = success(t.patch(name_of(made), annotated("dry"), {"dryRun": "All"}), "as the patch would be answered")
    demand(mark(answer.tree()) == "dry", "the object as it would be", answer)
    after = t.read(name_of(made))
    demand(mark(after) is None and version(after) == version(made), "nothing changes", answer, t.get(name_of(made)))


@check("patch.rename", needs="patch create get delete")
def patch_rename(t: Subject) -> None:
    """A patch cannot rename an object, nor give it another uid."""
    made = t.create()
    for name, value in (("name", t.fresh()), ("uid", "11111111-2222-3333-4444-555555555555")):
        answer = t.patch(name_of(made), {"metadata": {name: value}})
        error(answer, (400, 409, 422), what=f"another {name}")
    after = t.read(name_of(made))
    demand(metadata(after).get("uid") == metadata(made).get("uid"), "the same object", t.get(name_of(made)))


@check("patch.invalid", needs="patch create get delete")
def patch_invalid(t: Subject) -> None:
    """The result of a patch is validated like any object."""
    made = t.create()
    answer = t.patch(name_of(made), {"metadata": {"labels": {"conformance": "not a valid value!"}}})
    error(answer, 422, "Invalid")
    demand(version(t.read(name_of(made))) == version(made), "nothing changes", answer)


@check("patch.strict", SHOULD, needs="patch create get delete")
def patch_strict(t: Subject) -> None:
    """fieldValidation=Strict holds for patches as well."""
    if t.schema is not None and t.schema.open:
        raise Skipped("the kind takes fields that nobody has declared")
    made = t.create()
    answer = t.patch(name_of(made), {"conformanceUnknown": 1}, {"fieldValidation": "Strict"})
    error(answer, (400, 422), what="an unknown field")

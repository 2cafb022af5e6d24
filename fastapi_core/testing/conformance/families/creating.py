"""Creating objects."""

from __future__ import annotations

import re

from fastapi_core.testing.conformance.client import Answer
from fastapi_core.testing.conformance.subject import LABEL, Subject, error, metadata, name_of, success, version
from fastapi_core.testing.conformance.verdicts import SHOULD, Skipped, check, demand

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def absent(t: Subject, name: str, *shown: Answer) -> None:
    """The object must not be there."""
    answer = t.get(name)
    demand(answer.status == 404, f"404: {name} has not been stored", *shown, answer)


@check("create.stamped", needs="create delete")
def create_stamped(t: Subject) -> None:
    """A create answers 201 and the object with uid, resourceVersion, creationTimestamp; clients go on from it."""
    body = t.new()
    answer = t.post(body)
    demand(answer.status == 201, "201: the object is created", answer)
    tree = answer.tree()
    demand(tree.get("kind") == t.resource.kind and tree.get("apiVersion") == t.resource.api_version, "its kind", answer)
    found = metadata(tree)
    for name in ("uid", "resourceVersion"):
        demand(isinstance(found.get(name), str) and found[name], f"metadata.{name} is a text", answer)
    demand(_TIME.fullmatch(str(found.get("creationTimestamp"))), "creationTimestamp in UTC and whole seconds", answer)
    demand(found.get("name") == name_of(body), "the name that was sent", answer)
    demand((found.get("labels") or {}).get(LABEL) == t.around.run, "the labels that were sent", answer)
    if t.resource.namespaced:
        demand(found.get("namespace") == t.around.namespace, "the namespace of the path", answer)


@check("create.readable", needs="create get delete")
def create_readable(t: Subject) -> None:
    """What create has answered is what get answers next; clients read their own writes."""
    made = t.post(t.new())
    success(made, "the create", 201)
    answer = success(t.get(name_of(made.tree())), "the object is there at once")
    if t.unrest and version(answer.tree()) != version(made.tree()):
        raise Skipped("somebody else changes new objects at once")
    demand(answer.tree() == made.tree(), "the object that create answered", made, answer)


@check("create.namespace-filled", needs="create delete namespaced")
def create_namespace_filled(t: Subject) -> None:
    """A body without namespace takes that of the path; one of another namespace is a 400."""
    body = t.new()
    del body["metadata"]["namespace"]
    answer = success(t.post(body), "the create", 201)
    demand(metadata(answer.tree()).get("namespace") == t.around.namespace, "the namespace of the path", answer)
    other = t.new()
    other["metadata"]["namespace"] = "conformance-other"
    error(t.post(other), 400, "BadRequest", "the namespace does not match the path")


@check("create.namespace-missing", SHOULD, needs="create delete namespaced")
def create_namespace_missing(t: Subject) -> None:
    """Nothing is created in a namespace that does not exist; it would never be cleaned up."""
    if not t.around.namespaces:
        raise Skipped("the server does not serve namespaces itself")
    body = t.new()
    del body["metadata"]["namespace"]
    error(t.post(body, namespace="conformance-nowhere"), (403, 404))


@check("create.server-owned", needs="create get delete")
def create_server_owned(t: Subject) -> None:
    """uid and creationTimestamp are the server's: what the client sends for them is not believed."""
    uid, time = "11111111-2222-3333-4444-555555555555", "2001-02-03T04:05:06Z"
    answer = t.post(t.new(uid=uid, creationTimestamp=time))
    if answer.status >= 400:
        error(answer, (400, 422))
        return
    found = metadata(answer.tree())
    demand(found.get("uid") != uid, "a uid of the server's own", answer)
    demand(found.get("creationTimestamp") != time, "a creationTimestamp of the server's own", answer)


@check("create.with-version", SHOULD, needs="create get delete")
def create_with_version(t: Subject) -> None:
    """A create with a resourceVersion is refused: the object was meant to be updated."""
    answer = t.post(t.new(resourceVersion="12345"))
    demand(answer.status >= 400, "an error", answer)


@check("create.generated-name", needs="create get delete")
def create_generated_name(t: Subject) -> None:
    """generateName makes a new name that begins with it, another each time; controllers name what they make so."""
    prefix = f"conformance-{t.around.run}-gen-"
    found = []
    for _ in range(3):
        body = t.new(generateName=prefix)
        del body["metadata"]["name"]
        answer = success(t.post(body), "the create", 201)
        name = name_of(answer.tree())
        demand(name.startswith(prefix) and len(name) > len(prefix), f"a name after {prefix}", answer)
        demand(name not in found, "another name each time", answer)
        found.append(name)
        success(t.get(name), f"{name} can be read")


@check("create.nameless", needs="create delete")
def create_nameless(t: Subject) -> None:
    """Without name and generateName there is a 422 that names the field, or the server names it; never a nameless one."""
    body = t.new()
    del body["metadata"]["name"]
    answer = t.post(body)
    if answer.status == 201:
        demand(name_of(answer.tree()), "a name that the server has given", answer)
        return
    status = error(answer, (400, 422))
    if answer.status == 422:
        causes = (status.get("details") or {}).get("causes") or []
        demand(any("name" in str(cause.get("field")) for cause in causes), "a cause for metadata.name", answer)


@check("create.bad-name", needs="create delete")
def create_bad_name(t: Subject) -> None:
    """A name that cannot stand in a path is a 422; the object could never be reached."""
    for name in ("a/b", "..", "a%b"):
        error(t.post(t.new(name)), (400, 422), what=f"the name {name!r}")


@check("create.exists", needs="create delete get")
def create_exists(t: Subject) -> None:
    """A second create of a name is a 409 AlreadyExists and changes nothing; leaders are elected by that."""
    made = t.create()
    answer = t.post(t.new(name_of(made), annotations={"fastapi-core.conformance/mark": "second"}))
    details = error(answer, 409, "AlreadyExists").get("details") or {}
    demand(details.get("name") == name_of(made), "details.name", answer)
    demand(version(t.read(name_of(made))) == version(made), "the first object, unchanged", t.get(name_of(made)))


@check("create.wrong-kind", needs="create delete")
def create_wrong_kind(t: Subject) -> None:
    """A body of another kind or version is refused (400, 422 for custom resources): it is in the wrong place."""
    for name, value in (("kind", "ConformanceOther"), ("apiVersion", "conformance.example.com/v9")):
        error(t.post({**t.new(), name: value}), (400, 422), what=f"{name} {value} does not belong here")


@check("create.dry-run", needs="create get delete")
def create_dry_run(t: Subject) -> None:
    """dryRun=All answers as a create would and stores nothing; `kubectl diff` and previews rely on it."""
    body = t.new()
    answer = success(t.post(body, {"dryRun": "All"}), "as the create would be answered", 201)
    demand(name_of(answer.tree()) == name_of(body), "the object", answer)
    absent(t, name_of(body), answer)
    success(t.post(body), "the real create after it", 201)
    error(t.post(body, {"dryRun": "All"}), 409, "AlreadyExists", "a dry run sees what exists")


@check("create.bad-dry-run", needs="create get delete")
def create_bad_dry_run(t: Subject) -> None:
    """An unknown value of dryRun is refused and nothing is stored: who asked for a dry run wanted no change."""
    body = t.new()
    answer = t.post(body, {"dryRun": "Nearly"})
    error(answer, (400, 422))
    absent(t, name_of(body), answer)


@check("create.refused-nothing", needs="create get delete")
def create_refused_nothing(t: Subject) -> None:
    """A create that was refused has left nothing behind."""
    body = t.new(labels={"conformance": "not a valid value!"})
    answer = t.post(body)
    error(answer, (400, 422), what="a label value with blanks")
    absent(t, name_of(body), answer)


@check("create.again", needs="create get delete")
def create_again(t: Subject) -> None:
    """After a delete the name is free; the next object of that name has another uid."""
    made = t.create()
    t.remove(name_of(made))
    answer = success(t.post(t.new(name_of(made))), "the second create", 201)
    demand(metadata(answer.tree()).get("uid") != metadata(made).get("uid"), "another uid", answer)


@check("create.manager", SHOULD, needs="create delete get patch")
def create_manager(t: Subject) -> None:
    """Who created what is in managedFields, under the fieldManager given; apply finds its conflicts there."""
    answer = success(t.post(t.new(), {"fieldManager": "conformance-a"}), "the create", 201)
    entries = metadata(answer.tree()).get("managedFields") or []
    found = [entry for entry in entries if entry.get("manager") == "conformance-a"]
    demand(len(found) == 1 and found[0].get("operation") == "Update", "an Update entry of conformance-a", answer)
    demand(found[0].get("fieldsType") == "FieldsV1" and found[0].get("fieldsV1"), "with its fields", answer)

"""Lists, and which state of the collection they show."""

from __future__ import annotations

from fastapi_core.testing.conformance.client import Answer, unpacked
from fastapi_core.testing.conformance.subject import (
    Subject,
    error,
    items,
    marked,
    metadata,
    name_of,
    names,
    success,
    version,
)
from fastapi_core.testing.conformance.verdicts import SHOULD, Skipped, check, demand


def _mine(t: Subject, query: dict[str, str | int]) -> Answer:
    return success(t.listing(query), "the list")


@check("list.kind", needs="list")
def list_kind(t: Subject) -> None:
    """A list is of the list kind, with items that are a list even when empty; clients loop over them."""
    answer = success(t.listing(), "the list")
    tree = answer.tree()
    demand(tree.get("kind") == f"{t.resource.kind}List", f"kind {t.resource.kind}List", answer)
    demand(tree.get("apiVersion") == t.resource.api_version, f"apiVersion {t.resource.api_version}", answer)
    demand(isinstance(tree.get("metadata"), dict), "metadata", answer)
    items(answer)
    if t.resource.namespaced:
        empty = t.listing(namespace="conformance-nowhere")
        demand(empty.status != 200 or items(empty) == [], "items [] where there is nothing", empty)


@check("list.complete", needs="list create delete")
def list_complete(t: Subject) -> None:
    """A list has every object that was created before it, at once; clients read their own writes."""
    made = [name_of(t.create()) for _ in range(3)]
    _, answer = t.listed()
    found = names(items(answer))
    for name in made:
        demand(found.count(name) == 1, f"{name} is in the list once", answer)
    if t.resource.namespaced:
        _, answer = t.listed(namespace="")
        found = names(items(answer))
        demand(set(made) <= set(found), "they are in the list across all namespaces, too", answer)


@check("list.namespaces-apart", needs="list create delete namespaced")
def list_namespaces_apart(t: Subject) -> None:
    """The list of a namespace has the objects of that namespace only; permissions are given by namespace."""
    made = t.create()
    answer = t.listing(namespace=t.around.elsewhere or "conformance-nowhere")
    demand(answer.status != 200 or name_of(made) not in names(items(answer)), "not in another namespace", answer)


@check("list.same-as-get", needs="list get")
def list_same_as_get(t: Subject) -> None:
    """An item is what get answers, but for kind and apiVersion, which may be left out; caches take either."""
    obj = t.existing()
    if "watch" not in t.resource.verbs:
        raise Skipped("what is not watched may be computed anew for each request")
    _, answer = t.listed(namespace=str(metadata(obj).get("namespace", "")))
    one = success(t.client.request("GET", t.where(obj)), "the object")
    tree = {name: value for name, value in one.tree().items() if name not in ("kind", "apiVersion")}
    found = [item for item in items(answer) if name_of(item) == name_of(obj)]
    demand(len(found) == 1, f"{name_of(obj)} is in the list once", answer)
    item = {name: value for name, value in found[0].items() if name not in ("kind", "apiVersion")}
    demand(item == tree, "the same object in list and get", answer, one)


@check("list.version", needs="list watch")
def list_version(t: Subject) -> None:
    """A list tells its resourceVersion, and it grows with writes; watches start from there."""
    answer = success(t.listing(), "the list")
    before = version(answer.tree())
    demand(before, "metadata.resourceVersion", answer)
    if not {"create", "delete"} <= t.resource.verbs or t.refused:
        return
    made = t.create()
    again = success(t.listing(), "the list")
    after = version(again.tree())
    demand(after != before, "another resourceVersion after a write", answer, again)
    if all(value.isdigit() for value in (before, after, version(made))):
        demand(int(before) < int(version(made)) <= int(after), "versions that grow with each write", answer, again)


@check("list.any-version", needs="list watch")
def list_any_version(t: Subject) -> None:
    """resourceVersion 0 is whatever the server has; that is how caches fill themselves."""
    success(t.listing({"resourceVersion": "0"}), "resourceVersion=0")


@check("list.not-older", needs="list watch create delete")
def list_not_older(t: Subject) -> None:
    """NotOlderThan a version is at least as new as it; clients read what they know to exist."""
    made = t.create()
    query = {"resourceVersion": version(made), "resourceVersionMatch": "NotOlderThan"}
    answer = success(t.listing(query), "the list")
    demand(name_of(made) in names(items(answer)), f"{name_of(made)}, created at that version", answer)


@check("list.exact", needs="list watch create delete")
def list_exact(t: Subject) -> None:
    """Exact is the state at that version or an error, never another state; that is what it is for."""
    first = t.create()
    second = t.create()
    query = {"resourceVersion": version(first), "resourceVersionMatch": "Exact"}
    answer = t.listing(query)
    if answer.status != 200:
        error(answer, (400, 410, 422, 501))
        raise Skipped("lists of former versions are not served")
    found = names(items(answer))
    demand(name_of(first) in found, f"{name_of(first)}, which existed then", answer)
    demand(name_of(second) not in found, f"not {name_of(second)}, which did not exist yet", answer)


@check("list.future-version", needs="list watch create delete")
def list_future_version(t: Subject) -> None:
    """A version the server has not reached is an error; whoever asks for newer must not be given older."""
    made = version(t.create())
    if not made.isdigit():
        raise Skipped("versions are no numbers here")
    answer = t.listing({"resourceVersion": str(int(made) + 1_000_000_000)})
    demand(answer.status >= 400, "an error (504 of reason Timeout)", answer)
    error(answer, answer.status)


@check("list.bad-version", needs="list watch")
def list_bad_version(t: Subject) -> None:
    """A resourceVersion that is none is refused; ignoring it would answer another question."""
    error(t.listing({"resourceVersion": "no-version"}), (400, 422))


@check("list.match-alone", SHOULD, needs="list watch")
def list_match_alone(t: Subject) -> None:
    """resourceVersionMatch without resourceVersion, or of an unknown name, is refused: it means nothing."""
    error(t.listing({"resourceVersionMatch": "NotOlderThan"}), (400, 422))
    error(t.listing({"resourceVersionMatch": "Nearly", "resourceVersion": "1"}), (400, 422))


@check("list.unknown-options", needs="list")
def list_unknown_options(t: Subject) -> None:
    """Unknown query parameters are ignored: newer clients send newer ones."""
    success(t.listing({"conformanceUnknown": "1"}), "the parameter is ignored")


@check("list.gone", needs="list create delete")
def list_gone(t: Subject) -> None:
    """What is deleted is in no later list."""
    made = t.create()
    t.remove(name_of(made))
    _, answer = t.listed()
    demand(name_of(made) not in names(items(answer)), f"no {name_of(made)}", answer)


@check("list.updated", needs="list create delete update get")
def list_updated(t: Subject) -> None:
    """A list shows the newest state of what was updated before it."""
    made = t.create()
    updated = success(t.put(marked(made, "listed")), "the update").tree()
    _, answer = t.listed()
    found = [item for item in items(answer) if name_of(item) == name_of(made)]
    demand([version(item) for item in found] == [version(updated)], "the version the update answered", answer)


@check("list.gzip", needs="list")
def list_gzip(t: Subject) -> None:
    """A packed answer is valid gzip and says so; it is only sent to those who take it."""
    answer = success(t.listing(headers={"Accept-Encoding": "gzip"}), "the list")
    if answer.header("Content-Encoding") == "gzip":
        try:
            body = unpacked(answer.body)
        except ValueError:
            body = b""
        demand(body.startswith(b"{"), "gzip with the list in it", answer)
    else:
        answer.tree()
    plain = success(t.listing(headers={"Accept-Encoding": "identity"}), "the list")
    demand(not plain.header("Content-Encoding"), "nothing packed for those who do not ask", plain)
    plain.tree()

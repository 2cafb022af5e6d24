"""What a watch sees: selectors and namespaces."""

from __future__ import annotations

from fastapi_core.testing.conformance.subject import Subject, marked, name_of, success, version
from fastapi_core.testing.conformance.verdicts import Skipped, check, demand

_KEY = "fastapi-core.conformance/watched"


@check("scope.labels", needs="watch list create get update delete")
def scope_labels(t: Subject) -> None:
    """An object that begins to be selected is ADDED, one that ceases to be is DELETED; caches hold what is selected."""
    start = t.version()
    with t.watch({"resourceVersion": start, "labelSelector": f"{_KEY}=yes"}) as watch:
        made = t.create()
        states: list[str] = []
        for value in ("yes", "yes", "no"):
            made = marked(made, f"{len(states)}")
            made["metadata"]["labels"][_KEY] = value
            made = success(t.put(made), "the update").tree()
            states.append(version(made))
        success(t.delete(name_of(made)), "the deletion", 200, 202)
        closing = t.create(labels={_KEY: "yes"})
        found = [(event.type, event.name) for event in watch.until(name_of(closing), "ADDED")]
        name = name_of(made)
        wanted = [("ADDED", name), ("MODIFIED", name), ("DELETED", name), ("ADDED", name_of(closing))]
        demand(found == wanted, "ADDED, MODIFIED, DELETED by what the selector selects", watch)
        demand(watch.seen[2].version == states[2], "DELETED under the version of the change", watch)


@check("scope.name", needs="watch list create get update delete")
def scope_name(t: Subject) -> None:
    """A watch with metadata.name sees that object alone; `kubectl wait` and `get -w NAME` are this."""
    t.prompt()
    start = t.version()
    name = t.fresh()
    with t.watch({"resourceVersion": start, "fieldSelector": f"metadata.name={name}"}) as watch:
        t.create()
        made = t.create(t.new(name))
        t.create()
        success(t.put(marked(made, "new")), "the update")
        success(t.delete(name), "the deletion", 200, 202)
        events = watch.until(name, "DELETED")
        demand({event.name for event in events} == {name}, "events of that object alone", watch)
        demand([event.type for event in events][:2] == ["ADDED", "MODIFIED"], "all of its events", watch)


@check("scope.namespace", needs="watch list create delete namespaced")
def scope_namespace(t: Subject) -> None:
    """A watch of a namespace sees that namespace; permissions are given by namespace."""
    if not t.around.elsewhere:
        raise Skipped("there is no second namespace")
    start = t.version()
    with t.watch({"resourceVersion": start}) as watch:
        body = t.new()
        body["metadata"]["namespace"] = t.around.elsewhere
        success(t.post(body, namespace=t.around.elsewhere), "a create elsewhere", 201)
        closing = name_of(t.create())
        found = [event.name for event in watch.until(closing, "ADDED")]
        demand(found == [closing], "no event of another namespace", watch)


@check("scope.all-namespaces", needs="watch list create delete namespaced")
def scope_all_namespaces(t: Subject) -> None:
    """A watch across all namespaces sees each of them."""
    start = t.version()
    with t.watch({"resourceVersion": start}, namespace="") as watch:
        made = name_of(t.create())
        events = watch.until(made, "ADDED")
        demand(events[-1].object["metadata"].get("namespace") == t.around.namespace, "the object's namespace", watch)


@check("scope.invalid", needs="watch list")
def scope_invalid(t: Subject) -> None:
    """A watch with a selector that cannot be read is a 400, not a watch of everything."""
    for query in ({"labelSelector": "a in"}, {"fieldSelector": "spec.conformanceUnknown=x"}):
        watch = t.client.watch(t.path(), {**query, "timeoutSeconds": 1})
        watch.close()
        demand(watch.answer.status == 400, "400: the selector", watch)

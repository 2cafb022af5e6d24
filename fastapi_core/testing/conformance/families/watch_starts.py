"""How watches begin: from nothing, from any version, with initial events, with bookmarks."""

from __future__ import annotations

from fastapi_core.testing.conformance.subject import LABEL, Subject, error, metadata, name_of
from fastapi_core.testing.conformance.verdicts import SHOULD, Skipped, check, demand

_END = "k8s.io/initial-events-end"
_KEY = "fastapi-core.conformance/start"


@check("start.now", needs="watch list create delete")
def start_now(t: Subject) -> None:
    """Without a resourceVersion a watch begins with ADDED for what exists; `kubectl wait` and scripts rely on it."""
    _initial(t, {})


@check("start.any", needs="watch list create delete")
def start_any(t: Subject) -> None:
    """From resourceVersion 0 a watch begins with ADDED for what exists, too."""
    _initial(t, {"resourceVersion": "0"})


def _initial(t: Subject, query: dict[str, str | int]) -> None:
    own = t.fresh()
    made = sorted(name_of(t.create(labels={_KEY: own})) for _ in range(3))
    with t.watch({**query, "labelSelector": f"{_KEY}={own}"}) as watch:
        found = [watch.next("ADDED for each object that exists") for _ in made]
        demand(all(event.type == "ADDED" for event in found), "ADDED for what exists", watch)
        demand(sorted(event.name for event in found) == made, "each object once", watch)
        closing = name_of(t.create(labels={_KEY: own}))
        event = watch.next()
        demand((event.type, event.name) == ("ADDED", closing), "then what is created later", watch)


@check("start.list", needs="watch list create delete")
def start_list(t: Subject) -> None:
    """sendInitialEvents: ADDED for what exists, then a bookmark that says so; informers use it in place of a list."""
    own = t.fresh()
    made = sorted(name_of(t.create(labels={_KEY: own})) for _ in range(2))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    watch = t.client.watch(t.path(), {**query, "labelSelector": f"{_KEY}={own}"})
    with watch:
        if watch.answer.status != 200:
            error(watch.answer, (400, 422))
            raise Skipped("not offered, and refused as clients expect it")
        found = [watch.next() for _ in made]
        demand(sorted(event.name for event in found) == made, "ADDED for each object", watch)
        event = watch.next("the bookmark at the end of the initial events")
        demand(event.type == "BOOKMARK", "BOOKMARK", watch)
        demand((metadata(event.object).get("annotations") or {}).get(_END) == "true", f"the annotation {_END}", watch)
        demand(event.version, "a resourceVersion to go on from", watch)
        demand(event.object.get("kind") == t.resource.kind, f"an object of kind {t.resource.kind}", watch)
        closing = name_of(t.create(labels={_KEY: own}))
        demand(watch.next().name == closing, "then what is created later", watch)
    with t.watch({"resourceVersion": event.version}) as again:
        demand(again.next().name == closing, "the same when one goes on from the bookmark", again)


@check("start.list-alone", SHOULD, needs="watch list")
def start_list_alone(t: Subject) -> None:
    """sendInitialEvents without resourceVersionMatch is refused: client and server must mean the same."""
    watch = t.client.watch(t.path(), {"sendInitialEvents": "true", "timeoutSeconds": 1})
    watch.close()
    error(watch.answer, (400, 422))


@check("start.no-bookmarks", needs="watch list create delete")
def start_no_bookmarks(t: Subject) -> None:
    """Bookmarks come to those only who ask for them; others take them for objects."""
    t.create()
    with t.watch({"resourceVersion": "0", "labelSelector": f"{LABEL}={t.around.run}"}) as watch:
        closing = name_of(t.create())
        events = watch.until(closing, "ADDED")
        demand(all(event.type != "BOOKMARK" for event in events), "no BOOKMARK", watch)


@check("start.bookmarks", SHOULD, needs="watch list create delete")
def start_bookmarks(t: Subject) -> None:
    """Whoever asks for bookmarks gets some in the course of a watch; a quiet watch stays resumable by them."""
    made = t.create()
    query: dict[str, str | int] = {"resourceVersion": "0", "allowWatchBookmarks": "true", "timeoutSeconds": 3}
    with t.watch({**query, "labelSelector": f"{LABEL}={t.around.run}"}) as watch:
        events = watch.rest(3)
        found = [event for event in events if event.type == "BOOKMARK"]
        demand(found, "a BOOKMARK before the watch ends", watch)
        demand(all(event.version for event in found), "a resourceVersion in each", watch)
        demand(name_of(made) in [event.name for event in events], "beside the objects", watch)


@check("start.plain-get", needs="watch list create delete")
def start_plain_get(t: Subject) -> None:
    """watch=false is a list."""
    made = t.create()
    answer = t.listing({"watch": "false"})
    demand(answer.status == 200 and answer.tree().get("kind") == f"{t.resource.kind}List", "a list", answer)
    demand(name_of(made).encode() in answer.body, "with the object", answer)

"""Watches: every change once, in order, from where one says."""

from __future__ import annotations

import itertools
import threading
import time

from fastapi_core.testing.conformance.client import Client, Watch
from fastapi_core.testing.conformance.subject import Subject, error, mark, marked, metadata, name_of, success, version
from fastapi_core.testing.conformance.verdicts import SHOULD, Skipped, check, demand


def growing(watch: Watch) -> None:
    """Versions of a stream grow, where they are numbers; none comes twice."""
    versions = [event.version for event in watch.seen if event.type != "ERROR"]
    demand(all(versions), "a resourceVersion in every event", watch)
    if all(value.isdigit() for value in versions):
        pairs = itertools.pairwise(versions)
        demand(all(int(one) < int(other) for one, other in pairs), "versions that grow, none twice", watch)


@check("watch.events", needs="watch list create get update delete")
def watch_events(t: Subject) -> None:
    """From the version of a list on, each change is one event with the object as it was then; caches are made so."""
    t.prompt()
    start = t.version()
    with t.watch({"resourceVersion": start}) as watch:
        made = t.post(t.new()).tree()
        name = name_of(made)
        updated = success(t.put(marked(t.settled(made), "new")), "the update").tree()
        success(t.delete(name), "the deletion", 200, 202)
        events = [event for event in watch.until(name, "DELETED") if event.name == name]
        demand([event.type for event in events][:2] == ["ADDED", "MODIFIED"], "ADDED, MODIFIED, ..., DELETED", watch)
        demand(events[0].object == made, "the created object in ADDED", watch)
        found = [event.object for event in events if event.type == "MODIFIED" and event.version == version(updated)]
        demand(found == [updated], "the updated object in MODIFIED", watch)
        demand(watch.answer.media == "application/json", "Content-Type application/json", watch)
        growing(watch)


@check("watch.deleted-state", needs="watch list create get update delete")
def watch_deleted_state(t: Subject) -> None:
    """DELETED carries the last state of the object under a newer resourceVersion; controllers clean up by it."""
    t.prompt()
    start = t.version()
    with t.watch({"resourceVersion": start}) as watch:
        made = t.create()
        updated = success(t.put(marked(made, "last")), "the update").tree()
        success(t.delete(name_of(made)), "the deletion", 200, 202)
        event = watch.until(name_of(made), "DELETED")[-1]
        demand(mark(event.object) == "last", "the last state of the object", watch)
        demand(metadata(event.object).get("uid") == metadata(made)["uid"], "its uid", watch)
        demand(event.version != version(updated), "another resourceVersion than its last state had", watch)
    # Who goes on from the deletion must not see it again.
    with t.watch({"resourceVersion": event.version}) as watch:
        other = name_of(t.create())
        demand(watch.next().name == other, "the next change after the deletion", watch)


@check("watch.resumes", needs="watch list create get update delete")
def watch_resumes(t: Subject) -> None:
    """A watch from any event's version has every later event, once; clients go on so after a broken connection."""
    start = t.version()
    with t.watch({"resourceVersion": start}) as watch:
        made = t.create()
        for number in range(3):
            made = success(t.put(marked(made, str(number))), "the update").tree()
        last = t.create()
        events = watch.until(name_of(last), "ADDED")
    whole = [(event.type, event.version) for event in events]
    for position in range(len(events)):
        with t.watch({"resourceVersion": events[position].version}) as again:
            closing = name_of(t.create())
            later = [event for event in again.until(closing, "ADDED") if event.name in (name_of(made), name_of(last))]
            wanted = whole[position + 1 :]
            found = [(event.type, event.version) for event in later][: len(wanted)]
            demand(found == wanted, f"the {len(wanted)} events after {events[position]}, each once", again)


@check("watch.follows-list", needs="watch list create get delete")
def watch_follows_list(t: Subject) -> None:
    """Nothing gets lost between a list and the watch from its version, however much later it begins."""
    t.create()
    start = t.version()
    between = [name_of(t.create()) for _ in range(3)]
    with t.watch({"resourceVersion": start}) as watch:
        closing = name_of(t.create())
        found = [event.name for event in watch.until(closing, "ADDED") if event.type == "ADDED"]
        demand(found == [*between, closing], "the objects created since the list, in order", watch)


@check("watch.burst", needs="watch list create get delete")
def watch_burst(t: Subject) -> None:
    """Concurrent writes are in the streams of all watchers in the same order, each once."""
    start = t.version()
    with t.watch({"resourceVersion": start}) as one, t.watch({"resourceVersion": start}) as other:
        made = _created(t, workers=4, each=5)
        closing = name_of(t.create())
        first = [str(event) for event in one.until(closing, "ADDED")]
        second = [str(event) for event in other.until(closing, "ADDED")]
        found = sorted(event.name for event in one.seen if event.type == "ADDED")
        demand(found == sorted([*made, closing]), f"{len(made) + 1} objects, each once", one)
        demand(first == second, "the same order for both watchers", one, other)
        growing(one)


def _created(t: Subject, workers: int, each: int) -> list[str]:
    made: list[str] = []
    bodies = [[t.new() for _ in range(each)] for _ in range(workers)]

    def work(client: Client, mine: list[dict[str, object]]) -> None:
        for body in mine:
            answer = t.post(body, client=client)
            if answer.status == 201:
                made.append(name_of(answer.tree()))

    threads = [threading.Thread(target=work, args=(t.another(), mine)) for mine in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    demand(len(made) == workers * each, f"all of {workers * each} concurrent creates succeed; {len(made)} did")
    return made


@check("watch.dry-run", needs="watch list create get delete")
def watch_dry_run(t: Subject) -> None:
    """What is only a dry run is in no watch."""
    start = t.version()
    with t.watch({"resourceVersion": start}) as watch:
        dry = t.new()
        t.post(dry, {"dryRun": "All"})
        closing = name_of(t.create())
        found = [event.name for event in watch.until(closing, "ADDED")]
        demand(name_of(dry) not in found, "no event of the dry run", watch)


@check("watch.timeout", needs="watch list")
def watch_timeout(t: Subject) -> None:
    """timeoutSeconds ends the watch in good order, after that time; clients bound their watches by it."""
    with t.watch({"resourceVersion": t.version(), "timeoutSeconds": 1}) as watch:
        for event in watch.rest(1):
            demand(event.type != "ERROR", "an end without an error", watch)


@check("watch.bad-version", SHOULD, needs="watch list")
def watch_bad_version(t: Subject) -> None:
    """A watch from a resourceVersion that is none is refused."""
    watch = t.client.watch(t.path(), {"resourceVersion": "no-version", "timeoutSeconds": 1})
    watch.close()
    demand(watch.answer.status >= 400, "an error", watch)


@check("watch.too-old", needs="watch list create get delete")
def watch_too_old(t: Subject) -> None:
    """A watch from long ago has everything since, or says 410; a silent hole would never be noticed."""
    made = name_of(t.create())
    watch = t.client.watch(t.path(), {"resourceVersion": "1"})
    with watch:
        if watch.answer.status != 200:
            error(watch.answer, 410)
            return
        closing = name_of(t.create())
        found = []
        until = time.monotonic() + 2 * t.client.target.patience
        while closing not in found:
            demand(time.monotonic() < until, f"the event of {closing} among all these", watch)
            event = watch.next(f"ERROR 410, or the events of {made} and {closing}")
            if event.type == "ERROR":
                demand(event.object.get("code") == 410, "code 410 in the Status of ERROR", watch)
                demand(event.object.get("reason") in ("Expired", "Gone"), "reason Expired", watch)
                return
            found.append(event.name)
        demand(made in found, f"the event of {made}, or ERROR 410", watch)


@check("watch.quiet", SHOULD, needs="watch list create get update delete")
def watch_quiet(t: Subject) -> None:
    """An update that changes nothing is no event; controllers would answer each other for ever."""
    made = success(t.put(t.create()), "the update").tree()
    with t.watch({"resourceVersion": version(made)}) as watch:
        answer = success(t.put(made), "the update")
        if version(answer.tree()) != version(made):
            raise Skipped("such updates are written here (see update.nothing)")
        closing = name_of(t.create())
        found = [event.name for event in watch.until(closing, "ADDED")]
        demand(found == [closing], "no event of an update that changed nothing", watch)

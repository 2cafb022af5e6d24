"""Writes at the same time: one wins, none gets lost."""

from __future__ import annotations

import threading
from collections.abc import Callable

from fastapi_core.testing.conformance.client import Answer, Client, Tree
from fastapi_core.testing.conformance.subject import Subject, error, mark, marked, metadata, name_of, success
from fastapi_core.testing.conformance.verdicts import check, demand

_WORKERS = 4


def together(t: Subject, work: Callable[[Client, int], Answer]) -> list[Answer]:
    """What several clients are answered who do their work at the same moment."""
    answers: list[Answer] = []
    start = threading.Barrier(_WORKERS)

    def one(client: Client, number: int) -> None:
        client.request("GET", t.path("conformance-nothing"))
        start.wait(30)
        answers.append(work(client, number))

    threads = [threading.Thread(target=one, args=(t.another(), number)) for number in range(_WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    demand(len(answers) == _WORKERS, f"{_WORKERS} answers; {len(answers)} came")
    return answers


@check("together.updates", needs="update create get delete")
def together_updates(t: Subject) -> None:
    """Of updates from one resourceVersion exactly one succeeds, the others are conflicts; no write is lost by that."""
    made = t.create()
    path = t.path(name_of(made))
    for turn in range(3):
        current = t.read(name_of(made))

        def update(client: Client, number: int, now: Tree = current, turn: int = turn) -> Answer:
            return client.request("PUT", path, marked(now, f"{turn}-{number}"))

        answers = together(t, update)
        won = [answer for answer in answers if answer.status == 200]
        demand(len(won) == 1, "one update succeeds", *answers)
        for answer in answers:
            if answer.status != 200:
                error(answer, 409, "Conflict")
        demand(
            mark(t.read(name_of(made))) == mark(won[0].tree()),
            "the one that succeeded stands",
            *answers,
            t.get(name_of(made)),
        )


@check("together.patches", needs="patch create get delete")
def together_patches(t: Subject) -> None:
    """Patches of different fields all count, whatever their order; the server tries again by itself."""
    made = t.create()
    path, keys = t.path(name_of(made)), [f"fastapi-core.conformance/worker-{number}" for number in range(_WORKERS)]
    merge = {"Content-Type": "application/merge-patch+json"}

    def patch(client: Client, number: int) -> Answer:
        body = {"metadata": {"annotations": {keys[number]: "yes"}}}
        return client.request("PATCH", path, body, headers=merge)

    answers = together(t, patch)
    for answer in answers:
        success(answer, "the patch")
    after = t.get(name_of(made))
    found = (metadata(after.tree()).get("annotations") or {}).keys()
    demand(set(keys) <= set(found), "every annotation that was set", *answers, after)


@check("together.creates", needs="create get delete")
def together_creates(t: Subject) -> None:
    """Of creates of one name exactly one succeeds; locks are made of that."""
    body = t.new()
    answers = together(t, lambda client, number: t.post(marked(body, f"{number}"), client=client))
    won = [answer for answer in answers if answer.status == 201]
    demand(len(won) == 1, "one create succeeds", *answers)
    for answer in answers:
        if answer.status != 201:
            error(answer, 409, "AlreadyExists")
    after = t.get(name_of(body))
    same = (metadata(after.tree()).get("uid"), mark(after.tree())) == (
        metadata(won[0].tree())["uid"],
        mark(won[0].tree()),
    )
    demand(same, "the one that succeeded is stored", *answers, after)


@check("together.deletes", needs="create get delete")
def together_deletes(t: Subject) -> None:
    """Of deletes of one object at most one deletes it; the others find nothing (404), or what is going."""
    made = t.create()
    path = t.path(name_of(made))
    answers = together(t, lambda client, number: client.request("DELETE", path))
    for answer in answers:
        demand(answer.status in (200, 202, 404, 409), "200, or 404", answer)
    demand(any(answer.status in (200, 202) for answer in answers), "one of them deletes it", *answers)
    after = t.get(name_of(made))
    demand(after.status == 404 or metadata(after.tree()).get("deletionTimestamp"), "it is gone", *answers, after)

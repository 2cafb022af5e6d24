"""Lists in pages."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from fastapi_core.testing.conformance.client import Answer, Query
from fastapi_core.testing.conformance.subject import (
    LABEL,
    Subject,
    error,
    items,
    metadata,
    name_of,
    names,
    success,
    version,
)
from fastapi_core.testing.conformance.verdicts import SHOULD, Skipped, check, demand

_PAGES = 10_000


def _token(answer: Answer) -> str:
    return str(metadata(answer.tree()).get("continue", ""))


def _following(t: Subject, answer: Answer, query: Query) -> Iterator[Answer]:
    """The pages behind an answer; a failed check where they go round in a circle or do not end."""
    seen: set[str] = set()
    while token := _token(answer):
        demand(token not in seen, "a continue that leads on, not back to where it has been", answer)
        demand(len(seen) < _PAGES, f"an end of the list within {_PAGES} pages", answer)
        seen.add(token)
        answer = t.listing({**query, "continue": token})
        yield answer


def _first(t: Subject, count: int = 5) -> tuple[list[str], Answer]:
    made = [name_of(t.create()) for _ in range(count)]
    answer = success(t.listing({"limit": 2}), "the first page")
    if not _token(answer):
        raise Skipped("the server does not page: it answers all at once")
    return made, answer


@check("page.limit", SHOULD, needs="list create delete")
def page_limit(t: Subject) -> None:
    """limit bounds a page, and continue leads to the next one; large collections cannot be read otherwise."""
    for _ in range(3):
        t.create()
    answer = success(t.listing({"limit": 2}), "the first page")
    demand(len(items(answer)) == 2, "two items", answer)
    demand(_token(answer), "metadata.continue", answer)


@check("page.whole", needs="list create delete")
def page_whole(t: Subject) -> None:
    """All pages together have every object once; whoever pages must not miss one or see one twice."""
    made, answer = _first(t)
    found = names(items(answer))
    pages = deque([answer], 4)
    for page in _following(t, answer, {"limit": 2}):
        success(page, "the next page")
        demand(len(items(page)) <= 2, "at most two items", page)
        demand(items(page) or not _token(page), "items in every page but the last", page)
        found += names(items(page))
        pages.append(page)
    for name in made:
        demand(found.count(name) == 1, f"{name} once in all pages", *pages)


@check("page.one-state", needs="list create delete")
def page_one_state(t: Subject) -> None:
    """Pages of one list show the state of its first page, or say 410; later writes do not shift what is left."""
    made, answer = _first(t)
    start = version(answer.tree())
    for name in made:
        success(t.delete(name), "the deletion", 200, 202)
    new = name_of(t.create())
    found = names(items(answer))
    last = answer
    for last in _following(t, answer, {"limit": 500}):
        if last.status == 410:
            return
        success(last, "the next page")
        if version(last.tree()) != start:
            raise Skipped("the server goes on with newer states, and says so by their versions")
        found += names(items(last))
    demand(set(made) <= set(found), "objects that existed at the first page", last)
    demand(new not in found, f"not {new}, created after the first page", last)


@check("page.remaining", needs="list create delete")
def page_remaining(t: Subject) -> None:
    """remainingItemCount, where it is told, is how many objects are on later pages; progress bars use it."""
    _, answer = _first(t)
    told = metadata(answer.tree()).get("remainingItemCount")
    if told is None:
        raise Skipped("the server does not tell")
    rest = success(t.listing({"continue": _token(answer)}), "the rest")
    demand(told == len(items(rest)), f"remainingItemCount {len(items(rest))}", answer)


@check("page.selected", needs="list create delete")
def page_selected(t: Subject) -> None:
    """Selectors hold for pages: each page is of selected objects, and none is left out."""
    made, _ = _first(t, 3)
    chosen = []
    for _ in range(3):
        chosen.append(name_of(t.create(t.new(labels={"fastapi-core.conformance/page": "yes"}))))
        made.append(name_of(t.create()))
    query: dict[str, str | int] = {"limit": 2, "labelSelector": f"fastapi-core.conformance/page,{LABEL}={t.around.run}"}
    last = first = success(t.listing(query), "the first page")
    found = names(items(first))
    for last in _following(t, first, query):
        found += names(items(success(last, "the next page")))
    demand(sorted(found) == sorted(chosen), f"the {len(chosen)} selected, not the {len(made)} others", last)


@check("page.bad-continue", needs="list create delete")
def page_bad_continue(t: Subject) -> None:
    """A continue that is none is refused; beginning from the start would loop for ever."""
    _first(t, 3)
    error(t.listing({"limit": 2, "continue": "conformance-nonsense"}), (400, 410))


@check("page.bad-limit", SHOULD, needs="list")
def page_bad_limit(t: Subject) -> None:
    """A limit that is no number is refused."""
    error(t.listing({"limit": "many"}), (400, 422))

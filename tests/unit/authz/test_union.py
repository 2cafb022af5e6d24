from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from fastapi_core.authz.base import (
    ALLOWED,
    NO_OPINION,
    AlwaysAllow,
    AlwaysDeny,
    Attributes,
    Authorizer,
    Decision,
    Grants,
    PrivilegedGroup,
    Verdict,
)
from fastapi_core.authz.reload import Exchangeable
from fastapi_core.authz.union import AuthorizerUnion, aggregate
from fastapi_core.request.context import ANONYMOUS, User
from tests.fixtures.policies import asked

QUESTION = asked(User("alice"), "get", "pods")


class Says:
    """An authorizer with one answer, at once or later."""

    def __init__(self, verdict: Verdict, *, later: bool = False, generation: int = 0) -> None:
        self.verdict, self.later, self.generation = verdict, later, generation
        self.questions = 0

    def authorize(self, attributes: Attributes) -> Verdict | Awaitable[Verdict]:
        self.questions += 1
        return self._later() if self.later else self.verdict

    async def _later(self) -> Verdict:
        return self.verdict

    def grants(self, user: User, namespace: str) -> Grants:
        return Grants([{"verbs": [self.verdict.reason]}], [], self.later, self.verdict.error)


async def verdict(*authorizers: Authorizer) -> Verdict:
    answer = AuthorizerUnion(authorizers).authorize(QUESTION)
    return answer if isinstance(answer, Verdict) else await answer


@pytest.mark.parametrize("later", [False, True])
async def test_the_first_opinion_wins_and_nobody_behind_it_is_asked(later: bool) -> None:
    none = Says(Verdict(Decision.NO_OPINION, "not me"), later=later)
    behind = Says(ALLOWED)
    assert await verdict(none, Says(Verdict(Decision.DENY, "no"), later=later), behind) == Verdict(Decision.DENY, "no")
    assert (await verdict(none, Says(ALLOWED, later=later), behind)).decision is Decision.ALLOW
    assert behind.questions == 0


@pytest.mark.parametrize("later", [False, True])
async def test_reasons_and_errors_of_those_without_an_opinion_are_kept(later: bool) -> None:
    first = Says(Verdict(Decision.NO_OPINION, "a", "x"), later=later)
    found = await verdict(first, Says(NO_OPINION), Says(Verdict(Decision.NO_OPINION, "b", "y")))
    assert (found.decision, found.reason, found.error) == (Decision.NO_OPINION, "a\nb", "[x, y]")


async def test_a_verdict_lasts_no_longer_than_the_opinions_in_front_of_it() -> None:
    passing = Says(Verdict(Decision.NO_OPINION, lasting=False))
    assert not (await verdict(passing, Says(ALLOWED))).lasting
    assert not (await verdict(passing)).lasting
    assert (await verdict(Says(ALLOWED), passing)).lasting
    assert (await verdict(Says(NO_OPINION), Says(ALLOWED))).lasting


def test_the_generation_changes_with_that_of_each() -> None:
    first, second = Says(ALLOWED, generation=3), Says(ALLOWED, generation=5)
    union = AuthorizerUnion([first, second])
    before = union.generation
    second.generation += 1
    assert union.generation > before


def test_grants_of_all_together() -> None:
    union = AuthorizerUnion([Says(Verdict(Decision.ALLOW, "a", "x")), Says(Verdict(Decision.ALLOW, "b"), later=True)])
    assert union.grants(User("u"), "ns") == Grants([{"verbs": ["a"]}, {"verbs": ["b"]}], [], True, "x")


def test_members_of_the_privileged_group_may_do_everything() -> None:
    union = AuthorizerUnion([PrivilegedGroup("system:masters"), AlwaysDeny()])
    admin = User("x", groups=("system:masters",))
    assert union.authorize(asked(admin, "delete", "pods")) == ALLOWED
    found = union.authorize(QUESTION)
    assert found == Verdict(Decision.NO_OPINION, "Everything is forbidden.")


def test_an_exchange_makes_old_verdicts_void_and_a_failed_one_changes_nothing() -> None:
    choices: list[Callable[[], Authorizer]] = [lambda: Says(ALLOWED, generation=7), AlwaysDeny]

    def make() -> Authorizer:
        if not choices:
            raise ValueError("broken")
        return choices.pop(0)()

    found = Exchangeable(make)
    before = found.generation
    assert found.authorize(QUESTION) == ALLOWED
    found.exchange()
    assert found.generation > before
    after = found.generation
    assert found.authorize(QUESTION) == AlwaysDeny().authorize(QUESTION)
    with pytest.raises(ValueError, match="broken"):
        found.exchange()
    assert (found.generation, found.authorize(QUESTION)) == (after, AlwaysDeny().authorize(QUESTION))
    assert found.grants(User("u"), "ns") == Grants([], [])


def test_texts_of_several_errors() -> None:
    assert (aggregate([]), aggregate(["a", "a"]), aggregate(["a", "b", "a"])) == ("", "a", "[a, b]")


def test_whoever_allows_everything_lists_everything() -> None:
    assert AlwaysAllow().grants(User("u"), "ns").resource_rules == [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    ]


def test_even_where_everything_is_allowed_strangers_get_no_further_than_health() -> None:
    judge = AlwaysAllow().authorize
    assert judge(asked(ANONYMOUS, "get", path="/livez")) == ALLOWED
    assert judge(asked(ANONYMOUS, "get", path="/metrics")) == NO_OPINION
    assert judge(asked(ANONYMOUS, "list", "secrets")) == NO_OPINION
    assert judge(asked(User("alice", groups=("system:authenticated",)), "list", "secrets")) == ALLOWED

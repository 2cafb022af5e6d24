from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from fastapi_core._ext.reqinfo import parse
from fastapi_core.authz.base import ALLOWED, NO_OPINION, Attributes, Verdict
from fastapi_core.errors import APIError
from fastapi_core.filters.impersonation import Impersonation, asked_for
from fastapi_core.request.context import RequestContext, User
from tests.fixtures.exchange import FakeRequest

POD = "/api/v1/namespaces/ns/pods/p"
BOB = User("bob")
AGENT = User("system:serviceaccount:ns:agent", extra={"authentication.kubernetes.io/node-name": ("n1",), "x/y": ("1",)})


class Holds:
    """Allows the rights given as `verb resource[/sub] name [namespace]`, and notes what it was asked."""

    def __init__(self, *rights: str, later: bool = False, lasting: bool = True) -> None:
        self.rights, self.later, self.lasting = set(rights), later, lasting
        self.generation = 0
        self.asked: list[str] = []
        self.seen: list[Attributes] = []

    def authorize(self, a: Attributes) -> Verdict | Awaitable[Verdict]:
        resource = f"{a.resource}/{a.subresource}" if a.subresource else a.resource
        right = " ".join(part for part in (a.verb, resource, a.name or "-", a.namespace) if part)
        self.asked.append(right)
        self.seen.append(a)
        verdict = (ALLOWED if right in self.rights else NO_OPINION)._replace(lasting=self.lasting)
        return self._later(verdict) if self.later else verdict

    async def _later(self, verdict: Verdict) -> Verdict:
        return verdict


def request(headers: list[tuple[str, str]], user: User = BOB, target: str = POD) -> RequestContext:
    found: Any = FakeRequest("GET", target, headers)
    ctx = RequestContext(found, parse("GET", found.path, found.query))
    ctx.user = user
    return ctx


async def run(rights: Holds | Impersonation, *headers: tuple[str, str], user: User = BOB) -> RequestContext:
    ctx = request(list(headers), user)
    pending = (rights if isinstance(rights, Impersonation) else Impersonation(rights)).before(ctx)
    if pending is not None:
        await pending
    return ctx


async def refused(rights: Holds, *headers: tuple[str, str], user: User = BOB) -> str:
    with pytest.raises(APIError) as caught:
        await run(rights, *headers, user=user)
    assert caught.value.code == 403
    return caught.value.message


def as_(name: str) -> tuple[str, str]:
    return "Impersonate-User", name


async def test_without_headers_nothing_is_asked() -> None:
    rights = Holds()
    ctx = await run(rights, ("Accept", "x"), ("Impersonate-User", ""), ("Impersonate-Other", "x"))
    assert (ctx.user, ctx.impersonator, rights.asked) == (BOB, None, [])


@pytest.mark.parametrize("later", [False, True])
async def test_the_plain_verb_is_asked_for_each_attribute(later: bool) -> None:
    rights = Holds(
        "impersonate users carol", "impersonate groups g1", "impersonate groups g2", "impersonate uids 7",
        "impersonate userextras/scope a", "impersonate userextras/scope b", later=later,
    )  # fmt: skip
    ctx = await run(
        rights, as_("carol"), ("Impersonate-Group", "g1"), ("impersonate-group", "g2"), ("Impersonate-Uid", "7"),
        ("Impersonate-Extra-Scope", "a"), ("Impersonate-Extra-Scope", "b"), ("Accept", "x"),
    )  # fmt: skip
    assert ctx.user == User("carol", "7", ("g1", "g2", "system:authenticated"), {"scope": ("a", "b")})
    assert (ctx.impersonator, ctx.constraint) == (BOB, "")
    assert ctx.request.headers == [(b"accept", b"x")]


async def test_the_first_refusal_names_the_constrained_mode() -> None:
    where = 'in API group "" in the namespace "ns"'
    assert await refused(Holds(), as_("carol")) == (
        f'pods "p" is forbidden: User "bob" cannot impersonate-on:user-info:get resource "pods" {where}'
    )
    assert await refused(Holds(), as_("system:serviceaccount:x:y")) == (
        f'pods "p" is forbidden: User "bob" cannot impersonate-on:serviceaccount:get resource "pods" {where}'
    )
    assert await refused(Holds(), as_("system:node:n1"), user=AGENT) == (
        f'pods "p" is forbidden: User "{AGENT.name}" cannot impersonate-on:associated-node:get resource "pods" {where}'
    )


async def test_the_mode_that_worked_last_is_tried_first() -> None:
    filter_ = Impersonation(Holds("impersonate users carol"))
    await run(filter_, as_("carol"))
    with pytest.raises(APIError) as caught:
        await run(filter_, as_("dave"))
    assert caught.value.message == (
        'users "dave" is forbidden: User "bob" cannot impersonate resource "users" in API group "" at the cluster scope'
    )


async def test_a_constrained_mode_needs_both_rights() -> None:
    on, be = "impersonate-on:user-info:get pods p ns", "impersonate:user-info users carol"
    ctx = await run(Holds(on, be), as_("carol"))
    assert (ctx.user.name, ctx.constraint) == ("carol", "impersonate:user-info")
    await refused(Holds(be), as_("carol"))
    assert await refused(Holds(on), as_("carol")) == (
        'users.authentication.k8s.io "carol" is forbidden: User "bob" cannot impersonate:user-info resource "users" '
        'in API group "authentication.k8s.io" at the cluster scope'
    )


async def test_constrained_modes_never_make_administrators() -> None:
    rights = Holds(
        "impersonate-on:user-info:get pods p ns", "impersonate:user-info users carol",
        "impersonate:user-info groups system:masters", "impersonate:user-info groups *",
    )  # fmt: skip
    text = await refused(rights, as_("carol"), ("Impersonate-Group", "system:masters"))
    assert text.endswith("impersonating the system:masters group is not allowed")
    text = await refused(rights, as_("carol"), ("Impersonate-Group", ""))
    assert text.endswith("impersonating the empty string group is not allowed")


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("plain", "x", "must be a domain-prefixed path"),
        ("a.b%2F%43", "x", "non-lowercase key in extra is not allowed"),
        ("a.b%2Fc", "", "empty string value in extra is not allowed"),
    ],
)
async def test_constrained_modes_want_proper_extra_keys(key: str, value: str, text: str) -> None:
    rights = Holds("impersonate-on:user-info:get pods p ns", "impersonate:user-info users carol")
    assert text in await refused(rights, as_("carol"), (f"Impersonate-Extra-{key}", value))


async def test_many_groups_may_be_allowed_at_once() -> None:
    groups = [("Impersonate-Group", f"g{n}") for n in range(4)]
    rights = Holds(
        "impersonate-on:user-info:get pods p ns", "impersonate:user-info users carol", "impersonate:user-info groups *"
    )
    assert (await run(rights, as_("carol"), *groups)).user.groups[:4] == ("g0", "g1", "g2", "g3")
    assert "impersonate:user-info groups g0" not in rights.asked


async def test_accounts_and_nodes_get_the_groups_they_always_have() -> None:
    account = await run(Holds("impersonate serviceaccounts y x"), as_("system:serviceaccount:x:y"))
    assert account.user.groups == ("system:serviceaccounts", "system:serviceaccounts:x", "system:authenticated")
    rights = Holds("impersonate-on:arbitrary-node:get pods p ns", "impersonate:arbitrary-node nodes n2")
    node = await run(rights, as_("system:node:n2"))
    assert (node.user.groups, node.constraint) == (
        ("system:nodes", "system:authenticated"),
        "impersonate:arbitrary-node",
    )
    odd = await run(Holds("impersonate users system:serviceaccount:Bad"), as_("system:serviceaccount:Bad"))
    assert odd.user.groups == ("system:authenticated",)
    anonymous = await run(Holds("impersonate users system:anonymous"), as_("system:anonymous"))
    assert anonymous.user.groups == ("system:unauthenticated",)


async def test_an_account_may_be_its_own_node_and_no_other() -> None:
    rights = Holds("impersonate-on:associated-node:get pods p ns", "impersonate:associated-node nodes *")
    ctx = await run(rights, as_("system:node:n1"), user=AGENT)
    assert (ctx.user.name, ctx.constraint) == ("system:node:n1", "impersonate:associated-node")
    keys = ("authentication.kubernetes.io/node-name", "x/y")
    assert rights.seen[0].user.extra == {"authentication.kubernetes.io/associated-node-keys": keys}
    await refused(rights, as_("system:node:n2"), user=AGENT)
    await refused(rights, as_("system:node:n1"))


async def test_answers_are_remembered_until_a_policy_changes() -> None:
    rights = Holds("impersonate users carol")
    filter_ = Impersonation(rights)
    for _ in range(3):
        assert (await run(filter_, as_("carol"))).user.name == "carol"
    count = len(rights.asked)
    assert (await run(filter_, as_("carol"))).user.name == "carol"
    assert len(rights.asked) == count
    rights.generation += 1
    rights.rights.clear()
    with pytest.raises(APIError):
        await run(filter_, as_("carol"))


async def test_answers_that_do_not_last_are_not_remembered() -> None:
    rights = Holds("impersonate users carol", lasting=False)
    filter_ = Impersonation(rights)
    await run(filter_, as_("carol"))
    rights.rights.clear()
    with pytest.raises(APIError):
        await run(filter_, as_("carol"))


@pytest.mark.parametrize(
    "header",
    [("Impersonate-Group", "g"), ("Impersonate-Uid", "1"), ("Impersonate-Extra-a", "x"), ("impersonate-GROUP", "")],
)
async def test_attributes_without_a_name_are_a_bad_request(header: tuple[str, str]) -> None:
    with pytest.raises(APIError) as caught:
        await run(Holds(), header)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("raw", "key"), [("a%2Fb", "a/b"), ("a%zz", "a%zz"), ("a%", "a%"), ("a%41", "aA"), ("%+1", "%+1")]
)
def test_extra_keys_are_unescaped(raw: str, key: str) -> None:
    user = asked_for(request([as_("x"), (f"Impersonate-Extra-{raw}", "v")]))
    assert user is not None
    assert user.extra == {key: ("v",)}

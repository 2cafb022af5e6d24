"""Front proxies: reading the headers, and taking them out of what goes on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.authn.base import WrongCredential
from fastapi_core.authn.frontproxy import FrontProxy, HeaderNames, Outermost, Refusals
from fastapi_core.request.context import RequestContext, User
from tests.fixtures.exchange import FakeRequest

NAMES = HeaderNames.of(["X-User"], ["X-Uid"], ["X-Group"], ["X-More-"])
NAME = st.sampled_from(
    ["X-User", "X-Uid", "x-group", "X-More-A", "X-More-%41", "X-Remote-User", "X-Remote-Extra-z", "Accept", "X-Usera"]
)


class Nobody:
    def __init__(self, answer: Any = None) -> None:
        self.answer = answer

    def authenticate(self, ctx: RequestContext) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Everybody:
    """A trust that believes every chain."""

    def check(self, connection: Any, now: float) -> bool:
        return True


def context(headers: list[tuple[str, str]], certificate: bytes | None = b"c") -> RequestContext:
    from tests.fixtures.exchange import FakeConnection

    request: Any = FakeRequest(headers=headers, connection=FakeConnection(certificate))
    return RequestContext(request)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(NAME, st.text(st.characters(max_codepoint=255), max_size=5))))
def test_any_headers_are_read_and_none_goes_on(headers: list[tuple[str, str]]) -> None:
    trust: Any = Everybody()
    ctx = context(headers)
    user = FrontProxy(trust, NAMES).authenticate(ctx)
    named = [value for name, value in headers if name == "X-User"]
    # The first one of the name decides, as with every header that may stand there once.
    assert (user is not None) == bool(named and named[0])
    Outermost(Nobody(user), NAMES).authenticate(ctx)
    left = [name for name, _ in ctx.request.headers]
    assert left == [name.lower().encode() for name, _ in headers if name in ("Accept", "X-Usera")]


def test_without_a_certificate_nothing_is_read() -> None:
    trust: Any = Everybody()
    assert FrontProxy(trust, NAMES).authenticate(context([("X-User", "eve")], None)) is None


async def test_headers_are_taken_out_while_others_wait() -> None:
    async def later() -> User:
        return User("wendy")

    ctx = context([("X-Remote-User", "eve"), ("X-Remote-Group", "g"), ("X-Remotely", "stays")])
    pending: Any = Outermost(Nobody(later())).authenticate(ctx)
    assert (await pending).name == "wendy"
    assert [name for name, _ in ctx.request.headers] == [b"x-remotely"]


def test_refusals_are_told_and_a_flood_is_counted() -> None:
    refusals = Refusals()
    for _ in range(3 * Refusals.MOST):
        refusals.tell(WrongCredential("why"))
    assert refusals._left_out >= Refusals.MOST
    with pytest.raises(WrongCredential):
        Outermost(Nobody(WrongCredential("no"))).authenticate(context([]))

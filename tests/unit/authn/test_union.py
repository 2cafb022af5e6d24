from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from fastapi_core._ext.reqinfo import parse
from fastapi_core.authn.base import Anonymous, Union
from fastapi_core.errors import APIError, unauthorized
from fastapi_core.request.context import ANONYMOUS, RequestContext, User
from tests.fixtures.exchange import FakeRequest

ALICE, BOB = User("alice"), User("bob")


class Says:
    def __init__(self, answer: User | Exception | None, wait: bool = False) -> None:
        self.answer, self.wait, self.asked = answer, wait, 0

    def authenticate(self, ctx: RequestContext) -> User | Awaitable[User | None] | None:
        self.asked += 1
        return self._later() if self.wait else self._now()

    def _now(self) -> User | None:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def _later(self) -> User | None:
        return self._now()


def context(path: str = "/api/v1/pods") -> RequestContext:
    request: Any = FakeRequest(target=path)
    return RequestContext(request, parse("GET", path, ""))


async def ask(union: Union, path: str = "/api/v1/pods") -> User | None:
    user = union.authenticate(context(path))
    return user if user is None or isinstance(user, User) else await user


@pytest.mark.parametrize("wait", [False, True])
async def test_first_who_knows_wins(wait: bool) -> None:
    last = Says(BOB)
    assert await ask(Union([Says(None, wait), Says(ALICE, wait), last])) is ALICE
    assert last.asked == 0


@pytest.mark.parametrize("wait", [False, True])
async def test_a_refused_credential_lets_the_others_try(wait: bool) -> None:
    assert await ask(Union([Says(unauthorized(), wait), Says(BOB, wait)])) is BOB


@pytest.mark.parametrize("wait", [False, True])
async def test_a_refused_credential_is_not_downgraded_to_anonymous(wait: bool) -> None:
    with pytest.raises(APIError, match="Unauthorized"):
        await ask(Union([Says(unauthorized(), wait), Says(None, wait)], Anonymous(None)), "/healthz")


@pytest.mark.parametrize("wait", [False, True])
async def test_a_defect_is_not_mistaken_for_a_refusal(wait: bool) -> None:
    with pytest.raises(ZeroDivisionError):
        await ask(Union([Says(ZeroDivisionError(), wait), Says(BOB)]))


async def test_anonymous_reaches_public_paths_only() -> None:
    union = Union([Says(None)], Anonymous())
    for path in ("/healthz", "/livez", "/readyz", "/version", "/version/"):
        assert await ask(union, path) is ANONYMOUS
    for path in ("/healthz/ping", "/metrics", "/", "/api/v1/pods", "/healthz/"):
        assert await ask(union, path) is None


async def test_without_credentials_nobody_is_known() -> None:
    assert await ask(Union([Says(None), Says(None, wait=True)]), "/healthz") is None


async def test_the_refusal() -> None:
    with pytest.raises(APIError) as caught:
        await ask(Union([Says(unauthorized())]))
    assert caught.value.to_status() == {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "Unauthorized",
        "reason": "Unauthorized", "code": 401,
    }  # fmt: skip

"""The right to create, asked for when an update or apply creates."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fastapi_core.authz.base import ALLOWED, Attributes, Decision, Verdict
from fastapi_core.errors import APIError
from fastapi_core.request.context import User
from fastapi_core.rest.authorize import check_create


class Authorizer:
    generation = 0

    def __init__(self, verdict: Verdict, *, later: bool) -> None:
        self.verdict, self.later = verdict, later
        self.asked: list[Attributes] = []

    def authorize(self, attributes: Attributes) -> Any:
        self.asked.append(attributes)
        return self._wait() if self.later else self.verdict

    async def _wait(self) -> Verdict:
        return self.verdict


def request() -> Any:
    info = SimpleNamespace(
        api_group="",
        api_version="v1",
        namespace="ns",
        resource="configmaps",
        name="c",
        path="/api/v1/namespaces/ns/configmaps/c",
    )
    return SimpleNamespace(user=User("bob"), info=info)


@pytest.mark.parametrize("later", [False, True])
async def test_the_user_must_be_allowed_to_create(later: bool) -> None:
    allowed = Authorizer(ALLOWED, later=later)
    scope: Any = SimpleNamespace(authorizer=allowed)
    await check_create(request(), scope)
    assert (allowed.asked[0].verb, allowed.asked[0].resource, allowed.asked[0].name) == ("create", "configmaps", "c")
    scope = SimpleNamespace(authorizer=Authorizer(Verdict(Decision.NO_OPINION), later=later))
    with pytest.raises(APIError) as caught:
        await check_create(request(), scope)
    assert caught.value.code == 403
    assert caught.value.message == (
        'configmaps "c" is forbidden: User "bob" cannot create resource "configmaps" in API group "" in the namespace "ns"'
    )


async def test_without_an_authorizer_everything_goes() -> None:
    scope: Any = SimpleNamespace(authorizer=None)
    await check_create(request(), scope)

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core.authn.tokens import EXTRA_SPACE, Bearer, StaticTokens, Tokens, bearer_token, load_token_file
from fastapi_core.errors import APIError
from fastapi_core.request.context import RequestContext, User
from tests.fixtures.exchange import FakeRequest


def context(*authorization: str) -> RequestContext:
    request: Any = FakeRequest(headers=[("Authorization", value) for value in authorization])
    return RequestContext(request)


TOKENS = StaticTokens({"tok": User("alice", "2", ("devs",))})


@pytest.mark.parametrize(
    "value", ["Bearer tok", "bearer tok", "BEARER tok", "Bearer tok trailing", "  Bearer tok", "Bearer tok "]
)
def test_forms_that_are_accepted(value: str) -> None:
    ctx = context(value)
    assert TOKENS.authenticate(ctx) == User("alice", "2", ("devs", "system:authenticated"))
    assert ctx.warnings is None


@pytest.mark.parametrize("value", ["Bearer", "Bearer ", "", "Basic dG9r", "tok", "Bearertok tok"])
def test_forms_that_are_no_bearer_token_at_all(value: str) -> None:
    ctx = context(value)
    assert TOKENS.authenticate(ctx) is None
    assert ctx.warnings is None


def test_two_spaces_are_ignored_with_a_warning() -> None:
    ctx = context("Bearer  tok")
    assert TOKENS.authenticate(ctx) is None
    assert ctx.warnings == [EXTRA_SPACE]


@pytest.mark.parametrize("value", ["Bearer nosuch", "Bearer t\xf6k", "Bearer TOK", "bearer tok,tok"])
def test_wrong_tokens_are_refused(value: str) -> None:
    with pytest.raises(APIError, match="Unauthorized") as caught:
        TOKENS.authenticate(context(value))
    assert caught.value.code == 401


def test_the_first_of_two_headers_counts() -> None:
    assert TOKENS.authenticate(context("Bearer tok", "Bearer nosuch")) is not None
    with pytest.raises(APIError):
        TOKENS.authenticate(context("Bearer nosuch", "Bearer tok"))


def test_the_same_header_gives_the_same_user_object() -> None:
    assert TOKENS.authenticate(context("Bearer tok")) is TOKENS.authenticate(context("Bearer tok"))


def test_memory_of_headers_is_bounded() -> None:
    bearer = Bearer(Tokens([StaticTokens({"tok": User("alice")})]))
    for number in range(9000):
        bearer.authenticate(context(f"Bearer tok {number}"))
    assert bearer._memory == {}
    many = Bearer(Tokens([StaticTokens({f"tok{number}": User("alice") for number in range(9000)})]))
    for number in range(9000):
        many.authenticate(context(f"Bearer tok{number}"))
    assert 0 < len(many._memory) <= 4096


@given(st.binary(max_size=40))
def test_any_header_bytes_are_read_without_failure(value: bytes) -> None:
    token, hidden = bearer_token(value)
    assert b" " not in token
    assert not (token and hidden)


def test_token_file() -> None:
    users = load_token_file(
        'admintoken,admin,1,"system:masters"\nusertoken,alice,2,"devs,ops"\n'
        "# a comment,x,y\n\nplain,bob,3\nusertoken,carol,4,\n"
    )
    assert users == {
        "admintoken": User("admin", "1", ("system:masters",)),
        "usertoken": User("carol", "4"),
        "plain": User("bob", "3"),
    }


def test_token_file_errors_name_the_line() -> None:
    with pytest.raises(ValueError, match="line 2: expected token,user,uid"):
        load_token_file("a,b,c\nx,y\n")
    with pytest.raises(ValueError, match="line 1"):
        load_token_file('a,b,c,"open')

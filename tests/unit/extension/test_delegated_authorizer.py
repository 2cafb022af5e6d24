"""May they, as the core API says: administrators and paths without asking, everything else by review."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core.authn.outbound import OutboundError
from fastapi_core.authz.base import Attributes, Decision, Verdict
from fastapi_core.extension.delegated.authorizer import AllowedPaths, authorizer
from fastapi_core.extension.delegated.options import DelegatedOptions, check
from fastapi_core.http.asking import Whole
from fastapi_core.request.context import User


class Reviews:
    """Allows what `allowed` names."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed
        self.asked: list[Any] = []
        self.error: OutboundError | None = None

    async def post(self, body: bytes, *, timeout: float) -> Whole:
        review = json.loads(body)
        assert (review["apiVersion"], timeout) == ("authorization.k8s.io/v1", 10.0)
        self.asked.append(review["spec"])
        if self.error is not None:
            raise self.error
        status = {"allowed": review["spec"]["user"] in self.allowed, "reason": "so it is"}
        return Whole(201, [], json.dumps({"status": status}).encode())


def attributes(user: str, *groups: str, path: str = "") -> Attributes:
    if path:
        return Attributes(User(user, groups=groups), "get", "", "", "", "", "", "", path, False, "", "")
    return Attributes(User(user, groups=groups), "get", "g.io", "v1", "ns", "things", "", "x", "", True, "", "")


async def ask(found: Any, about: Attributes) -> Verdict:
    answer = found.authorize(about)
    verdict: Verdict = await answer if isinstance(answer, Awaitable) else answer
    return verdict


async def test_administrators_and_probes_are_not_asked_about() -> None:
    reviews = Reviews()
    found = authorizer(DelegatedOptions(), reviews)
    assert (await ask(found, attributes("root", "system:masters"))).decision is Decision.ALLOW
    for path in ("/healthz", "/readyz", "/livez"):
        assert (await ask(found, attributes("system:anonymous", path=path))).decision is Decision.ALLOW
    assert reviews.asked == []
    assert (await ask(found, attributes("system:anonymous", path="/healthz/ping"))).decision is Decision.NO_OPINION
    assert reviews.asked[0]["nonResourceAttributes"] == {"path": "/healthz/ping", "verb": "get"}


async def test_answers_are_remembered() -> None:
    reviews = Reviews("alice")
    found = authorizer(DelegatedOptions(), reviews)
    for _ in range(3):
        assert (await ask(found, attributes("alice"))).decision is Decision.ALLOW
        refused = await ask(found, attributes("bob"))
        assert (refused.decision, refused.reason) == (Decision.NO_OPINION, "so it is")
    assert [spec["user"] for spec in reviews.asked] == ["alice", "bob"]
    assert reviews.asked[0]["resourceAttributes"] == {
        "namespace": "ns", "verb": "get", "group": "g.io", "version": "v1", "resource": "things", "name": "x",
    }  # fmt: skip


async def test_nothing_is_remembered_when_nothing_is_to_be() -> None:
    reviews = Reviews("alice")
    options = DelegatedOptions(
        authorization_webhook_cache_authorized_ttl=0.0, authorization_webhook_cache_unauthorized_ttl=0.0
    )
    found = authorizer(options, reviews)
    for _ in range(2):
        await ask(found, attributes("alice"))
        await ask(found, attributes("bob"))
    assert len(reviews.asked) == 4


async def test_no_answer_is_an_error_and_not_remembered() -> None:
    reviews = Reviews("alice")
    found = authorizer(DelegatedOptions(), reviews)
    reviews.error = OutboundError("the API server is away")
    verdict = await ask(found, attributes("alice"))
    assert (verdict.decision, verdict.error) == (Decision.NO_OPINION, "the API server is away")
    reviews.error = None
    assert (await ask(found, attributes("alice"))).decision is Decision.ALLOW


async def test_with_nobody_to_ask_only_the_rest_is_left() -> None:
    found = authorizer(DelegatedOptions(), None)
    assert (await ask(found, attributes("alice"))).decision is Decision.NO_OPINION
    assert (await ask(found, attributes("root", "system:masters"))).decision is Decision.ALLOW


PATH = st.text("/ab*", max_size=6)


@given(st.lists(PATH, max_size=4), st.text("/ab", max_size=6))
def test_paths_match_whole_or_by_their_beginning(given_paths: list[str], path: str) -> None:
    usable = [text for text in given_paths if "*" not in text[:-1]]
    wrong = check(DelegatedOptions(authorization_always_allow_paths=tuple(given_paths)))
    assert len(wrong) == len(given_paths) - len(usable)

    def matches(pattern: str) -> bool:
        bare, asked = pattern.removeprefix("/"), path.removeprefix("/")
        return asked.startswith(bare[:-1]) if bare.endswith("*") else asked == bare

    verdict = AllowedPaths(usable).authorize(attributes("u", path=path or "/"))
    if path:
        assert (verdict.decision is Decision.ALLOW) == any(map(matches, usable))


def test_resources_are_never_paths() -> None:
    assert AllowedPaths(["/*"]).authorize(attributes("u")).decision is Decision.NO_OPINION


@pytest.mark.parametrize(
    "ttl", ["authentication_token_webhook_cache_ttl", "authorization_webhook_cache_authorized_ttl"]
)
def test_flags_that_make_no_sense(ttl: str) -> None:
    options = DelegatedOptions(**{ttl: -1.0, "kubeconfig": "/nowhere", "client_ca_file": "/nowhere"})  # type: ignore[arg-type]
    wrong = check(options)
    # A kubeconfig may be about to be written.
    assert wrong[0] == "--client-ca-file: '/nowhere' does not exist, check the path"
    assert wrong[1] == f"--{ttl.replace('_', '-')}: cannot be negative, use 0 to remember nothing"
    options = DelegatedOptions(requestheader_client_ca_file="/etc/hosts", requestheader_username_headers=())
    assert check(options) == ["--requestheader-username-headers: is needed with --requestheader-client-ca-file"]

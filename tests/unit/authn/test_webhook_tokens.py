"""Tokens judged by a webhook: what is asked, what is remembered, what happens when it fails; kubeconfig files."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.authn import outbound
from fastapi_core.authn.attempts import BACKOFF
from fastapi_core.authn.base import Known, WrongCredential
from fastapi_core.authn.webhook import WebhookTokens
from fastapi_core.http.asking import Whole
from tests.fixtures.https import ScriptedServer, kubeconfig
from tests.fixtures.pki import authority


@pytest.fixture
async def hook(tmp_path: Path) -> AsyncIterator[ScriptedServer]:
    server = ScriptedServer(tmp_path / "hook")
    server.answers["/r"] = lambda review: (
        200,
        {"status": {"authenticated": True, "user": {"username": review["spec"]["token"]}}},
    )
    yield server
    await asyncio.to_thread(server.close)


class Clock:
    now = 1000.0
    pauses: list[float]

    def __init__(self) -> None:
        self.pauses = []

    def __call__(self) -> float:
        return self.now

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


def webhook(server: ScriptedServer, clock: Clock, ttl: float = 60.0, implicit: tuple[str, ...] = ()) -> WebhookTokens:
    remote = outbound.Remote(f"{server.url}/r", outbound.client_tls(server.ca_file.read_bytes()))
    return WebhookTokens(remote, "v1", ttl, implicit, clock=clock, pause=clock.pause)


async def ask(
    kind: WebhookTokens, token: str, audiences: tuple[str, ...] | None = None, now: float = 1000.0
) -> Known | None:
    found = kind.check(token, audiences, now)
    return found if found is None or isinstance(found, Known) else await found


async def test_answers_are_remembered_for_their_time(hook: ScriptedServer) -> None:
    clock = Clock()
    kind = webhook(hook, clock)
    for now in (1000.0, 1059.0, 1060.0):
        clock.now = now
        known = await ask(kind, "t", now=now)
        assert known is not None
        assert (known.user.name, known.until) == ("t", now + 10)
    assert len(hook.asked) == 2
    assert await ask(kind, "t", ("a",)) is None  # other audiences are another question
    assert hook.asked[-1][1]["spec"] == {"token": "t", "audiences": ["a"]}


async def test_refusals_are_remembered_and_failures_are_not(hook: ScriptedServer) -> None:
    clock = Clock()
    kind = webhook(hook, clock)
    hook.answers["/r"] = lambda _: (200, {"status": {"error": "bad"}})
    for _ in range(2):
        with pytest.raises(WrongCredential) as caught:
            await ask(kind, "t")
        assert caught.value.reasons == ("bad",)
    assert len(hook.asked) == 1
    hook.answers["/r"] = lambda _: (200, {"status": {"authenticated": False}})
    for _ in range(2):
        assert await ask(kind, "u") is None
    assert len(hook.asked) == 2
    hook.answers["/r"] = lambda _: (503, {})
    with pytest.raises(WrongCredential):
        await ask(kind, "v")
    assert clock.pauses == list(BACKOFF)
    hook.answers["/r"] = lambda _: (403, {})
    with pytest.raises(WrongCredential, match="Unauthorized") as caught:
        await ask(kind, "v")
    assert caught.value.reasons == ("the token webhook answered 403",)
    assert len(clock.pauses) == len(BACKOFF)
    hook.answers["/r"] = lambda _: (200, {"status": {"authenticated": True, "user": {"username": "v"}}})
    assert await ask(kind, "v") is not None


async def test_a_webhook_that_is_not_there() -> None:
    clock = Clock()
    kind = WebhookTokens(outbound.Remote("http://127.0.0.1:1/r"), "v1", 60.0, clock=clock, pause=clock.pause)
    with pytest.raises(WrongCredential) as caught:
        await ask(kind, "t")
    assert "connection refused" in caught.value.reasons[0]
    assert clock.pauses == []


async def test_the_same_question_is_asked_once(hook: ScriptedServer) -> None:
    kind = webhook(hook, Clock())
    found = await asyncio.gather(*(ask(kind, "t") for _ in range(10)))
    assert {known.user.name for known in found if known} == {"t"}
    assert len(hook.asked) == 1


async def test_audiences(hook: ScriptedServer) -> None:
    kind = webhook(hook, Clock(), implicit=("api",))
    known = await ask(kind, "t", ("api", "x"))
    assert known is not None
    assert known.audiences == ("api",)
    assert await ask(kind, "t", ("x",)) is None
    hook.answers["/r"] = lambda _: (200, {"status": {"authenticated": True, "audiences": ["x", "y"]}})
    known = await ask(kind, "u", ("x",))
    assert known is not None
    assert known.audiences == ("x",)


NAMES = ["status", "authenticated", "user", "username", "groups", "extra", "audiences", "error", "uid"]
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
)


@settings(max_examples=100, deadline=None)
@given(ODD)
def test_any_answer_is_read_or_refused(tree: Any) -> None:

    kind = WebhookTokens(outbound.Remote("https://hook"), "v1", 0.0)
    try:
        answer = Whole(200, (), json.dumps(tree).encode())
        status = outbound.review_status(answer, "token", "TokenReview")
    except outbound.OutboundError:
        return
    found = kind._judge(status, None)
    if isinstance(found, Known):
        assert status["authenticated"] is True
        assert isinstance(found.user.name, str)
        assert all(isinstance(group, str) for group in found.user.groups)


async def test_kubeconfig(hook: ScriptedServer, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig(hook, "/r", token="secret"))
    remote = outbound.load_kubeconfig(str(file))
    answer = await outbound.ask(remote, "POST", b'{"spec": {"token": "t"}}', timeout=10)
    assert answer.status == 200
    assert hook.headers[-1]["authorization"] == "Bearer secret"


async def test_kubeconfig_with_everything_inside(hook: ScriptedServer, tmp_path: Path) -> None:
    pair = authority("c").issue("hook-client")
    cert, key = pair.write(tmp_path, "client")
    (tmp_path / "token").write_text("from-file\n")
    tree = json.loads(kubeconfig(hook, "/r"))
    cluster = tree["clusters"][0]["cluster"]
    del cluster["certificate-authority"]
    cluster["certificate-authority-data"] = base64.b64encode(hook.ca_file.read_bytes()).decode()
    tree["users"][0]["user"] = {
        "client-certificate": Path(cert).name,
        "client-key": Path(key).name,
        "tokenFile": "token",
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(tree))
    remote = outbound.load_kubeconfig(str(tmp_path / "kubeconfig"))
    assert (await outbound.ask(remote, "POST", b'{"spec": {"token": "t"}}', timeout=10)).status == 200
    assert hook.headers[-1]["authorization"] == "Bearer from-file"


def without(*path: Any) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://h/p", "certificate-authority": "ca.crt"}}],
        "users": [{"name": "u", "user": {}}],
    }
    place: Any = tree
    for step in path[:-2]:
        place = place[step]
    place[path[-2]] = path[-1]
    return tree


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ([], "an object is expected"),
        (without("current-context", ""), "current-context is not set"),
        (without("current-context", "y"), "there is no context 'y'"),
        (without("clusters", []), "there is no cluster 'c'"),
        (without("users", 0, "name", "z"), "there is no user 'u'"),
        (without("clusters", 0, "cluster", "server", "h"), "is not a URL"),
        (without("clusters", 0, "cluster", "server", 7), "a text is expected"),
        (without("clusters", 0, "cluster", "certificate-authority-data", "!"), "not base64"),
        (without("clusters", 0, "cluster", "certificate-authority-data", "AAAA"), "certificate authorities"),
        (without("clusters", 0, "cluster", "certificate-authority", "nosuch"), "No such file"),
        (without("users", 0, "user", "exec", {"command": "x"}), "not supported"),
    ],
)  # fmt: skip
def test_kubeconfigs_that_cannot_be_used(tree: Any, text: str, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(tree))
    with pytest.raises(outbound.KubeconfigError, match=text):
        outbound.load_kubeconfig(str(file))


async def test_questions_that_get_no_answer(hook: ScriptedServer) -> None:
    tls = outbound.client_tls(hook.ca_file.read_bytes())
    for url in ("https://", "ftp://x/", "http://127.0.0.1/", "https://127.0.0.1:x/"):
        with pytest.raises(outbound.OutboundError):
            await outbound.ask(outbound.Remote(hook.url, tls), url=url, timeout=5)
    with pytest.raises(outbound.OutboundError, match="failed to verify certificate"):
        await outbound.ask(outbound.Remote(hook.url, outbound.client_tls()), timeout=5)

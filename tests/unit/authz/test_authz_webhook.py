from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fastapi_core.authn.outbound import Remote, load_kubeconfig
from fastapi_core.authz.base import Attributes, Decision, Verdict
from fastapi_core.authz.conditions import ConditionError
from fastapi_core.authz.modes import Settings
from fastapi_core.authz.webhook import WebhookAuthorizer, question, verdict_of
from fastapi_core.request.context import User
from tests.fixtures.policies import asked

ALICE = User("alice", "7", ("devs",), {"scope": ("a", "b")})
QUESTION = asked(ALICE, "get", "pods", namespace="ns", name="p")


class Judge:
    """An HTTP server that says what it is told to; `asked` are the bodies it got."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = [(200, {"allowed": True, "reason": "because"})]
        self.asked: list[dict[str, Any]] = []
        self.heads: list[bytes] = []
        self.hold = asyncio.Event()
        self.hold.set()

    async def start(self) -> Judge:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        self.heads.append(head)
        self.asked.append(json.loads(await reader.readexactly(length)))
        await self.hold.wait()
        status, answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        body = answer if isinstance(answer, bytes) else json.dumps({"status": answer}).encode()
        writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, len(body)) + body)
        await writer.drain()
        writer.close()


@pytest_asyncio.fixture
async def judge() -> AsyncIterator[Judge]:
    found = await Judge().start()
    yield found
    found.hold.set()
    found.server.close()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def no_pause(seconds: float) -> None:
    return None


def webhook(judge: Judge, clock: Clock | None = None, **settings: Any) -> WebhookAuthorizer:
    remote = Remote(f"http://127.0.0.1:{judge.port}/judge?x=1")
    return WebhookAuthorizer(remote, Settings(**settings), clock=clock or Clock(), pause=no_pause)


async def verdict(authorizer: WebhookAuthorizer, attributes: Attributes = QUESTION) -> Verdict:
    answer = authorizer.authorize(attributes)
    return answer if isinstance(answer, Verdict) else await answer


async def test_what_is_asked(judge: Judge) -> None:
    assert await verdict(webhook(judge, version="v1")) == Verdict(Decision.ALLOW, "because", lasting=False)
    assert judge.heads[0].startswith(b"POST /judge?x=1 HTTP/1.1\r\n")
    assert judge.asked[0]["apiVersion"] == "authorization.k8s.io/v1"
    assert judge.asked[0]["kind"] == "SubjectAccessReview"
    assert judge.asked[0]["spec"] == {
        "user": "alice",
        "uid": "7",
        "groups": ["devs"],
        "extra": {"scope": ["a", "b"]},
        "resourceAttributes": {"namespace": "ns", "verb": "get", "version": "v1", "resource": "pods", "name": "p"},
    }
    await verdict(webhook(judge))
    assert judge.asked[1]["apiVersion"] == "authorization.k8s.io/v1beta1"
    assert judge.asked[1]["spec"]["group"] == ["devs"]


def test_questions_carry_paths_and_selectors() -> None:
    assert question(asked(User("u"), "post", path="/x"))["nonResourceAttributes"] == {"path": "/x", "verb": "post"}
    selective = asked(User("u"), "list", "pods", label_selector="a in (b,c),!d,e>5", field_selector="x=y,z!=w")
    attributes = question(selective)["resourceAttributes"]
    assert attributes["fieldSelector"]["requirements"] == [
        {"key": "x", "operator": "In", "values": ["y"]},
        {"key": "z", "operator": "NotIn", "values": ["w"]},
    ]
    assert attributes["labelSelector"]["requirements"] == [
        {"key": "a", "operator": "In", "values": ["b", "c"]},
        {"key": "d", "operator": "DoesNotExist"},
    ]
    broken = question(asked(User("u"), "list", "pods", label_selector="a ~", field_selector="x"))
    assert set(broken["resourceAttributes"]) == {"verb", "version", "resource"}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"allowed": True}, Verdict(Decision.ALLOW, lasting=False)),
        ({"allowed": False, "reason": "r"}, Verdict(Decision.NO_OPINION, "r", lasting=False)),
        ({"denied": True, "reason": "r"}, Verdict(Decision.DENY, "r", lasting=False)),
        ({}, Verdict(Decision.NO_OPINION, lasting=False)),
        ({"allowed": "true"}, Verdict(Decision.NO_OPINION, lasting=False)),
        ({"allowed": 1, "reason": 5}, Verdict(Decision.NO_OPINION, lasting=False)),
    ],
)
def test_only_true_allows(status: dict[str, Any], expected: Verdict) -> None:
    assert verdict_of(status) == expected


def test_an_answer_that_contradicts_itself_denies() -> None:
    found = verdict_of({"allowed": True, "denied": True})
    assert (found.decision, bool(found.error)) == (Decision.DENY, True)


async def test_answers_count_for_as_long_as_the_settings_say(judge: Judge) -> None:
    clock = Clock()
    authorizer = webhook(judge, clock, allowed_ttl=10, refused_ttl=2)
    judge.answers = [(200, {"allowed": True}), (200, {"allowed": False})]
    for now, decision, questions in ((0, Decision.ALLOW, 1), (9, Decision.ALLOW, 1), (10, Decision.NO_OPINION, 2),
                                     (11.9, Decision.NO_OPINION, 2), (12.1, Decision.NO_OPINION, 3)):  # fmt: skip
        clock.now = now
        assert (await verdict(authorizer)).decision is decision
        assert len(judge.asked) == questions
    await verdict(authorizer, QUESTION._replace(name="other"))
    assert len(judge.asked) == 4


async def test_without_times_nothing_is_remembered(judge: Judge) -> None:
    authorizer = webhook(judge, allowed_ttl=0, refused_ttl=0)
    for _ in range(2):
        await verdict(authorizer)
    long = QUESTION._replace(name="x" * 20_000)
    remembering = webhook(judge)
    for _ in range(2):
        await verdict(remembering, long)
    assert len(judge.asked) == 4


async def test_the_same_question_is_asked_once_at_a_time(judge: Judge) -> None:
    judge.hold.clear()
    authorizer = webhook(judge)
    pending = [asyncio.ensure_future(verdict(authorizer)) for _ in range(5)]
    while not judge.asked:
        await asyncio.sleep(0)
    # Who gives up does not take the answer from the others.
    pending[0].cancel()
    judge.hold.set()
    found = await asyncio.gather(*pending[1:])
    assert [v.decision for v in found] == [Decision.ALLOW] * 4
    assert len(judge.asked) == 1


async def test_a_server_in_trouble_is_asked_again(judge: Judge) -> None:
    judge.answers = [(500, {}), (429, {}), (200, {"allowed": True})]
    assert (await verdict(webhook(judge))).decision is Decision.ALLOW
    assert len(judge.asked) == 3


@pytest.mark.parametrize("fail", [Decision.NO_OPINION, Decision.DENY])
@pytest.mark.parametrize("answer", [(500, {}), (403, {}), (200, b"nonsense"), (200, b"[]")])
async def test_without_an_answer_the_settings_decide(judge: Judge, fail: Decision, answer: tuple[int, Any]) -> None:
    judge.answers = [answer]
    authorizer = webhook(judge, fail=fail)
    found = await verdict(authorizer)
    assert (found.decision, bool(found.error), found.lasting) == (fail, True, False)
    asked_before = len(judge.asked)
    await verdict(authorizer)
    assert len(judge.asked) > asked_before, "a failure is not an answer"


async def test_conditions_choose_what_is_asked(judge: Judge) -> None:
    def of_ns(spec: dict[str, Any]) -> bool:
        if "resourceAttributes" not in spec:
            raise ConditionError("no such key: resourceAttributes")
        return spec["resourceAttributes"].get("namespace") == "ns"

    authorizer = webhook(judge, conditions=(of_ns,), fail=Decision.DENY)
    assert (await verdict(authorizer)).decision is Decision.ALLOW
    skipped = authorizer.authorize(QUESTION._replace(namespace="other"))
    assert skipped == Verdict(Decision.NO_OPINION, lasting=False)
    failed = authorizer.authorize(asked(ALICE, "get", path="/x"))
    assert isinstance(failed, Verdict)
    assert (failed.decision, failed.error) == (Decision.DENY, "no such key: resourceAttributes")
    assert len(judge.asked) == 1


async def test_text_that_is_no_utf8_cannot_be_asked_about(judge: Judge) -> None:
    found = webhook(judge).authorize(QUESTION._replace(name="\udcff"))
    assert isinstance(found, Verdict)
    assert (found.decision, bool(found.error)) == (Decision.NO_OPINION, True)


def test_rules_cannot_be_listed() -> None:
    grants = WebhookAuthorizer(Remote("http://x"), Settings()).grants(ALICE, "ns")
    assert (grants.incomplete, grants.error) == (True, "webhook authorizer does not support user rule resolution")


async def test_a_kubeconfig_leads_there(judge: Judge, tmp_path: Path) -> None:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{judge.port}/authorize"}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    authorizer = WebhookAuthorizer(load_kubeconfig(str(path)), Settings())
    assert (await verdict(authorizer)).decision is Decision.ALLOW
    assert b"authorization: bearer secret" in judge.heads[0].lower()

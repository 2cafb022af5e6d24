"""What the chain writes down about a request, stage by stage."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable
from typing import Any

import pytest

from fastapi_core._ext.router import Router
from fastapi_core.audit.auditor import Auditor
from fastapi_core.audit.event import Event, render, stamp
from fastapi_core.audit.policy import LEVELS, Policy, Rule, Ruling
from fastapi_core.authn.base import Anonymous, Union
from fastapi_core.authn.tokens import StaticTokens
from fastapi_core.authz.base import AlwaysAllow, Attributes, Authorizer, Decision, Verdict
from fastapi_core.errors import not_found
from fastapi_core.filters.chain import ChainConfig, build_chains
from fastapi_core.filters.limits import ShutdownGate
from fastapi_core.http.exchange import Answer, Response, Stream
from fastapi_core.obs.catalog import Metrics
from fastapi_core.request.context import Endpoint, RequestContext, User
from tests.fixtures.exchange import FakeRequest, FakeWriter

POD = "/api/v1/namespaces/default/pods/one"
JSON = (b"Content-Type", b"application/json")
ALICE = User("alice", groups=("devs",))


class Kept:
    """A backend that keeps everything, or says that it cannot."""

    def __init__(self, *, strict: bool = False, works: bool = True) -> None:
        self.strict = self.waits = strict
        self.congested = False
        self.works = works
        self.lines: list[Any] = []
        self.rooms = 0

    def put(self, event: Event) -> None:
        line = render(event)
        assert line.endswith(b"}\n")
        assert line.count(b"\n") == 1
        self.lines.append(json.loads(line))

    async def store(self, event: Event) -> bool:
        if self.works:
            self.put(event)
        return self.works

    async def room(self) -> None:
        self.rooms += 1

    async def close(self) -> None:
        pass


def ok(ctx: RequestContext) -> Answer:
    return Response(200, [JSON], b'{"kind":"Pod","apiVersion":"v1"}\n')


class Bench:
    def __init__(
        self,
        endpoint: Endpoint = ok,
        level: str = "Metadata",
        *,
        rules: tuple[Rule, ...] = (),
        omit: tuple[str, ...] = (),
        authorizer: Authorizer | None = None,
        backend: Kept | None = None,
        **settings: Any,
    ) -> None:
        self.kept = backend or Kept()
        self.metrics = Metrics()
        policy = Policy((*rules, Rule(Ruling(LEVELS[level], frozenset(omit)))))
        router: Router[Endpoint] = Router(
            [
                ("/api/v1/namespaces/{namespace}/pods/{name}{/}", dict.fromkeys(("GET", "PUT"), endpoint)),
                ("/api/v1/namespaces/{namespace}/pods{/}", dict.fromkeys(("GET", "POST"), endpoint)),
                ("/healthz", {"*": endpoint}),
            ]
        )
        config = ChainConfig(
            authenticator=Union([StaticTokens({"alice": ALICE})], Anonymous()),
            authorizer=authorizer or AlwaysAllow(),
            metrics=self.metrics,
            router=lambda: router,
            known_group=lambda group: False,
            gate=ShutdownGate(),
            audit=Auditor(policy, self.kept, self.metrics),
            **settings,
        )
        self.chain = build_chains(config).serve
        self.received = time.time()

    def ask(self, method: str, target: str, token: str = "alice", body: bytes = b"", **headers: str) -> Any:
        values = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            values["authorization"] = f"Bearer {token}"
        request: Any = FakeRequest(method, target, values, body)
        request.received = self.received
        return self.chain(request)

    @property
    def stages(self) -> list[str]:
        return [line["stage"] for line in self.kept.lines]

    def counted(self, name: str) -> list[str]:
        lines = self.metrics.registry.expose().decode().splitlines()
        return [line for line in lines if line.startswith(f"apiserver_audit_{name}")]


def test_no_policy_no_filter() -> None:
    bench = Bench()
    assert "audit" in bench.chain.names
    config = ChainConfig(
        authenticator=Anonymous(),
        authorizer=AlwaysAllow(),
        metrics=Metrics(),
        router=lambda: Router([]),
        known_group=lambda group: False,
        gate=ShutdownGate(),
    )
    assert "audit" not in build_chains(config).serve.names


def test_a_read_is_received_and_complete() -> None:
    bench = Bench()
    for _ in range(2):
        bench.kept.lines.clear()
        answer = bench.ask("GET", POD, user_agent="kubectl", audit_id='my"<id>', x_real_ip="9.9.9.9")
        assert answer.status == 200
        received, complete = bench.kept.lines
        assert received == {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": 'my"<id>',
            "stage": "RequestReceived",
            "requestURI": POD,
            "verb": "get",
            "user": {"username": "alice", "groups": ["devs", "system:authenticated"]},
            "sourceIPs": ["9.9.9.9", "127.0.0.1"],
            "userAgent": "kubectl",
            "objectRef": {"resource": "pods", "namespace": "default", "name": "one", "apiVersion": "v1"},
            "requestReceivedTimestamp": stamp(bench.received).decode(),
            "stageTimestamp": stamp(bench.received).decode(),
        }
        assert complete["stage"] == "ResponseComplete"
        assert complete["responseStatus"] == {"metadata": {}, "code": 200}
        assert complete["annotations"] == {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}
        assert list(complete)[-3:] == ["requestReceivedTimestamp", "stageTimestamp", "annotations"]
    assert bench.counted("event_total") == ["apiserver_audit_event_total 4"]
    assert 'apiserver_audit_level_total{level="Metadata"} 2' in bench.counted("level_total")


def test_stages_and_requests_that_are_left_out() -> None:
    assert Bench(omit=("RequestReceived",)).ask("GET", POD).status == 200
    for omit, stages in (
        (("RequestReceived",), ["ResponseComplete"]),
        (("ResponseComplete",), ["RequestReceived"]),
        (("ResponseComplete", "RequestReceived"), []),
    ):
        bench = Bench(omit=omit)
        bench.ask("GET", POD)
        assert bench.stages == stages
    silent = Bench(rules=(Rule(Ruling(LEVELS["None"]), users=frozenset({"alice"})),))
    assert silent.ask("GET", POD).status == 200
    # Not even as a failure of somebody unknown.
    assert silent.ask("GET", "/api/v1/namespaces/x/nothings").status == 404
    assert silent.stages == []
    assert 'apiserver_audit_level_total{level="None"} 2' in silent.counted("level_total")


async def fail(ctx: RequestContext) -> Answer:
    raise not_found("pods", "", "one")


async def test_a_failure_tells_its_status() -> None:
    bench = Bench(fail, "RequestResponse")
    answer = await bench.ask("GET", POD)
    assert answer.status == 404
    status = {
        "metadata": {},
        "status": "Failure",
        "message": 'pods "one" not found',
        "reason": "NotFound",
        "details": {"name": "one", "kind": "pods"},
        "code": 404,
    }
    assert bench.kept.lines[1]["responseStatus"] == status
    assert bench.kept.lines[1]["responseObject"] == {"kind": "Status", "apiVersion": "v1", **status}


@pytest.mark.parametrize(
    ("token", "target", "code"), [("wrong", POD, 401), ("", POD, 401), ("alice", POD + "?timeout=x", 400)]
)
def test_requests_refused_before_anybody_is_known(token: str, target: str, code: int) -> None:
    bench = Bench()
    assert bench.ask("GET", target, token).status == code
    (event,) = bench.kept.lines
    assert (event["stage"], event["user"], event["responseStatus"]["code"]) == ("ResponseStarted", {}, code)
    assert event["responseStatus"]["status"] == "Failure"


class Refusing:
    generation = 0

    def authorize(self, attributes: Attributes) -> Verdict:
        return Verdict(Decision.DENY, "because")


def test_a_refusal_of_the_authorizer() -> None:
    bench = Bench(authorizer=Refusing())
    assert bench.ask("GET", POD).status == 403
    assert bench.stages == ["RequestReceived", "ResponseComplete"]
    assert bench.kept.lines[1]["annotations"] == {
        "authorization.k8s.io/decision": "forbid",
        "authorization.k8s.io/reason": "because",
    }
    assert bench.kept.lines[1]["responseStatus"]["reason"] == "Forbidden"


@pytest.mark.parametrize("wait", [False, True])
async def test_a_panic_has_its_own_stage(wait: bool) -> None:
    def broken(ctx: RequestContext) -> Answer | Awaitable[Answer]:
        async def later() -> Answer:
            raise KeyError("boom")

        if wait:
            return later()
        raise KeyError("boom")

    bench = Bench(broken)
    answer = bench.ask("GET", POD)
    answer = await answer if wait else answer
    assert answer.status == 500
    assert bench.stages == ["RequestReceived", "Panic"]
    assert bench.kept.lines[1]["responseStatus"] == {
        "metadata": {},
        "status": "Failure",
        "message": "APIServer panic'd: 'boom'",
        "reason": "InternalError",
        "code": 500,
    }


def test_bodies_are_told_from_their_level_on() -> None:
    tree = {"metadata": {"name": "one", "uid": "7"}, "spec": {}, "kind": "Pod", "apiVersion": "v1"}

    def write(ctx: RequestContext) -> Answer:
        assert ctx.audit is not None
        ctx.audit.decoded(tree, lambda copy: copy["spec"].update(filled=True))
        return ok(ctx)

    for level, bodies in (("Metadata", 0), ("Request", 1), ("RequestResponse", 2)):
        bench = Bench(write, level)
        bench.ask("POST", "/api/v1/namespaces/default/pods")
        event = bench.kept.lines[1]
        assert event["objectRef"] == {
            "resource": "pods",
            "namespace": "default",
            "name": "one",
            "uid": "7",
            "apiVersion": "v1",
        }
        assert ("requestObject" in event) == (bodies > 0)
        assert ("responseObject" in event) == (bodies > 1)
        if bodies:
            assert list(event["requestObject"]) == ["kind", "apiVersion", "metadata", "spec"]
            assert event["requestObject"]["spec"] == {"filled": True}
        if bodies > 1:
            assert event["responseObject"] == {"kind": "Pod", "apiVersion": "v1"}
    assert tree["spec"] == {}


def test_patches_are_told_as_they_came() -> None:
    def patch(ctx: RequestContext) -> Answer:
        assert ctx.audit is not None
        ctx.audit.patch(ctx.request.body, "yaml")
        return ok(ctx)

    bench = Bench(patch, "Request")
    bench.ask("PUT", POD, body=b"a: [1, {b: c}]\n")
    assert bench.kept.lines[1]["requestObject"] == {"a": [1, {"b": "c"}]}
    bench.ask("PUT", POD, body=b"a: [")
    assert "requestObject" not in bench.kept.lines[3]
    bench = Bench(lambda ctx: ctx.audit.patch(ctx.request.body, "json") or ok(ctx), "Request")  # type: ignore[union-attr, func-returns-value]
    for body in (b'{"a":', b"[1,,]", b"{}{}", b"nul", b'"\xff', b""):
        bench.kept.lines.clear()
        bench.ask("PUT", POD, body=body)
        assert "requestObject" not in bench.kept.lines[1]


def test_answers_outside_the_api_are_not_told() -> None:
    bench = Bench(ok, "RequestResponse")
    bench.ask("GET", "/healthz")
    assert "responseObject" not in bench.kept.lines[1]
    assert "objectRef" not in bench.kept.lines[1]


def test_impersonation_and_annotations() -> None:
    def act(ctx: RequestContext) -> Answer:
        ctx.impersonator, ctx.user = ctx.user, User("bob", groups=("g",))
        ctx.constraint = "impersonate:user-info"
        ctx.annotate("x.example/y", "1")
        ctx.annotate("x.example/y", "2")
        return ok(ctx)

    bench = Bench(act)
    bench.ask("GET", POD)
    event = bench.kept.lines[1]
    assert event["user"]["username"] == "alice"
    assert event["impersonatedUser"] == {"username": "bob", "groups": ["g"]}
    assert event["authenticationMetadata"] == {"impersonationConstraint": "impersonate:user-info"}
    assert list(event["annotations"]) == ["authorization.k8s.io/decision", "authorization.k8s.io/reason", "x.example/y"]
    assert event["annotations"]["x.example/y"] == "1"
    assert list(event).index("impersonatedUser") == list(event).index("user") + 1


def test_a_watch_starts_and_ends() -> None:
    bench = Bench(lambda ctx: Stream(200, [], lambda writer: None))
    answer = bench.ask("GET", "/api/v1/namespaces/default/pods?watch=1")
    assert bench.stages == ["RequestReceived", "ResponseStarted"]
    writer = FakeWriter()
    answer.start(writer)
    assert len(bench.stages) == 2
    writer.finish()
    assert bench.stages == ["RequestReceived", "ResponseStarted", "ResponseComplete"]
    assert bench.kept.lines[2]["responseStatus"] == {"metadata": {}, "code": 200}


async def test_a_client_that_goes_away() -> None:
    async def never(ctx: RequestContext) -> Answer:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    bench = Bench(never)
    task = asyncio.ensure_future(bench.ask("GET", POD))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.kept.lines[1]["responseStatus"] == {
        "metadata": {},
        "status": "Success",
        "message": "Connection closed early",
        "code": 200,
    }


async def test_a_timeout_is_told_as_504() -> None:
    async def never(ctx: RequestContext) -> Answer:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    bench = Bench(never)
    assert (await bench.ask("GET", POD + "?timeout=1ms")).status == 504
    assert bench.kept.lines[1]["responseStatus"]["code"] == 504


def test_words_that_are_no_text_harm_no_request() -> None:
    def act(ctx: RequestContext) -> Answer:
        ctx.impersonator, ctx.user = ctx.user, User("b\udcffb", groups=("g\ud800",))
        ctx.annotate("k\udcff", "v\udcff")
        ctx.outcome = {"status": "Failure", "message": "m\udcff"}
        return ok(ctx)

    bench = Bench(act)
    assert bench.ask("GET", POD, user_agent="x\xff").status == 200
    event = bench.kept.lines[1]
    assert event["impersonatedUser"] == {"username": "b?b", "groups": ["g?"]}
    assert event["annotations"]["k?"] == "v?"
    assert event["responseStatus"]["message"] == "m?"
    assert event["userAgent"] == "x\ufffd"


def test_slow_requests_tell_how_long_they_took() -> None:
    bench = Bench()
    bench.received -= 2
    bench.ask("GET", POD)
    assert bench.kept.lines[1]["annotations"]["apiserver.latency.k8s.io/total"].startswith("2.0")
    bench = Bench(lambda ctx: Stream(200, [], lambda writer: None))
    bench.received -= 2
    bench.ask("GET", "/api/v1/namespaces/default/pods?watch=1")
    assert "apiserver.latency.k8s.io/total" not in bench.kept.lines[1]["annotations"]


async def test_strict_backends_refuse_what_they_cannot_keep() -> None:
    bench = Bench(backend=Kept(strict=True))
    assert (await bench.ask("GET", POD)).status == 200
    assert bench.stages == ["RequestReceived", "ResponseComplete"]
    bench = Bench(backend=Kept(strict=True, works=False))
    answer = await bench.ask("GET", POD)
    assert (answer.status, answer.body) == (
        500,
        f'Internal Server Error: "{POD}": failed to store audit event\n'.encode(),
    )
    assert bench.counted("requests_rejected") == ["apiserver_audit_requests_rejected_total 1"]


@pytest.mark.parametrize("omit", [(), ("RequestReceived",)])
async def test_requests_wait_while_the_backend_is_congested(omit: tuple[str, ...]) -> None:
    bench = Bench(omit=omit)
    bench.kept.congested = True
    assert (await bench.ask("GET", POD)).status == 200
    assert bench.kept.rooms == 1


def test_memory_of_subjects_is_bounded() -> None:
    bench = Bench()
    for number in range(5000):
        bench.ask("GET", f"{POD}-{number}")
    auditor: Any = next(
        step.__self__ for _, step in bench.chain._steps if isinstance(getattr(step, "__self__", None), Auditor)
    )
    assert 0 < len(auditor._subjects) <= 4096
    bench.ask("GET", POD, user_agent="x" * 1000)
    assert all(len(key[3] or b"") <= 512 for key in auditor._subjects)

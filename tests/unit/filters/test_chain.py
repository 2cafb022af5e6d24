from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Awaitable, Generator
from typing import Any

import pytest

from fastapi_core._ext.router import Router
from fastapi_core.authn.base import Anonymous, Union
from fastapi_core.authn.tokens import StaticTokens
from fastapi_core.authz.base import AlwaysAllow, Attributes, Authorizer, Decision, Verdict
from fastapi_core.errors import APIError, not_found
from fastapi_core.filters.chain import ChainConfig, build_chains
from fastapi_core.filters.limits import ShutdownGate
from fastapi_core.http.exchange import Answer, Response, Stream
from fastapi_core.obs import logs
from fastapi_core.obs.catalog import Metrics
from fastapi_core.request.context import Endpoint, RequestContext, User
from tests.fixtures.exchange import FakeRequest, FakeWriter, header

ADMIN = User("admin", groups=("system:masters",))
ALICE = User("alice", groups=("devs",))
TOTAL = "apiserver_request_total{"
POD = "/api/v1/namespaces/default/pods/one"


def ok(ctx: RequestContext) -> Answer:
    return Response(200, [(b"Content-Type", b"application/json")], b"{}")


class Bench:
    """A chain around endpoints, with everything a test may want to turn."""

    def __init__(self, endpoint: Endpoint = ok, *, authorizer: Authorizer | None = None, **settings: Any) -> None:
        self.gate = ShutdownGate()
        self.metrics = Metrics()
        methods = {"GET": endpoint, "PUT": endpoint, "POST": endpoint}
        router: Router[Endpoint] = Router(
            [
                ("/api/v1/namespaces/{namespace}/pods/{name}{/}", methods),
                ("/api/v1/namespaces/{namespace}/pods{/}", methods),
                ("/healthz", {"*": endpoint}),
                ("/version{/}", {"GET": endpoint}),
            ]
        )
        tokens = StaticTokens({"admin": ADMIN, "alice": ALICE})
        config = ChainConfig(
            authenticator=Union([tokens], Anonymous()),
            authorizer=authorizer or AlwaysAllow(),
            metrics=self.metrics,
            router=lambda: router,
            known_group=lambda group: group == "apps",
            gate=self.gate,
            **settings,
        )
        self.chains = build_chains(config)

    def ask(self, method: str, target: str, *, token: str = "admin", too_large: bool = False, **headers: str) -> Any:
        values = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            values["authorization"] = f"Bearer {token}"
        request: Any = FakeRequest(method, target, values)
        return (self.chains.too_large if too_large else self.chains.serve)(request)

    def exposed(self, name: str) -> list[str]:
        return [line for line in self.metrics.registry.expose().decode().splitlines() if line.startswith(name)]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    out = io.StringIO()
    monkeypatch.setattr(logs.SINK, "stream", out)
    return out


def test_the_order_of_the_chain() -> None:
    assert Bench().chains.serve.names == [
        "audit-id", "panic-recovery", "received-timestamp", "request-info", "retry-after", "hsts", "cache-control",
        "shutdown-gate", "deadline", "timeout", "warnings", "cors", "authentication", "impersonation", "max-in-flight",
        "authorization", "dispatch",
    ]  # fmt: skip
    assert Bench().chains.too_large.names[:-1] == Bench().chains.serve.names[:-1]
    assert Bench().chains.loopback.names == Bench().chains.serve.names


def test_an_answer_from_memory_needs_no_loop() -> None:
    answer = Bench().ask("GET", POD)
    assert isinstance(answer, Response)
    assert answer.status == 200
    assert header(answer, "Cache-Control") == "no-cache, private"
    assert len(header(answer, "Audit-Id") or "") == 36


async def test_a_waiting_endpoint_gets_the_same_headers() -> None:
    async def later(ctx: RequestContext) -> Answer:
        await asyncio.sleep(0)
        ctx.warn("careful")
        return ok(ctx)

    answer = await Bench(later).ask("GET", POD)
    assert header(answer, "Cache-Control") == "no-cache, private"
    assert header(answer, "Warning") == '299 - "careful"'
    assert header(answer, "Audit-Id")


def test_header_lists_of_endpoints_are_not_touched() -> None:
    shared = [(b"Content-Type", b"text/plain")]
    bench = Bench(lambda ctx: Response(200, shared, b""))
    bench.ask("GET", POD)
    assert shared == [(b"Content-Type", b"text/plain")]


@pytest.mark.parametrize("name", [b"Cache-Control", b"cache-control"])
def test_own_cache_control_wins(name: bytes) -> None:
    answer = Bench(lambda ctx: Response(200, [(name, b"public")])).ask("GET", POD)
    assert [value for key, value in answer.headers if key.lower() == b"cache-control"] == [b"public"]


def test_audit_id_of_the_client_is_kept() -> None:
    assert header(Bench().ask("GET", POD, audit_id="mine"), "Audit-Id") == "mine"
    assert header(Bench().ask("GET", "/nothing", audit_id="mine"), "Audit-Id") == "mine"


def test_unauthenticated() -> None:
    bench = Bench()
    answer = bench.ask("GET", POD, token="nosuch")
    assert answer.status == 401
    assert b'"message":"Unauthorized","reason":"Unauthorized","code":401}' in answer.body
    assert header(answer, "Cache-Control") == "no-cache, private"
    assert bench.ask("GET", POD, token="").status == 401
    assert bench.ask("GET", "/healthz", token="").status == 200
    assert bench.exposed("authentication_attempts") == [
        'authentication_attempts{result="error"} 1',
        'authentication_attempts{result="failure"} 1',
        'authentication_attempts{result="success"} 1',
    ]


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/nothing", 404, b"404 page not found\n"),
        ("GET", "/apis/nope.example.com", 404, b"404 page not found\n"),
        ("GET", "/apis/nope.example.com/v1/foos", 404, b"404 page not found\n"),
        ("GET", "/healthz/", 404, b"404 page not found\n"),
    ],
)
def test_unknown_paths_are_plain_text(method: str, path: str, status: int, body: bytes) -> None:
    answer = Bench().ask(method, path)
    assert (answer.status, answer.body) == (status, body)
    assert header(answer, "Content-Type") == "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/apis/apps/v9", 404), ("GET", "/apis/apps/v9/deployments", 404), ("GET", "/api/v1/nopes", 404),
        ("GET", "/api/v2/pods", 404), ("GET", "/api/../version", 404), ("GET", "/version/x", 404),
        ("POST", "/apis/apps/v1/namespaces/x/nopes", 404), ("PATCH", POD, 405), ("PROPFIND", POD, 405),
        ("POST", "/version", 405),
    ],
)  # fmt: skip
def test_misses_below_an_api_are_a_status(method: str, path: str, status: int) -> None:
    answer = Bench().ask(method, path)
    assert answer.status == status
    assert header(answer, "Content-Type") == "application/json"
    assert b'"details":{}' in answer.body


def test_a_target_that_cannot_be_decoded() -> None:
    answer = Bench().ask("GET", "/api/v1/namespaces/x/pods/%zz")
    assert (answer.status, answer.body) == (400, b"400 Bad Request")


async def _raise(error: Exception) -> Answer:
    raise error


@pytest.mark.parametrize("wait", [False, True])
async def test_errors_of_endpoints(wait: bool, log: io.StringIO) -> None:
    def bench(error: Exception) -> Bench:
        def now(ctx: RequestContext) -> Answer:
            raise error

        def later(ctx: RequestContext) -> Awaitable[Answer]:
            return _raise(error)

        return Bench(later if wait else now)

    async def ask(error: Exception) -> Any:
        answer = bench(error).ask("GET", POD)
        return await answer if wait else answer

    answer = await ask(not_found("pods", "", "one"))
    assert answer.status == 404
    assert answer.body == (
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \\"one\\" not found",'
        b'"reason":"NotFound","details":{"name":"one","kind":"pods"},"code":404}\n'
    )
    answer = await ask(APIError("TooManyRequests", "slow down", details={"retryAfterSeconds": 7}))
    assert (answer.status, header(answer, "Retry-After")) == (429, "7")
    answer = await ask(APIError("", "odd", code=500))
    assert b"reason" not in answer.body
    assert not log.getvalue()

    answer = await ask(KeyError("secret detail"))
    assert (answer.status, answer.body) == (
        500,
        b"This request caused apiserver to panic. Look in the logs for details.\n",
    )
    assert "secret detail" in log.getvalue()
    assert "Traceback" in log.getvalue()
    assert header(answer, "Audit-Id") in log.getvalue()


@pytest.mark.parametrize("text", ["abc", "10", "5x", "-"])
def test_a_broken_timeout_parameter(text: str) -> None:
    answer = Bench().ask("GET", f"{POD}?timeout={text}")
    assert answer.status == 400
    assert b'"message":"invalid timeout specified in the request URL - time: ' in answer.body


@pytest.mark.parametrize("text", ["", "0s", "5s", "-5s", "1h"])
def test_timeouts_that_are_accepted(text: str) -> None:
    assert Bench().ask("GET", f"{POD}?timeout={text}").status == 200


async def test_waiting_too_long_is_504() -> None:
    async def never(ctx: RequestContext) -> Answer:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    bench = Bench(never)
    answer = await bench.ask("GET", f"{POD}?timeout=1ms")
    assert answer.status == 504
    assert answer.body == (
        b'{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout",'
        b'"reason":"Timeout","details":{},"code":504}\n'
    )
    assert header(answer, "Content-Type") == "text/plain; charset=utf-8"
    assert bench.exposed("apiserver_request_terminations_total") == [
        'apiserver_request_terminations_total{code="504",component="apiserver",group="",resource="pods",'
        'scope="resource",subresource="",verb="GET",version="v1"} 1'
    ]
    assert (await Bench(never, request_timeout=0.001).ask("GET", f"{POD}?timeout=1h")).status == 504


async def test_a_write_with_no_time_of_its_own_ends_in_its_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(ctx: RequestContext) -> Answer:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    asked = await Bench(never).ask("PUT", f"{POD}?timeout=1ms")
    assert (asked.status, b"the allotted timeout" in asked.body, b"kind" in asked.body) == (504, True, False)
    monkeypatch.setattr("fastapi_core.filters.limits._WRITE_LIMIT", 0.001)
    answer = await Bench(never).ask("PUT", POD)
    assert answer.status == 504
    assert answer.body == (
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: request did not '
        b'complete within requested timeout - context deadline exceeded","reason":"Timeout","details":{},"code":504}\n'
    )


@pytest.mark.parametrize(
    ("method", "target", "limit", "left"),
    [
        ("GET", POD, 60.0, 60.0),
        ("PUT", POD, 60.0, 34.0),
        ("PUT", POD, 10.0, 10.0),
        ("PUT", f"{POD}?timeout=1h", 60.0, 34.0),
        ("PUT", f"{POD}?timeout=20s", 60.0, 20.0),
        ("GET", f"{POD}?timeout=-5s", 60.0, 60.0),
        ("GET", f"{POD}?timeout=0", 60.0, 60.0),
        ("GET", f"{POD}?timeout=5s&timeout=x", 60.0, 5.0),
        ("GET", f"{POD}?timeout=", 60.0, 60.0),
        ("POST", "/healthz", 60.0, 60.0),
    ],
)
def test_how_long_requests_may_take(method: str, target: str, limit: float, left: float) -> None:
    seen: list[float] = []

    def endpoint(ctx: RequestContext) -> Answer:
        seen.append(ctx.deadline - ctx.started)
        return ok(ctx)

    assert Bench(endpoint, request_timeout=limit).ask(method, target).status == 200
    assert seen == [pytest.approx(left)]


async def test_a_timeout_inside_the_endpoint_is_not_the_deadline() -> None:
    answer = await Bench(lambda ctx: _raise(TimeoutError("inner"))).ask("GET", POD)
    assert answer.status == 500


async def test_watches_have_no_deadline() -> None:
    seen: list[float] = []

    def watch(ctx: RequestContext) -> Answer:
        seen.append(ctx.deadline)
        return Stream(200, [], lambda writer: None)

    assert Bench(watch).ask("GET", "/api/v1/namespaces/x/pods?watch=1&timeout=1ms").status == 200
    assert seen == [0.0]


class Never:
    """An awaitable that nobody will start."""

    def __await__(self) -> Generator[None, None, Answer]:
        raise AssertionError
        yield


@pytest.mark.filterwarnings("ignore:coroutine 'Chain._wait' was never awaited")
def test_in_flight_limits() -> None:
    held: list[RequestContext] = []

    def hold(ctx: RequestContext) -> Awaitable[Answer]:
        held.append(ctx)
        return Never()

    bench = Bench(hold, max_requests_inflight=1, max_mutating_requests_inflight=2)
    reads = [bench.ask("GET", POD, token="alice")]
    refused = bench.ask("GET", POD, token="alice")
    assert (refused.status, refused.body) == (429, b"Too many requests, please try again later.\n")
    assert header(refused, "Retry-After") == "1"
    writes = [bench.ask("PUT", POD, token="alice") for _ in range(2)]
    assert bench.ask("PUT", POD, token="alice").status == 429
    reads.append(bench.ask("GET", POD, token="admin"))
    assert bench.exposed("apiserver_current_inflight_requests") == [
        'apiserver_current_inflight_requests{request_kind="mutating"} 2',
        'apiserver_current_inflight_requests{request_kind="readOnly"} 2',
    ]
    # A task cancelled before its first step runs nothing of its coroutine; the places come back all the same.
    while held:
        held.pop()
    for coroutine in reads + writes:
        coroutine.close()
    reads.clear()
    writes.clear()
    del coroutine
    assert [line[-2:] for line in bench.exposed("apiserver_current_inflight_requests")] == [" 0", " 0"]


async def test_a_cancelled_request_gives_its_place_back() -> None:
    async def never(ctx: RequestContext) -> Answer:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    bench = Bench(never, max_requests_inflight=1)
    task = asyncio.ensure_future(bench.ask("GET", POD))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [line[-2:] for line in bench.exposed("apiserver_current_inflight_requests")] == [" 0", " 0"]
    assert bench.exposed("apiserver_request_aborts_total{")[0].endswith('verb="GET",version="v1"} 1')


def test_shutting_down_refuses_new_requests_and_watches_but_not_streams() -> None:
    bench = Bench()
    bench.gate.closed = True
    answer = bench.ask("GET", POD)
    assert (answer.status, header(answer, "Retry-After")) == (503, "1")
    assert b'"message":"apiserver is shutting down"' in answer.body
    assert bench.ask("GET", "/api/v1/namespaces/x/pods?watch=1").status == 503
    bench.gate.redirecting = True
    answer = bench.ask("GET", POD)
    assert (answer.status, header(answer, "Retry-After"), header(answer, "Connection")) == (429, "5", "close")
    assert answer.body == b"The apiserver is shutting down, please try again later.\n"
    assert bench.ask("GET", POD, user_agent="kube-apiserver/v1.36.2").status == 503
    bench.gate.closed = False
    assert bench.ask("GET", "/healthz").status == 200


def test_too_large_bodies_are_answered_behind_authentication() -> None:
    bench = Bench(body_limit=3145728)
    answer = bench.ask("POST", "/api/v1/namespaces/x/pods", too_large=True)
    assert answer.status == 413
    assert (
        b'"message":"Request entity too large: limit is 3145728","reason":"RequestEntityTooLarge","code":413'
        in answer.body
    )
    assert bench.ask("POST", "/api/v1/namespaces/x/pods", token="", too_large=True).status == 401


class Policy:
    """Denies alice until told otherwise; counts questions."""

    def __init__(self, wait: bool = False) -> None:
        self.generation, self.asked, self.wait = 0, 0, wait
        self.verdict = Verdict(Decision.DENY, "no rule")

    def authorize(self, attributes: Attributes) -> Verdict | Awaitable[Verdict]:
        self.asked += 1
        return self._later() if self.wait else self.verdict

    async def _later(self) -> Verdict:
        return self.verdict


def test_verdicts_are_remembered_until_the_policy_changes() -> None:
    policy = Policy()
    bench = Bench(authorizer=policy)
    answers = [bench.ask("GET", POD, token="alice") for _ in range(3)]
    assert [a.status for a in answers] == [403, 403, 403]
    assert (
        b'cannot get resource \\"pods\\" in API group \\"\\" in the namespace \\"default\\": no rule' in answers[0].body
    )
    assert policy.asked == 1
    policy.generation, policy.verdict = 1, Verdict(Decision.ALLOW)
    assert bench.ask("GET", POD, token="alice").status == 200
    assert policy.asked == 2
    assert bench.ask("GET", POD, token="admin").status == 200
    assert policy.asked == 3


async def test_an_authorizer_that_waits_precedes_routing() -> None:
    policy = Policy(wait=True)
    bench = Bench(authorizer=policy)
    assert (await bench.ask("GET", "/nosuch", token="alice")).status == 403
    policy.verdict = Verdict(Decision.ALLOW)
    assert (await bench.ask("GET", "/nosuch", token="alice")).status == 404
    assert (await bench.ask("GET", POD, token="alice")).status == 200


def test_hsts_and_cors() -> None:
    bench = Bench(
        strict_transport_security=("max-age=31536000", "preload"), cors_allowed_origins=("^https://good$", "//also$")
    )
    answer = bench.ask("GET", POD, origin="https://good")
    assert header(answer, "Strict-Transport-Security") == "max-age=31536000; preload"
    assert header(answer, "Access-Control-Allow-Origin") == "https://good"
    assert header(answer, "Access-Control-Allow-Credentials") == "true"
    assert header(bench.ask("GET", POD, origin=""), "Access-Control-Allow-Origin") is None
    preflight = bench.ask("OPTIONS", POD, token="", origin="http://also")
    assert (preflight.status, header(preflight, "Access-Control-Expose-Headers")) == (204, "Date")
    assert header(bench.ask("GET", POD, origin="https://good.evil"), "Access-Control-Allow-Origin") is None
    assert bench.ask("OPTIONS", POD, origin="https://evil").status == 405
    assert header(bench.ask("GET", POD, token="nosuch"), "Strict-Transport-Security")


def test_requests_are_counted_by_what_they_ask_for() -> None:
    bench = Bench()
    bench.ask("GET", POD)
    bench.ask("GET", POD)
    bench.ask("PUT", f"{POD}?dryRun=All")
    bench.ask("POST", "/api/v1/namespaces/x/pods")
    bench.ask("GET", "/healthz")
    bench.ask("GET", "/made/up/by/a/stranger")
    bench.ask("GET", "/api/v1/namespaces/x/made-up")
    counted = [re.sub(r'component="apiserver",|code="200",|group="",', "", line) for line in bench.exposed(TOTAL)]
    assert counted == [
        TOTAL + 'dry_run="",resource="",scope="",subresource="/healthz",verb="GET",version=""} 1',
        TOTAL + 'dry_run="",resource="pods",scope="resource",subresource="",verb="GET",version="v1"} 2',
        TOTAL + 'dry_run="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 1',
        TOTAL + 'dry_run="All",resource="pods",scope="resource",subresource="",verb="PUT",version="v1"} 1',
    ]
    assert not [line for line in bench.exposed("") if "made" in line]
    sizes = bench.exposed("apiserver_response_sizes_count")
    assert all('verb="GET"' in line for line in sizes)


def test_a_stream_counts_from_its_start_to_its_end() -> None:
    started: list[Any] = []
    bench = Bench(lambda ctx: Stream(200, [], started.append))
    answer = bench.ask("GET", "/api/v1/namespaces/x/pods?watch=1")
    assert bench.exposed("apiserver_longrunning_requests{")[0].endswith(" 0")
    writer = FakeWriter()
    answer.start(writer)
    assert started == [writer]
    assert bench.exposed("apiserver_longrunning_requests{")[0].endswith(" 1")
    writer.finish()
    assert bench.exposed("apiserver_longrunning_requests{")[0].endswith(" 0")
    assert 'scope="namespace",subresource="",verb="WATCH"' in bench.exposed("apiserver_request_total{")[0]


def test_lists_of_chunks_are_measured() -> None:
    bench = Bench(lambda ctx: Response(200, [], [b"x" * 600, b"y" * 600]))
    bench.ask("GET", "/api/v1/namespaces/x/pods")
    assert bench.exposed("apiserver_response_sizes_sum")[0].endswith(" 1200")


@pytest.mark.parametrize(
    ("target", "agent", "pretty"),
    [
        ("?pretty=true", "x", True),
        ("?pretty=0", "curl/8", False),
        ("", "curl/8", True),
        ("", "kubectl/1", False),
        ("?pretty=", "Wget/1", True),
    ],
)
def test_failures_are_indented_for_people(target: str, agent: str, pretty: bool) -> None:
    body = Bench().ask("GET", "/api/v1/nopes" + target, user_agent=agent).body
    assert (body.startswith(b'{\n  "kind": "Status",\n')) is pretty
    assert body.endswith(b"}" if pretty else b"}\n")


def test_the_sli_histogram_follows_the_other_one() -> None:
    bench = Bench()
    bench.ask("PUT", POD)
    bench.ask("PUT", f"{POD}?dryRun=All")
    family = bench.metrics.request_duration
    for child in family.children.values():
        child.observe(0.03)
        child.observe(100)
    for _ in range(2):
        bench.metrics.registry.expose()
    (sli,) = bench.metrics.request_sli_duration.children.values()
    assert sli.count == sum(child.count for child in family.children.values()) == 6
    assert sli.counts[0] == 4
    assert sli.counts[-1] == 2
    assert sli.total == pytest.approx(sum(child.total for child in family.children.values()))

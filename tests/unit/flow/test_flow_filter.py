"""Priority and fairness around real endpoints: taking, waiting, refusing, giving up, giving back."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable
from typing import Any

import pytest

from fastapi_core._ext.router import Router
from fastapi_core.authn.base import Anonymous, Union
from fastapi_core.authn.tokens import StaticTokens
from fastapi_core.authz.base import AlwaysAllow
from fastapi_core.errors import not_found
from fastapi_core.filters.chain import ChainConfig, build_chains
from fastapi_core.filters.limits import ShutdownGate
from fastapi_core.flow.bootstrap import LEVELS, SCHEMAS
from fastapi_core.flow.control import Control
from fastapi_core.flow.estimate import Estimator
from fastapi_core.flow.rules import level_spec, schema_spec
from fastapi_core.http.exchange import Answer, Response, Stream, StreamWriter
from fastapi_core.obs.catalog import Metrics
from fastapi_core.request.context import RequestContext, User
from tests.fixtures.exchange import FakeRequest, FakeWriter, header

POD = "/api/v1/namespaces/default/pods/one"
PODS = "/api/v1/namespaces/default/pods"
USERS = {name: User(name, groups=("system:authenticated",)) for name in ("alice", "bob")}
USERS["admin"] = User("admin", groups=("system:masters", "system:authenticated"))


class Bench:
    """A chain whose writes wait until they are let go, with one seat for everybody who is not exempt."""

    def __init__(self, *, seats: int = 1, length: int = 50, timeout: float = 60.0) -> None:
        self.metrics = Metrics()
        self.gate = ShutdownGate()
        self.control = Control(600, self.metrics.registry)
        specs: Any = [level_spec(o.tree) for o in LEVELS], [schema_spec(o.tree) for o in SCHEMAS]
        self.control.digest(*specs)
        self.level = self.control.levels["global-default"].queues
        self.level.set_limit(seats)
        self.level.length = length
        self.waiting: list[asyncio.Event] = []
        self.running: list[str] = []
        self.seen_seats = 0
        self.stream: Stream | None = None
        router: Any = Router(
            [
                ("/api/v1/namespaces/{namespace}/pods/{name}{/}", {"GET": self.get, "PUT": self.put}),
                ("/api/v1/namespaces/{namespace}/pods{/}", {"GET": self.watch}),
            ]
        )
        self.chain = build_chains(
            ChainConfig(
                authenticator=Union([StaticTokens(USERS)], Anonymous()),
                authorizer=AlwaysAllow(),
                metrics=self.metrics,
                router=lambda: router,
                known_group=lambda group: True,
                gate=self.gate,
                request_timeout=timeout,
                flow=(self.control, Estimator(lambda group, resource: None, self.control.watches)),
            )
        ).serve

    def get(self, ctx: RequestContext) -> Answer:
        self.seen_seats = self.level.in_use
        if ctx.info.name == "none":
            raise not_found("pods", "", "none")
        if ctx.info.name == "broken":
            raise RuntimeError("a defect")
        return Response(200, [], b"{}")

    async def put(self, ctx: RequestContext) -> Answer:
        self.running.append(ctx.user.name)
        event = asyncio.Event()
        self.waiting.append(event)
        await event.wait()
        return Response(200, [], b"{}")

    def watch(self, ctx: RequestContext) -> Answer:
        def start(writer: StreamWriter) -> None:
            self.seen_seats = self.level.in_use
            writer.write(b"first")

        self.stream = Stream(200, [], start)
        return self.stream

    def ask(self, method: str = "GET", target: str = POD, user: str = "alice") -> Any:
        request: Any = FakeRequest(method, target, {"authorization": f"Bearer {user}"})
        return self.chain(request)

    def put_task(self, user: str = "alice", name: str = "one") -> asyncio.Task[Answer]:
        async def run() -> Answer:
            answer: Answer = await self.ask("PUT", f"{PODS}/{name}", user)
            return answer

        return asyncio.create_task(run())

    async def settle(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    def counter(self, start: str) -> list[str]:
        return [line for line in self.metrics.registry.expose().decode().splitlines() if line.startswith(start)]


def test_an_answer_at_once_takes_a_seat_and_gives_it_back() -> None:
    bench = Bench()
    answer = bench.ask()
    assert isinstance(answer, Response)
    assert (bench.seen_seats, bench.level.in_use) == (1, 0)
    assert header(answer, "X-Kubernetes-Pf-Flowschema-Uid") == ""
    assert "priority-and-fairness" in bench.chain.names
    assert bench.chain.names.index("authentication") < bench.chain.names.index("priority-and-fairness")
    assert bench.chain.names.index("priority-and-fairness") < bench.chain.names.index("authorization")


@pytest.mark.parametrize(("name", "status"), [("none", 404), ("broken", 500)])
def test_failures_give_it_back_too(name: str, status: int) -> None:
    bench = Bench()
    assert bench.ask("GET", f"{PODS}/{name}").status == status
    assert (bench.seen_seats, bench.level.in_use) == (1, 0)


async def test_who_finds_no_seat_waits_for_one() -> None:
    bench = Bench()
    first = bench.put_task()
    await bench.settle()
    second, third = bench.put_task("bob"), asyncio.ensure_future(bench.ask("GET", POD, "bob"))
    await bench.settle()
    assert bench.running == ["alice"]
    assert bench.level.waiting == 2
    assert bench.counter('apiserver_current_inqueue_requests{request_kind="readOnly"}')[0].endswith(" 1")
    assert bench.counter('apiserver_current_inflight_requests{request_kind="mutating"}')[0].endswith(" 1")
    # Whoever is exempt does not wait.
    assert bench.ask("GET", POD, "admin").status == 200
    bench.waiting[0].set()
    await bench.settle()
    bench.waiting[1].set()
    assert {(await task).status for task in (first, second, third)} == {200}
    assert bench.level.idle
    assert bench.level.in_use == 0
    assert bench.counter('apiserver_flowcontrol_dispatched_requests_total{flow_schema="global-default"')[0].endswith(
        " 3"
    )


async def test_a_full_queue_is_429() -> None:
    bench = Bench(length=1)
    tasks = [bench.put_task() for _ in range(7)]
    await bench.settle()
    assert bench.level.waiting == 6
    answer = bench.ask("GET", POD, "alice")
    assert answer.status == 429
    assert answer.body == b"Too many requests, please try again later.\n"
    assert header(answer, "Retry-After") == "1"
    assert header(answer, "X-Kubernetes-Pf-Prioritylevel-Uid") == ""
    assert bench.counter("apiserver_flowcontrol_rejected_requests_total") == [
        'apiserver_flowcontrol_rejected_requests_total{flow_schema="global-default",priority_level="global-default",'
        'reason="queue-full"} 1'
    ]
    while not all(task.done() for task in tasks):
        for event in bench.waiting:
            event.set()
        await bench.settle()
    assert bench.level.in_use == 0


async def test_waiting_ends_after_a_quarter_of_the_time() -> None:
    bench = Bench(timeout=0.08)
    bench.level.in_use = 1
    loop = asyncio.get_running_loop()
    before = loop.time()
    answer = await bench.ask("GET", POD)
    assert answer.status == 429
    assert 0.015 < loop.time() - before < 5
    assert bench.level.waiting == 0
    assert 'reason="time-out"} 1' in bench.counter("apiserver_flowcontrol_rejected_requests_total")[0]
    assert bench.counter("apiserver_request_terminations_total")[0].endswith(" 1")


async def test_a_client_that_goes_away_leaves_the_queue() -> None:
    bench = Bench()
    first = bench.put_task()
    await bench.settle()
    second, third = bench.put_task("bob"), bench.put_task("bob", "two")
    await bench.settle()
    second.cancel()
    await asyncio.wait([second])
    assert (bench.level.waiting, bench.level.in_use, bench.running) == (1, 1, ["alice"])
    assert 'reason="cancelled"} 1' in bench.counter("apiserver_flowcontrol_rejected_requests_total")[0]
    bench.waiting[0].set()
    await first
    await bench.settle()
    assert bench.running == ["alice", "bob"]
    third.cancel()
    await asyncio.wait([third])
    assert bench.level.idle
    assert bench.level.in_use == 0


async def test_a_seat_given_to_one_who_has_just_gone_goes_on() -> None:
    bench = Bench()
    first = bench.put_task()
    await bench.settle()
    second, third = bench.put_task("bob"), bench.put_task("bob", "two")
    await bench.settle()
    bench.waiting[0].set()
    await first
    # The seat is the second's since a moment ago, its task has not run yet.
    second.cancel()
    await bench.settle()
    assert second.cancelled()
    assert bench.running[-1] == "bob"
    assert bench.level.in_use == 1
    bench.waiting[-1].set()
    assert (await third).status == 200
    assert bench.level.in_use == 0


async def test_a_task_that_never_ran_keeps_nothing() -> None:
    bench = Bench()
    pending: Awaitable[Answer] = bench.ask("PUT")
    assert bench.level.in_use == 1
    queued: Awaitable[Answer] = bench.ask("PUT", POD, "bob")
    assert bench.level.waiting == 1
    for one in (queued, pending):
        task = asyncio.ensure_future(one)
        task.cancel()
        await asyncio.wait([task])
    del one, queued, pending, task
    gc.collect()
    assert (bench.level.in_use, bench.level.waiting, len(bench.level.running)) == (0, 0, 0)


async def test_shutdown_lets_the_queues_drain() -> None:
    bench = Bench()
    tasks = [bench.put_task(user) for user in ("alice", "bob", "bob")]
    await bench.settle()
    bench.gate.closed = True
    assert bench.ask("GET").status == 503
    while not all(task.done() for task in tasks):
        for event in bench.waiting:
            event.set()
        await bench.settle()
    assert [(await task).status for task in tasks] == [200, 200, 200]
    assert bench.level.idle


def test_a_watch_has_its_seat_only_while_it_begins() -> None:
    bench = Bench()
    answer = bench.ask("GET", f"{PODS}?watch=1")
    assert isinstance(answer, Stream)
    assert bench.level.in_use == 1
    writer: Any = FakeWriter()
    answer.start(writer)
    assert (bench.seen_seats, bench.level.in_use) == (1, 0)
    assert writer.written == [b"first"]
    info: Any = type("Info", (), {"api_group": "", "resource": "pods", "namespace": "default", "name": "x"})
    assert bench.control.watches.seeing(info) == 1
    writer.finish()
    assert bench.control.watches.seeing(info) == 0
    assert bench.counter("apiserver_flowcontrol_request_execution_seconds_count")[-1].endswith('type="watch"} 1')


def test_a_watch_that_never_begins_keeps_nothing() -> None:
    bench = Bench()
    answer = bench.ask("GET", f"{PODS}?watch=1")
    assert bench.level.in_use == 1
    bench.stream = None
    del answer
    gc.collect()
    assert bench.level.in_use == 0


def test_a_changed_configuration_holds_for_the_next_request() -> None:
    bench = Bench()
    bench.ask()
    assert bench.control.levels["global-default"].queues.dispatched == 1
    mine = {
        "metadata": {"name": "mine", "uid": "u-1"},
        "spec": {
            "priorityLevelConfiguration": {"name": "exempt"},
            "matchingPrecedence": 10,
            "rules": [
                {
                    "subjects": [{"kind": "User", "user": {"name": "alice"}}],
                    "resourceRules": [
                        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
                    ],
                }
            ],
        },
    }
    specs: Any = [level_spec(o.tree) for o in LEVELS], [schema_spec(o.tree) for o in SCHEMAS]
    bench.control.digest(specs[0], [*specs[1], schema_spec(mine)])
    answer = bench.ask()
    assert header(answer, "X-Kubernetes-Pf-Flowschema-Uid") == "u-1"
    assert bench.control.levels["global-default"].queues.dispatched == 1
    assert bench.control.levels["exempt"].queues.dispatched == 1


def test_the_memory_of_classifications_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastapi_core.filters.flow._MEMORY", 10)
    bench = Bench()
    fair = next(s for s in bench.chain._steps if "PriorityAndFairness" in repr(s[1]))[1].__self__  # type: ignore[union-attr]
    for number in range(100):
        assert bench.ask("GET", f"/api/v1/namespaces/n{number}/pods/one").status == 200
        assert len(fair._memory) <= 12
    fair._memory.clear()
    for number in range(5):
        assert bench.ask("GET", f"{POD}?filler={number}{'x' * 600}").status == 200
    assert not fair._memory

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from fastapi_core._ext.router import Router
from fastapi_core.authn.base import Union
from fastapi_core.authn.tokens import StaticTokens
from fastapi_core.http.exchange import Handler
from fastapi_core.request.context import User
from fastapi_core.server.config import ServerConfig
from fastapi_core.server.generic import GenericServer
from fastapi_core.server.lifecycle import HookError
from fastapi_core.server.routes import routes
from tests.fixtures.exchange import FakeRequest


class Recorder:
    """A listener that notes what the lifecycle does to it."""

    def __init__(self, journal: list[str]) -> None:
        self.journal = journal
        self.port = 4711
        self.drained = True

    async def start(self) -> None:
        self.journal.append("listen")

    def stop_accepting(self) -> None:
        self.journal.append("stop accepting")

    async def drain(self, timeout: float) -> bool:
        self.journal.append(f"drain {timeout:g}")
        return self.drained

    async def close(self) -> None:
        self.journal.append("close sockets")


class Bench:
    def __init__(self, **settings: Any) -> None:
        self.journal: list[str] = []
        config = ServerConfig(authenticator=Union([StaticTokens({"t": User("admin")})]), **settings)
        self.router: list[Router[Any]] = []

        def listen(config: ServerConfig, handler: Handler, too_large: Handler) -> Recorder:
            return Recorder(self.journal)

        self.server = GenericServer(config, lambda: self.router[-1], known_group=lambda group: False, listen=listen)

    def note(self, what: str) -> None:
        self.journal.append(what)

    async def later(self, what: str) -> None:
        await asyncio.sleep(0)
        self.journal.append(what)

    async def get(self, target: str) -> tuple[int, bytes]:
        self.router.append(Router(routes(self.server)))
        request: Any = FakeRequest(target=target, headers={"Authorization": "Bearer t"})
        answer: Any = self.server.handler(request)
        if isinstance(answer, Awaitable):
            answer = await answer
        return answer.status, answer.body


async def test_start_listens_then_runs_the_hooks_and_stop_goes_down_in_order() -> None:
    bench = Bench(drain_timeout=7.0)
    server = bench.server
    server.add_hook("a", lambda: bench.later("hook a"))
    server.add_hook("b", lambda: bench.later("hook b"))
    server.add_pre_shutdown_hook("p", lambda: bench.later("pre-shutdown"))
    server.on_shutdown(lambda: bench.note("end watches"))
    server.on_stop(lambda: bench.later("close storage"))
    server.on_stop(lambda: bench.note("close cacher"))
    await server.start()
    assert server.port == 4711
    assert server.signals.started.is_set()
    await server.stop()
    await server.stop()
    assert bench.journal == [
        "listen", "hook a", "hook b", "pre-shutdown", "stop accepting", "end watches", "drain 7", "stop accepting",
        "close sockets", "close cacher", "close storage",
    ]  # fmt: skip
    assert server.signals.stopped.is_set()


async def test_readiness_follows_hooks_and_shutdown() -> None:
    bench = Bench()
    gate = asyncio.Event()

    async def hook() -> None:
        await gate.wait()

    bench.server.add_hook("rbac/bootstrap-roles", hook)
    starting = asyncio.create_task(bench.server.start())
    while "listen" not in bench.journal:
        await asyncio.sleep(0)
    status, body = await bench.get("/readyz")
    assert status == 500
    assert b"[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\n" in body
    assert (await bench.get("/readyz/ping"))[0] == 200
    gate.set()
    await starting
    assert await bench.get("/readyz") == (200, b"ok")
    assert await bench.get("/livez/poststarthook/rbac/bootstrap-roles") == (200, b"ok")
    bench.server.signals.shutdown_initiated.set()
    status, body = await bench.get("/readyz")
    assert status == 500
    assert body.endswith(b"[-]shutdown failed: reason withheld\nreadyz check failed\n")
    assert (await bench.get("/livez"))[0] == 200


async def test_during_the_delay_requests_are_still_served() -> None:
    bench = Bench(shutdown_delay=0.001)
    await bench.server.start()
    stopping = asyncio.create_task(bench.server.stop())
    await bench.server.signals.shutdown_initiated.wait()
    assert (await bench.get("/livez"))[0] == 200
    assert "stop accepting" not in bench.journal
    await stopping
    assert (await bench.get("/livez"))[0] == 503


async def test_a_failing_hook_ends_the_server_and_cancels_the_others() -> None:
    bench = Bench()

    async def bad() -> None:
        raise ValueError("no luck")

    async def endless() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            bench.note("cancelled")

    bench.server.add_hook("endless", endless)
    bench.server.add_hook("bad", bad)
    bench.server.on_stop(lambda: bench.note("close storage"))
    with pytest.raises(HookError, match="post-start hook bad failed: no luck"):
        await asyncio.wait_for(bench.server.start(), 5)
    assert "cancelled" in bench.journal
    assert bench.journal[-1] == "close storage"


async def test_a_failing_closer_does_not_keep_the_rest_open(capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench()

    def bad() -> None:
        raise ValueError("stuck")

    bench.server.on_stop(lambda: bench.note("close storage"))
    bench.server.on_stop(bad)
    await bench.server.start()
    await bench.server.stop()
    assert bench.journal[-1] == "close storage"


async def test_registrations_after_the_start_are_refused() -> None:
    bench = Bench()
    await bench.server.start()
    with pytest.raises(RuntimeError, match="hook late"):
        bench.server.add_hook("late", lambda: bench.later("x"))
    with pytest.raises(RuntimeError, match="health check late"):
        bench.server.add_health_check("late", lambda: None)
    await bench.server.stop()


async def test_hook_names_are_unique() -> None:
    bench = Bench()
    bench.server.add_hook("a", lambda: bench.later("x"))
    with pytest.raises(ValueError, match="poststarthook/a is registered twice"):
        bench.server.add_hook("a", lambda: bench.later("x"))


async def test_metrics_routes() -> None:
    bench = Bench()
    status, body = await bench.get("/metrics")
    assert status == 200
    assert b"# TYPE process_start_time_seconds gauge\n" in body
    await bench.get("/healthz")
    assert b'kubernetes_healthcheck{name="ping",type="healthz"} 1' in (await bench.get("/metrics/slis"))[1]
    request: Any = FakeRequest("DELETE", "/metrics", {"Authorization": "Bearer t"})
    reset: Any = bench.server.handler(request)
    assert reset.body == b"metrics reset\n"


async def test_what_can_wait_is_done_between_requests() -> None:
    """Each step in a turn of the loop of its own, in the order in which the work was given."""
    bench = Bench()

    def work(name: str) -> Any:
        for number in range(2):
            bench.note(f"{name}{number}")
            yield None

    bench.server.afterwards(lambda: work("a"))
    bench.server.afterwards(lambda: work("b"))
    task = asyncio.ensure_future(bench.server.finish())
    while not task.done():
        bench.note("turn")
        await asyncio.sleep(0)
    kept = [note for note in bench.journal if note != "turn"]
    assert kept == ["a0", "a1", "b0", "b1"]
    assert "turn" in bench.journal[bench.journal.index("a0") : bench.journal.index("a1")]

"""/statusz, /flagz, /debug/* and /logs."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core._ext.router import Router
from fastapi_core.authn.base import Union
from fastapi_core.authn.tokens import StaticTokens
from fastapi_core.errors import APIError
from fastapi_core.http.exchange import Stream
from fastapi_core.obs import logs
from fastapi_core.request.context import User
from fastapi_core.server import routes as server_routes
from fastapi_core.server import zpages
from fastapi_core.server.config import ServerConfig
from fastapi_core.server.generic import GenericServer
from fastapi_core.server.stalls import Stalls
from tests.fixtures.exchange import FakeRequest, FakeWriter, header

VERSION = {"goVersion": "python3", "gitVersion": "v1.36.2+x", "emulationMajor": "1", "emulationMinor": "36"}


class Bench:
    def __init__(self, **settings: Any) -> None:
        config = ServerConfig(authenticator=Union([StaticTokens({"t": User("admin")})]), **settings)
        self.server = GenericServer(config, lambda: self.router, known_group=lambda group: False)
        pages = zpages.routes(
            lambda: ["/healthz", "/healthz/ping", "/api/v1"], lambda: {"v": "4", "a-flag": "x"}, VERSION
        )
        self.router: Router[Any] = Router(
            [*server_routes.routes(self.server), *server_routes.unlisted(self.server), *pages]
        )

    async def ask(self, target: str, method: str = "GET", body: bytes = b"", token: str = "t", **headers: str) -> Any:
        given = {**({"Authorization": f"Bearer {token}"} if token else {}), **headers}
        request: Any = FakeRequest(method, target, given, body)
        answer: Any = self.server.handler(request)
        return await answer if isinstance(answer, Awaitable) else answer


@pytest.fixture
def verbosity() -> Iterator[None]:
    before = logs.SINK.verbosity
    yield
    logs.SINK.verbosity = before


async def test_statusz_for_people_and_tools() -> None:
    bench = Bench()
    answer = await bench.ask("/statusz")
    assert header(answer, "Content-Type") == "text/plain; charset=utf-8"
    lines = answer.body.decode().split("\n")
    assert lines[:2] == ["", "kube-apiserver statusz"]
    assert "Binary version: 1.36.2+x" in lines
    assert "Paths: /api /healthz" in lines
    answer = await bench.ask("/statusz", Accept="application/json;v=v1beta1;g=config.k8s.io;as=Statusz")
    assert header(answer, "Content-Type") == "application/json;g=config.k8s.io;v=v1beta1;as=Statusz"
    tree = json.loads(answer.body)
    assert list(tree) == [
        "kind", "apiVersion", "metadata", "startTime", "uptimeSeconds", "goVersion", "binaryVersion",
        "emulationVersion", "paths",
    ]  # fmt: skip
    assert (tree["kind"], tree["apiVersion"]) == ("Statusz", "config.k8s.io/v1beta1")
    assert (await bench.ask("/statusz", Accept="application/json")).status == 406
    assert (await bench.ask("/statusz", token="")).status == 401


async def test_flagz() -> None:
    bench = Bench()
    assert (await bench.ask("/flagz")).body.decode().endswith("\n\na-flag=x\nv=4\n")
    answer = await bench.ask("/flagz", Accept="application/yaml;v=v1alpha1;g=config.k8s.io;as=Flagz")
    assert answer.body.decode().startswith("apiVersion: config.k8s.io/v1alpha1\nflags:\n  a-flag: x\n")
    assert (await bench.ask("/flagz", Accept="application/json;v=v1beta1;g=config.k8s.io;as=Statusz")).status == 406


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "text"), ("*/*", "text"), ("text/plain", "text"), ("text/plain;charset=UTF-8", "text"),
        ("text/*;q=0.5", "text"), ("text/html, */*", "text"), ("text/html", "406"), ("text/plain;version=1", "406"),
        ("application/json;v=v9;g=config.k8s.io;as=Flagz", "406"), ("application/json;v=v1beta1;as=Flagz", "406"),
        ("application/json;as=Flagz;v=v1beta1;g=config.k8s.io, text/plain", "json"),
    ],
)  # fmt: skip
def test_negotiation(accept: str, form: str) -> None:
    try:
        found = zpages.chosen(accept.encode(), "Flagz")[0]
    except APIError as error:
        found = str(error.code)
    assert found == form


@given(st.binary(max_size=60))
def test_any_accept_header_is_survived(accept: bytes) -> None:
    try:
        found = zpages.chosen(accept, "Flagz")[0]
    except APIError as error:
        found = str(error.code)
    assert found in ("text", "json", "yaml", "406")


async def test_profiles_tell_what_runs() -> None:
    bench = Bench()

    async def waits_for_godot() -> None:
        await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(waits_for_godot(), name="godot")
    await asyncio.sleep(0)
    body = (await bench.ask("/debug/pprof/goroutine")).body.decode()
    assert "task godot:\n" in body
    assert "waits_for_godot" in body
    assert "thread MainThread" in body
    task.cancel()
    assert " objects, " in (await bench.ask("/debug/pprof/heap")).body.decode()
    assert "MainThread\n" in (await bench.ask("/debug/pprof/threadcreate")).body.decode()
    assert "goroutine: " in (await bench.ask("/debug/pprof/")).body.decode()
    assert (await bench.ask("/debug/pprof")).status == 302
    for absent in ("cmdline", "symbol", "trace", "block"):
        assert (await bench.ask(f"/debug/pprof/{absent}")).status == 404


async def test_a_cpu_profile_of_the_loop() -> None:
    bench = Bench()
    running = asyncio.create_task(bench.ask("/debug/pprof/profile?seconds=0.2"))
    await asyncio.sleep(0)
    again = await bench.ask("/debug/pprof/profile?seconds=1")
    assert (again.status, again.body) == (500, b"Could not enable CPU profiling: cpu profiling already in use\n")

    def busy_bee() -> None:
        end = time.monotonic() + 0.1
        while time.monotonic() < end:
            pass

    busy_bee()
    answer = await running
    assert b"busy_bee" in answer.body
    stack, count = answer.body.decode().splitlines()[0].rsplit(" ", 1)
    assert ";" in stack
    assert int(count) > 0
    assert (await bench.ask("/debug/pprof/profile?seconds=9999")).status == 400
    assert (await bench.ask("/debug/pprof/profile?seconds=-1")).status == 400


@pytest.mark.usefixtures("verbosity")
async def test_verbosity_is_changed_by_put() -> None:
    bench = Bench()
    answer = await bench.ask("/debug/flags/v", "PUT", b"4\n")
    assert answer.body == b"successfully set klog.logging.verbosity to 4\n"
    assert logs.SINK.verbosity == 4
    for wrong in (b"", b"loud", b"-1", b"1.5", b"\xff"):
        assert (await bench.ask("/debug/flags/v", "PUT", wrong)).status == 400
    assert (await bench.ask("/debug/flags/v")).status == 406
    assert (await bench.ask("/debug/flags/v", "PUT", b"0", token="")).status == 401
    assert logs.SINK.verbosity == 4


async def test_without_profiling_there_is_none() -> None:
    bench = Bench(profiling=False)
    for path in ("/debug/pprof/", "/debug/pprof/goroutine", "/debug/flags/v", "/logs/"):
        assert (await bench.ask(path)).status == 404
    assert (await bench.ask("/metrics", "DELETE")).body != b"metrics reset\n"


async def test_log_files_and_nothing_else(tmp_path: Path) -> None:
    root = tmp_path / "log"
    (root / "pods").mkdir(parents=True)
    (root / "a.log").write_bytes(b"x" * 300_000)
    (tmp_path / "secret").write_text("no")
    (root / "out").symlink_to(tmp_path / "secret")
    bench = Bench(logs_directory=str(root))
    listing = await bench.ask("/logs/")
    assert b'<a href="a.log">a.log</a>\n' in listing.body
    assert b'<a href="pods/">' in listing.body
    answer = await bench.ask("/logs/a.log")
    assert isinstance(answer, Stream)
    writer = FakeWriter()
    done = asyncio.Event()
    answer.start(writer)
    writer.on_close(done.set)
    await asyncio.wait_for(done.wait(), 5)
    assert b"".join(writer.written) == b"x" * 300_000
    for path in ("/logs/out", "/logs/../secret", "/logs/..%2fsecret", "/logs/none", "/logs//etc/passwd", "/logs/a%00"):
        assert (await bench.ask(path)).status == 404, path
    assert (await bench.ask("/logs")).status == 301


async def test_stalls_are_noticed_with_where_the_loop_stood() -> None:
    stalls = Stalls(0.005)
    await stalls.start()

    def stands_still() -> None:
        end = time.monotonic() + 5
        while "stands_still" not in stalls.report() and time.monotonic() < end:
            time.sleep(0.001)

    await asyncio.sleep(0)
    stands_still()
    stalls.stop()
    assert "stands_still" in stalls.report()
    for thread in threading.enumerate():
        if thread.name == "stalls":
            thread.join(5)


async def test_hidden_metrics_are_not_exposed() -> None:
    bench = Bench()
    bench.server.metrics.registry.hidden = frozenset({"process_cpu_seconds_total"})
    body = (await bench.ask("/metrics")).body
    assert b"process_cpu_seconds_total" not in body
    assert b"process_start_time_seconds" in body

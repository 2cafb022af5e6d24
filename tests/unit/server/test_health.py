from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fastapi_core._ext.reqinfo import parse
from fastapi_core.obs.catalog import Metrics
from fastapi_core.request.context import RequestContext
from fastapi_core.server.health import Check, Health, Progress
from tests.fixtures.exchange import FakeRequest, header


def ok() -> None:
    return None


def broken() -> None:
    raise RuntimeError("the secret reason")


async def slow_ok() -> None:
    await asyncio.sleep(0)


async def slow_broken() -> None:
    raise RuntimeError("slow reason")


def make(*checks: Check) -> Health:
    health = Health(Metrics())
    for check in checks:
        health.add(check)
    return health


async def ask(health: Health, target: str) -> Any:
    request: Any = FakeRequest(target=target)
    ctx = RequestContext(request, parse("GET", request.path, request.query))
    endpoint, _, check = ctx.info.path[1:].partition("/")
    answer: Any = (health.single(endpoint) if check else health.root(endpoint))(ctx)
    return await answer if asyncio.iscoroutine(answer) else answer


async def test_healthy() -> None:
    answer = await ask(make(Check("ping", ok), Check("etcd", slow_ok)), "/healthz")
    assert (answer.status, answer.body) == (200, b"ok")
    assert header(answer, "Content-Type") == "text/plain; charset=utf-8"
    assert header(answer, "X-Content-Type-Options") == "nosniff"


def test_checks_that_need_not_wait_answer_at_once() -> None:
    health = make(Check("ping", ok))
    request: Any = FakeRequest(target="/livez")
    answer: Any = health.root("livez")(RequestContext(request, parse("GET", "/livez", "")))
    assert answer.status == 200


async def test_verbose() -> None:
    answer = await ask(make(Check("ping", ok), Check("etcd", slow_ok)), "/livez?verbose")
    assert answer.body == b"[+]ping ok\n[+]etcd ok\nlivez check passed\n"


async def test_failures_are_verbose_and_keep_their_reason() -> None:
    health = make(Check("ping", ok), Check("a", broken), Check("b", slow_broken), Check("c", ok))
    answer = await ask(health, "/readyz")
    assert answer.status == 500
    assert answer.body == (
        b"[+]ping ok\n[-]a failed: reason withheld\n[-]b failed: reason withheld\n[+]c ok\nreadyz check failed\n"
    )
    assert header(answer, "X-Content-Type-Options") == "nosniff"


async def test_exclude_by_name_group_and_unknown_name() -> None:
    health = make(
        Check("ping", ok),
        Check("etcd-0", broken, group="etcd"),
        Check("etcd-1", slow_broken, group="etcd"),
        Check("x", broken),
    )
    answer = await ask(health, "/healthz?exclude=etcd&exclude=x&exclude=nope&verbose")
    assert answer.status == 200
    assert answer.body == (
        b"[+]ping ok\n[+]etcd-0 excluded with etcd: ok\n[+]etcd-1 excluded with etcd: ok\n[+]x excluded: ok\n"
        b'warn: some health checks cannot be excluded: no matches for "nope"\nhealthz check passed\n'
    )
    assert (await ask(health, "/healthz?exclude=etcd&exclude=x")).body == b"ok"


async def test_single_checks() -> None:
    health = make(
        Check("ping", ok), Check("poststarthook/a/b", broken), Check("slow", slow_ok), Check("end", ok, ("readyz",))
    )
    assert (await ask(health, "/livez/ping")).body == b"ok"
    assert (await ask(health, "/livez/slow")).body == b"ok"
    failed = await ask(health, "/livez/poststarthook/a/b")
    assert (failed.status, failed.body) == (500, b"internal server error: the secret reason\n")
    for unknown in ("/livez/nope", "/livez/end", "/livez/"):
        missing = await ask(health, unknown) if unknown != "/livez/" else await ask(health, "/livez//")
        assert (missing.status, missing.body) == (404, b"404 page not found\n")


def test_names_are_unique_per_endpoint_and_the_last_ones_come_last() -> None:
    health = make(
        Check("shutdown", ok, ("readyz",), last=True),
        Check("ping", ok),
        Check("hook", ok, ("livez",)),
        Check("hook", ok, ("readyz",)),
    )
    assert [c.name for c in health.of("readyz")] == ["ping", "hook", "shutdown"]
    with pytest.raises(ValueError, match="ping is registered twice"):
        health.add(Check("ping", ok, ("livez",)))


async def test_results_are_counted() -> None:
    metrics = Metrics()
    health = Health(metrics)
    health.add(Check("ping", ok))
    health.add(Check("x", broken))
    await ask(health, "/readyz")
    lines = metrics.slis().decode()
    assert 'kubernetes_healthcheck{name="ping",type="readyz"} 1\n' in lines
    assert 'kubernetes_healthcheck{name="x",type="readyz"} 0\n' in lines
    assert 'kubernetes_healthchecks_total{name="x",status="error",type="readyz"} 1\n' in lines


def test_progress_and_its_grace() -> None:
    progress = Progress("hook x", grace=60.0)
    with pytest.raises(RuntimeError, match="hook x is not finished"):
        progress()
    progress.lenient()
    with pytest.raises(RuntimeError):
        Progress("hook y").lenient()
    progress.done = True
    progress()
    progress.lenient()

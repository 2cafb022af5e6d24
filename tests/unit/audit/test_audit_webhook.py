"""Events on their way to a server that is well, slow, refusing, or not there."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable
from typing import Any

from fastapi_core._ext import http1
from fastapi_core.audit import webhook
from fastapi_core.audit.backend import Throttle
from fastapi_core.audit.event import PREFIX, Deferred
from fastapi_core.audit.webhook import Batching, WebhookBackend
from fastapi_core.authn.outbound import Remote
from fastapi_core.http.exchange import Answer, Response
from fastapi_core.obs.catalog import Metrics
from tests.unit.http.http_support import serving, until


def line(number: int, pad: int = 0) -> bytes:
    return PREFIX + b'"n":%d,"pad":"%b"}\n' % (number, b"x" * pad)


class Receiver:
    """The other side: answers each list with the next of `answers` (200 when there is none), when it may."""

    def __init__(self, *answers: int) -> None:
        self.answers = list(answers)
        self.lists: list[list[int]] = []
        self.bodies: list[Any] = []
        self.requests: list[http1.Request] = []
        self.go = asyncio.Event()
        self.go.set()

    def __call__(self, request: http1.Request) -> Awaitable[Answer]:
        self.requests.append(request)
        return self.answer(request)

    async def answer(self, request: http1.Request) -> Answer:
        await self.go.wait()
        status = self.answers.pop(0) if self.answers else 200
        if status < 300:
            body = json.loads(request.body)
            self.bodies.append(body)
            self.lists.append([item["n"] for item in body["items"]])
        return Response(status, [], b"")


def hook(port: int) -> Remote:
    return Remote(f"http://127.0.0.1:{port}/hook?a=1", None, ((b"authorization", b"Bearer t"),))


def lost(metrics: Metrics) -> dict[str, float]:
    return {values[0]: child.value for values, child in metrics.audit_errors.children.items() if child.value}


async def test_full_batches_go_at_once_and_the_rest_in_time() -> None:
    receiver, metrics = Receiver(), Metrics()
    async with serving(receiver) as server:
        backend = WebhookBackend(hook(server.port), metrics.audit_errors, batching=Batching(100, 3, 0.05))
        for number in range(7):
            backend.put(line(number))
        await until(lambda: len(receiver.lists) == 2)
        await until(lambda: len(receiver.lists) == 3)
        await backend.close()
    assert sorted(receiver.lists) == [[0, 1, 2], [3, 4, 5], [6]]
    assert receiver.bodies[0].keys() == {"kind", "apiVersion", "metadata", "items"}
    assert receiver.bodies[0]["kind"] == "EventList"
    assert "kind" not in receiver.bodies[0]["items"][0]
    request = receiver.requests[0]
    assert (request.method, request.target) == ("POST", "/hook?a=1")
    assert request.header(b"authorization") == b"Bearer t"
    assert lost(metrics) == {}


async def test_closing_sends_what_is_left() -> None:
    receiver, metrics = Receiver(), Metrics()
    async with serving(receiver) as server:
        backend = WebhookBackend(hook(server.port), metrics.audit_errors, batching=Batching(100, 10, 1000))
        for number in range(25):
            backend.put(line(number))
        await backend.close()
        backend.put(line(99))
        assert await backend.store(line(99)) is False
    assert sorted(number for numbers in receiver.lists for number in numbers) == list(range(25))
    assert lost(metrics) == {"buffered": 1}


async def test_trouble_that_passes_is_waited_for() -> None:
    receiver, metrics = Receiver(503, 429, 500), Metrics()
    async with serving(receiver) as server:
        backend = WebhookBackend(hook(server.port), metrics.audit_errors, batching=Batching(100, 1, 0.0), backoff=0.001)
        backend.put(line(1))
        await until(lambda: receiver.lists == [[1]])
        await backend.close()
    assert len(receiver.requests) == 4
    assert lost(metrics) == {}


async def test_a_refusal_is_final_and_trouble_ends_some_time() -> None:
    receiver, metrics = Receiver(400, *[503] * webhook.ATTEMPTS), Metrics()
    async with serving(receiver) as server:
        backend = WebhookBackend(hook(server.port), metrics.audit_errors, batching=Batching(100, 2, 0.0), backoff=0.001)
        backend.put(line(1))
        backend.put(line(2))
        await until(lambda: lost(metrics) == {"webhook": 2})
        assert len(receiver.requests) == 1
        backend.put(line(3))
        await until(lambda: lost(metrics) == {"webhook": 3})
        assert len(receiver.requests) == 1 + webhook.ATTEMPTS
        await backend.close()


async def test_a_slow_webhook_costs_bounded_memory() -> None:
    receiver, metrics = Receiver(), Metrics()
    receiver.go.clear()
    async with serving(receiver) as server:
        backend = WebhookBackend(hook(server.port), metrics.audit_errors, batching=Batching(20, 5, 1000))
        for number in range(500):
            backend.put(line(number))
            await asyncio.sleep(0)
        taken = webhook.CONCURRENT * 5 + 20
        await until(lambda: len(receiver.requests) == webhook.CONCURRENT)
        assert lost(metrics)["buffered"] == 500 - taken
        receiver.go.set()
        await backend.close()
    assert sum(map(len, receiver.lists)) == taken


async def test_a_webhook_that_is_not_there_does_not_hold_up_the_end() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        metrics = Metrics()
        backend = WebhookBackend(hook(unused.getsockname()[1]), metrics.audit_errors, batching=Batching(1000, 10, 1000))
        for number in range(95):
            backend.put(line(number))
        await asyncio.wait_for(backend.close(), 5)
    assert lost(metrics) == {"webhook": 95}


async def test_a_webhook_that_never_answers_is_given_up_at_the_end() -> None:
    receiver, metrics = Receiver(), Metrics()
    receiver.go.clear()
    async with serving(receiver) as server:
        backend = WebhookBackend(hook(server.port), metrics.audit_errors, batching=Batching(1000, 5, 0.0), grace=0.1)
        for number in range(60):
            backend.put(line(number))
        await asyncio.wait_for(backend.close(), 5)
    assert sum(lost(metrics).values()) == 60


async def test_blocking_sends_the_first_event_before_the_request_goes_on() -> None:
    receiver, metrics = Receiver(200, 400), Metrics()
    async with serving(receiver) as server:
        backend = WebhookBackend(hook(server.port), metrics.audit_errors, mode="blocking-strict")
        assert backend.strict
        assert backend.waits
        assert await backend.store(line(1)) is True
        assert await backend.store(line(2)) is False
        backend.put(line(3))
        await until(lambda: receiver.lists == [[1], [3]])
        await backend.close()


async def test_lists_are_split_and_too_large_events_dropped() -> None:
    receiver, metrics = Receiver(), Metrics()
    async with serving(receiver) as server:
        backend = WebhookBackend(
            hook(server.port),
            metrics.audit_errors,
            event_limit=500,
            batch_limit=1000,
            batching=Batching(100, 6, 1000),
            throttle=Throttle(1000, 10),
        )
        body = Deferred(PREFIX + b'"n":5', b"", {}, b'"' + b"x" * 600 + b'"', b"", "", omit=False)
        for event in (line(1, 400), line(2, 600), line(3, 400), body, line(6, 400), line(7, 10)):
            backend.put(event)
        await until(lambda: len(receiver.lists) == 2)
        await backend.close()
    assert receiver.lists == [[1, 3, 5], [6, 7]]
    assert receiver.bodies[0]["items"][2] == {"n": 5, "annotations": {"audit.k8s.io/truncated": "true"}}
    assert lost(metrics) == {"truncate": 1}

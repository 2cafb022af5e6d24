"""Work beside the loop: what takes too long is started over there, and its outcome is the same."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from typing import Any

import pytest

from fastapi_core import cel
from fastapi_core.admission.evaluation import RequestAuthorizer, settled
from fastapi_core.authz.base import Attributes, Authorizer, Decision, Verdict
from fastapi_core.cel.admission import base_environment
from fastapi_core.cel.library.authorizer import Check
from fastapi_core.codec.json import DecodeError
from fastapi_core.request import aside
from fastapi_core.request.context import User

SLOW = "object.all(k, object.all(j, j >= 0))"
ENVIRONMENT = base_environment(params=False, authorizer=False, version=(1, 36))


def evaluated(text: str, size: int, threads: list[bool]) -> Any:
    program = cel.compile_expression(text, ENVIRONMENT)
    threads.append(threading.current_thread() is threading.main_thread())
    return program.evaluate({"object": list(range(size))}, cel.Budget())


async def settle(found: Any) -> Any:
    return await found if isinstance(found, Awaitable) else found


async def test_short_work_is_done_at_once() -> None:
    threads: list[bool] = []
    assert aside.patiently(lambda: evaluated(SLOW, 3, threads)) is True
    assert threads == [True]
    assert aside.CLOCK.until == 0


async def test_long_expressions_move_to_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "PATIENCE", 0.001)
    threads: list[bool] = []
    pending = aside.patiently(lambda: evaluated(SLOW, 300, threads))
    assert isinstance(pending, Awaitable)
    assert await pending is True
    assert threads == [True, False]


async def test_the_limit_of_the_cost_is_kept_on_either_side(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[bool] = []
    for patience in (100.0, 0.001):
        monkeypatch.setattr(aside, "PATIENCE", patience)
        with pytest.raises(cel.CostError):
            await settle(aside.patiently(lambda: evaluated(SLOW, 3000, threads)))
    assert threads == [True, True, False]


@pytest.mark.parametrize("text", ["object.map(k, k + 1).size() == 300", "object.exists_one(k, k == 5)", SLOW])
async def test_costs_are_the_same_with_a_clock(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "PATIENCE", 100.0)
    program = cel.compile_expression(text, ENVIRONMENT)

    def cost() -> int:
        budget = cel.Budget()
        assert program.evaluate({"object": list(range(300))}, budget) is True
        return budget.remaining

    assert aside.patiently(cost) == cost()


async def test_large_work_is_not_tried_here() -> None:
    threads: list[bool] = []
    pending = aside.patiently(lambda: evaluated(SLOW, 3, threads), large=True)
    assert isinstance(pending, Awaitable)
    assert await pending is True
    assert threads == [False]


class Loopbound(Authorizer):
    """Answers on the thread of the loop only."""

    def authorize(self, attributes: Attributes) -> Verdict:
        assert threading.current_thread() is threading.main_thread()
        asyncio.get_running_loop()
        return Verdict(Decision.ALLOW, "fine")


async def test_authorizers_are_asked_on_the_loop() -> None:
    authorizer = RequestAuthorizer(Loopbound())
    check = Check(None, "get", resource="pods")
    tries: list[bool] = []

    def attempt() -> str:
        tries.append(aside.CLOCK.beside)
        if len(tries) == 1:
            raise aside.HeavyError
        return authorizer.answer(User("a"), check).reason

    found = settled(authorizer, attempt)
    assert isinstance(found, Awaitable)
    assert await found == "fine"
    assert tries == [False, True, False]


async def test_a_deferred_answer_is_finished_beside_the_loop() -> None:
    where: list[bool] = []

    def make() -> bytes:
        where.append(aside.CLOCK.beside)
        return b"made"

    answer = await aside.Deferred(201, [(b"a", b"b")], make)
    assert (answer.status, answer.headers, answer.body) == (201, [(b"a", b"b")], b"made")
    assert where == [True]


@pytest.mark.parametrize(
    ("body", "json", "yaml"),
    [
        (b"a: 1", None, {"a": 1}),
        (b'{"a": 1}', {"a": 1}, {"a": 1}),
        (b"{a: 1}", DecodeError, {"a": 1}),
        (b"{a: [", DecodeError, DecodeError),
    ],
)
def test_bodies_read_ahead(body: bytes, json: Any, yaml: Any) -> None:
    found = aside._read(body)
    for form, wanted in (("json", json), ("yaml", yaml)):
        if wanted is None:
            assert form not in found
        elif wanted is DecodeError:
            assert isinstance(found[form], DecodeError)
        else:
            assert found[form].tree == wanted  # type: ignore[union-attr]

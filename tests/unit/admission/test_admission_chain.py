"""The chain runs the plugins that care, in order, at once where it can, and counts them."""

from __future__ import annotations

import asyncio

import pytest

from fastapi_core.admission.catalog import OFF, ORDER, enabled
from fastapi_core.admission.chain import AdmissionChain, Attributes, Plugin
from fastapi_core.errors import APIError
from fastapi_core.obs.catalog import Metrics
from fastapi_core.registry.definition import ResourceDefinition
from tests.fixtures.admission import pod, request


class Noting(Plugin):
    def __init__(self, name: str, log: list[str], *, late: bool = False, only: str = "") -> None:
        self.name, self.log, self.late, self.only = name, log, late, only
        self.asked = 0

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        self.asked += 1
        return self.only in ("", definition.plural)

    def admit(self, attributes: Attributes):  # type: ignore[no-untyped-def]
        self.log.append(f"admit {self.name}")
        return asyncio.sleep(0) if self.late else None

    def validate(self, attributes: Attributes):  # type: ignore[no-untyped-def]
        self.log.append(f"validate {self.name}")
        return asyncio.sleep(0) if self.late else None


class Refusing(Plugin):
    name = "Refusing"

    def validate(self, attributes: Attributes) -> None:
        raise APIError("Forbidden", "no")


class Reinvoking(Plugin):
    name = "Reinvoking"

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def admit(self, attributes: Attributes) -> None:
        self.log.append(f"again={attributes.again}")
        attributes.reinvoke = True


def test_plugins_that_answer_at_once_make_no_task() -> None:
    log: list[str] = []
    chain = AdmissionChain([Noting("a", log), Noting("b", log)])
    attributes = request("pods", pod())
    assert chain.admit(attributes) is None
    assert chain.check(attributes) is None
    assert log == ["admit a", "admit b", "validate a", "validate b"]


async def test_order_holds_when_somebody_waits() -> None:
    log: list[str] = []
    chain = AdmissionChain([Noting("a", log), Noting("b", log, late=True), Noting("c", log)])
    await chain.mutate(request("pods", pod()))
    assert log == ["admit a", "admit b", "admit c"]


async def test_a_plugin_is_asked_once_what_it_handles() -> None:
    log: list[str] = []
    plugin = Noting("a", log, only="pods")
    chain = AdmissionChain([plugin])
    for _ in range(3):
        await chain.mutate(request("pods", pod()))
        await chain.mutate(request("configmaps", {"metadata": {}}))
    assert (log, plugin.asked) == (["admit a"] * 3, 2)
    chain.refresh()
    await chain.mutate(request("pods", pod()))
    assert plugin.asked == 3


@pytest.mark.parametrize("late", [False, True])
async def test_mutation_runs_once_more_when_asked(late: bool) -> None:
    log: list[str] = []
    chain = AdmissionChain([Noting("a", log, late=late), Reinvoking(log)])
    await chain.mutate(request("pods", pod()))
    assert log == ["admit a", "again=False", "admit a", "again=True"]


async def test_what_was_done_is_taken_back_in_reverse() -> None:
    log: list[str] = []
    attributes = request("pods", pod())

    def broken() -> None:
        raise APIError("InternalError", "no")

    attributes.undo = [lambda: log.append("first"), broken, lambda: log.append("second")]
    await AdmissionChain([]).revert(attributes)
    await AdmissionChain([]).revert(attributes)
    assert log == ["second", "first"]


async def test_runs_are_counted_by_plugin_and_phase() -> None:
    metrics = Metrics()
    log: list[str] = []
    chain = AdmissionChain([Noting("quick", log), Noting("slow", log, late=True, only="secrets"), Refusing()], metrics)
    for _ in range(2):
        await chain.mutate(request("pods", pod()))
    await chain.mutate(request("secrets", {"metadata": {}}))
    with pytest.raises(APIError):
        await chain.validate(request("pods", pod()))
    text = metrics.registry.expose().decode()
    plugin, step = "apiserver_admission_controller_admission_duration_seconds_count", "apiserver_admission_step"
    assert f'{plugin}{{name="quick",operation="CREATE",rejected="false",type="admit"}} 3' in text
    assert f'{plugin}{{name="slow",operation="CREATE",rejected="false",type="admit"}} 1' in text
    assert f'{plugin}{{name="Refusing",operation="CREATE",rejected="true",type="validate"}} 1' in text
    assert f'{step}_admission_duration_seconds_count{{operation="CREATE",rejected="false",type="admit"}} 3' in text
    assert f'{step}_admission_duration_seconds_count{{operation="CREATE",rejected="true",type="validate"}} 1' in text


def test_annotations_of_the_request_are_kept_once() -> None:
    attributes = request("pods", pod())
    assert attributes.context.annotations is None
    attributes.annotate("k", "first")
    attributes.annotate("k", "second")
    assert attributes.context.annotations == {"k": "first"}


def test_flags_choose_among_the_plugins_and_not_their_order() -> None:
    default = enabled((), ())
    assert set(default) == set(ORDER) - OFF
    chosen = enabled(("AlwaysDeny", "NodeRestriction"), ("PodSecurity", "Priority"))
    assert [name for name in ORDER if name in chosen] == list(chosen)
    assert {"AlwaysDeny", "NodeRestriction"} <= set(chosen)
    assert not {"PodSecurity", "Priority"} & set(chosen)


async def test_a_refusal_takes_back_what_came_before() -> None:
    log: list[str] = []

    class Taking(Plugin):
        name = "Taking"

        async def take(self, attributes: Attributes) -> None:
            attributes.undo = [lambda: log.append("given back")]

        def validate(self, attributes: Attributes):  # type: ignore[no-untyped-def]
            return self.take(attributes)

    with pytest.raises(APIError):
        await AdmissionChain([Taking(), Refusing()]).validate(request("pods", pod()))
    assert log == ["given back"]

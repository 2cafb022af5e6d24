"""The objects of flow control over a store in memory: kept, followed, told about."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from fastapi_core.apis.resources import builtin
from fastapi_core.controlplane import flowcontrol
from fastapi_core.controlplane.flow_objects import LEVELS, SCHEMAS, ensure
from fastapi_core.controlplane.flowcontrol import FlowControl
from fastapi_core.flow.control import Control
from fastapi_core.flow.rules import Digest
from fastapi_core.obs.metrics import Registry
from fastapi_core.registry.fields import extractor
from fastapi_core.registry.store import ResourceStore
from fastapi_core.request.context import User
from fastapi_core.storage.cacher.cacher import Cacher
from fastapi_core.storage.memory import MemoryStorage

GET_POD = Digest("get", "", "pods", "", "default", "", True)
ALICE = User("alice", groups=("system:authenticated",))


class World:
    """A store with the two resources, and flow control over it."""

    def __init__(self) -> None:
        self.storage = MemoryStorage()
        self.cacher = Cacher(self.storage)
        definitions = [d for d in builtin() if d.key_prefix in (LEVELS, SCHEMAS)]
        self.stores = {
            d.key_prefix: ResourceStore(d, self.storage, self.cacher.resource(d.key_prefix, extractor(d, None)))
            for d in definitions
        }
        self.resources: Any = SimpleNamespace(stores=self.stores, definitions=definitions)
        self.flow: FlowControl

    async def open(self) -> None:
        await self.storage.open()
        await self.cacher.open()
        self.flow = FlowControl(Control(600, Registry()), self.resources)

    async def close(self) -> None:
        await self.flow.stop()
        await self.cacher.close()
        await self.storage.close()

    async def ensure(self) -> None:
        await ensure(self.stores)

    def tree(self, prefix: str, name: str) -> dict[str, Any]:
        return self.stores[prefix].get("", name).tree()

    async def change(self, prefix: str, name: str, **members: Any) -> None:
        store = self.stores[prefix]
        tree = store.get("", name).tree()
        for member, value in members.items():
            tree[member] = {**tree.get(member, {}), **value}
        await store.update(store.get("", name), tree)

    async def delete(self, prefix: str, name: str) -> None:
        await self.stores[prefix].delete(self.stores[prefix].get("", name))

    def condition(self, name: str) -> tuple[str, str] | None:
        conditions = (self.tree(SCHEMAS, name).get("status") or {}).get("conditions") or ()
        return next(((c["status"], c["reason"]) for c in conditions if c["type"] == "Dangling"), None)

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(10):
            while not condition():
                await asyncio.sleep(0.001)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    await made.open()
    yield made
    await made.close()


async def test_a_second_start_writes_nothing(world: World) -> None:
    await world.ensure()
    assert len(world.stores[SCHEMAS].cache.list().objects) == 11
    assert len(world.stores[LEVELS].cache.list().objects) == 8
    revision = world.cacher.revision
    await world.ensure()
    assert world.cacher.revision == revision
    entry = world.tree(SCHEMAS, "probes")["metadata"]["managedFields"][0]
    assert (entry["manager"], entry["operation"]) == ("api-priority-and-fairness-config-producer-v1", "Update")


async def test_what_users_do_to_them(world: World) -> None:
    await world.ensure()
    mine = {"apf.kubernetes.io/autoupdate-spec": "false"}
    probes = world.tree(SCHEMAS, "probes")["metadata"]
    await world.change(SCHEMAS, "probes", spec={"matchingPrecedence": 50}, metadata={**probes, "annotations": mine})
    await world.change(SCHEMAS, "global-default", spec={"matchingPrecedence": 50})
    await world.delete(LEVELS, "catch-all")
    await world.delete(SCHEMAS, "exempt")
    await world.ensure()
    assert world.tree(SCHEMAS, "probes")["spec"]["matchingPrecedence"] == 50
    assert world.tree(SCHEMAS, "global-default")["spec"]["matchingPrecedence"] == 9900
    assert world.tree(LEVELS, "catch-all")["spec"]["limited"]["nominalConcurrencyShares"] == 5
    assert world.tree(SCHEMAS, "exempt")["spec"]["matchingPrecedence"] == 1


async def test_left_overs_are_removed(world: World) -> None:
    await world.ensure()
    store = world.stores[SCHEMAS]
    for name, annotation in (("old", "true"), ("users", "false")):
        tree = world.tree(SCHEMAS, "probes")
        tree["metadata"] = {
            "name": name, "uid": name, "annotations": {"apf.kubernetes.io/autoupdate-spec": annotation},
        }  # fmt: skip
        await store.create(tree)
    await world.ensure()
    names = {obj.name for obj in store.cache.list().objects}
    assert "old" not in names
    assert "users" in names


async def test_a_change_holds_at_once(world: World) -> None:
    await world.ensure()
    await world.flow.consume()
    control = world.flow.control
    assert control.classify(ALICE, GET_POD).schema.name == "global-default"
    generation = control.generation
    await world.delete(SCHEMAS, "global-default")
    assert control.generation > generation
    assert control.classify(ALICE, GET_POD).schema.name == "catch-all"


async def test_what_is_found_at_the_start_is_in_force(world: World) -> None:
    await world.ensure()
    again = FlowControl(Control(600, Registry()), world.resources)
    assert again.control.classify(ALICE, GET_POD).level.spec.name == "global-default"
    await again.stop()


async def test_schemas_are_told_whether_their_level_exists(world: World) -> None:
    await world.ensure()
    await world.flow.consume()
    names = [obj.name for obj in world.stores[SCHEMAS].cache.list().objects]
    await world.until(lambda: all(world.condition(name) == ("False", "Found") for name in names))
    status = world.tree(SCHEMAS, "probes")
    managers = {(e["manager"], e["operation"], e.get("subresource")) for e in status["metadata"]["managedFields"]}
    assert ("api-priority-and-fairness-config-consumer-v1", "Apply", "status") in managers
    await world.delete(LEVELS, "global-default")
    await world.until(lambda: world.condition("global-default") == ("True", "NotFound"))
    (condition,) = world.tree(SCHEMAS, "global-default")["status"]["conditions"]
    assert condition["message"] == (
        'This FlowSchema references the PriorityLevelConfiguration object named "global-default" '
        "but there is no such object"
    )
    generation = world.flow.control.generation
    await world.ensure()
    await world.until(lambda: world.condition("global-default") == ("False", "Found"))
    # The level is one change of the configuration, what is written into status is none.
    assert world.flow.control.generation == generation + 1


async def test_servers_that_disagree_do_not_write_for_ever(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flowcontrol, "_LATER", 3600.0)
    await world.ensure()
    await world.flow.consume()
    await world.until(lambda: world.condition("probes") is not None)
    for _ in range(20):
        await world.change(SCHEMAS, "probes", status={"conditions": []})
        for _ in range(20):
            await asyncio.sleep(0)
    assert world.condition("probes") is None
    assert len(world.flow._written["probes"]) == 6


async def test_a_broken_level_is_left_out(world: World) -> None:
    await world.ensure()
    await world.flow.consume()
    await world.change(LEVELS, "global-default", spec={"limited": None})
    assert "global-default" not in world.flow.control.levels
    assert world.flow.control.classify(ALICE, GET_POD).level.spec.name == "catch-all"

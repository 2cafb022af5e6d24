"""Registration, availability and documents over real stores: objects in, conditions and documents out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import orjson
import pytest

from fastapi_core.aggregation.availability import ATTEMPTS, Availability, Finding, Policy, with_finding
from fastapi_core.aggregation.directory import APISERVICES, Directory, condition
from fastapi_core.aggregation.discovery import DiscoveryView
from fastapi_core.aggregation.published import Published
from fastapi_core.aggregation.registration import LABEL, Registrations
from fastapi_core.apis.resources import builtin
from fastapi_core.discovery.documents import DiscoveryDocuments
from fastapi_core.discovery.live import LiveDocuments
from fastapi_core.http.asking import Whole
from fastapi_core.http.client import Target, UpstreamError
from fastapi_core.obs.catalog import Metrics
from fastapi_core.registry.services import ENDPOINTS, SERVICES, SLICES, Resolver, Services, Way
from fastapi_core.registry.store import ResourceStore, retrying
from fastapi_core.storage.cacher.cacher import Cacher
from fastapi_core.storage.memory import MemoryStorage

Tree = dict[str, Any]
ACCEPTED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Fetcher:
    """Answers by (host, path) what it is told to, and counts."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, str, str]] = []

    async def get(self, target: Target, path: str, user: Any, headers: Any = (), **more: Any) -> Whole:
        self.asked.append((target.host, path, user.name))
        found = self.answers.get(path, 404)
        if isinstance(found, Exception):
            raise found
        if isinstance(found, int):
            return Whole(found, (), b"")
        kind = ACCEPTED if path == "/apis" else "application/json"
        body = found if isinstance(found, bytes) else orjson.dumps(found)
        return Whole(200, ((b"content-type", kind.encode()),), body)


class Plain:
    def target(self, service: Any, place: tuple[str, int]) -> Target:
        return Target(*place)


class World:
    """Stores in memory, and everything that follows them."""

    def __init__(self, stores: dict[str, ResourceStore], policy: Policy | None = None) -> None:
        self.stores = stores
        self.metrics = Metrics()
        self.fetcher = Fetcher()
        self.directory = Directory(stores[APISERVICES])
        self.services = Services(stores)
        self.services.own_port = lambda: 1
        self.resolver = Resolver(self.services, Way.CLUSTER)
        self.registrations = Registrations(stores[APISERVICES], self.directory)
        plain, fetcher = cast("Any", Plain()), cast("Any", self.fetcher)
        self.availability = Availability(
            self.directory, self.resolver, plain, fetcher, self.write, self.metrics, policy
        )  # fmt: skip
        self.published = Published(self.directory, self.resolver, plain, fetcher)
        self.availability.on_check(lambda service, passed: self.checks.append((service.name, passed)))
        self.checks: list[tuple[str, bool]] = []

    async def write(self, name: str, tree: Tree) -> None:
        store = self.stores[APISERVICES]

        async def attempt(current: Any) -> None:
            await store.update(current, {**current.tree(), "status": tree["status"]})

        await retrying(store, "", name, attempt)

    async def put(self, prefix: str, tree: Tree) -> None:
        await self.stores[prefix].create(tree)

    async def service(self, name: str, port: int = 443, **spec: Any) -> None:
        made = spec or {"type": "ExternalName", "externalName": "host"}
        await self.put(SERVICES, {"metadata": {"name": name, "namespace": "n"}, "spec": made})

    async def register(self, group: str, *, service: str = "s", **spec: Any) -> None:
        tree = {"group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10, **spec}
        tree["service"] = {"namespace": "n", "name": service, "port": 443}
        await self.put(APISERVICES, {"metadata": {"name": f"v1.{group}", "uid": group}, "spec": tree})

    def object(self, name: str) -> Tree | None:
        found = self.stores[APISERVICES].cache.get(APISERVICES + name)
        return None if found is None else found.tree()

    def reason(self, name: str) -> str:
        return ((condition(self.object(name) or {}) or {}).get("reason")) or ""


async def until(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0.005)


Make = Callable[..., Awaitable[World]]


@pytest.fixture
async def world() -> AsyncIterator[Make]:
    made: list[World] = []
    storage = MemoryStorage()
    await storage.open()
    cacher = Cacher(storage)
    definitions = {d.key_prefix: d for d in builtin() if d.key_prefix in (APISERVICES, SERVICES, SLICES, ENDPOINTS)}
    stores = {p: ResourceStore(d, storage, cacher.resource(p)) for p, d in definitions.items()}
    await cacher.open()

    async def make(policy: Policy | None = None) -> World:
        new = World(stores, policy)
        new.services.open()
        await new.directory.open()
        new.availability.start()
        new.published.start()
        made.append(new)
        return new

    yield make
    for one in made:
        await one.availability.stop()
        await one.published.stop()
        await one.registrations.stop()
        one.directory.close()
        one.services.close()
    await cacher.close()
    await storage.close()


async def test_conditions_follow_service_endpoints_and_backend(world: Make) -> None:
    made = await world()
    made.fetcher.answers["/apis/a.test/v1"] = {}
    await made.register("a.test")
    await until(lambda: made.reason("v1.a.test") == "ServiceNotFound")
    await made.service("s", clusterIP="10.0.0.9", ports=[{"port": 80}])
    await until(lambda: made.reason("v1.a.test") == "ServicePortError")
    store = made.stores[SERVICES]

    async def port(current: Any) -> None:
        tree = current.tree()
        await store.update(current, {**tree, "spec": {**tree["spec"], "ports": [{"port": 443, "name": "w"}]}})

    await retrying(store, "n", "s", port)
    await until(lambda: made.reason("v1.a.test") == "EndpointsNotFound")
    labels = {"kubernetes.io/service-name": "s"}
    piece = {
        "metadata": {"name": "p", "namespace": "n", "labels": labels},
        "addressType": "IPv4",
        "ports": [{"name": "w", "port": 1}],
    }
    await made.put(SLICES, {**piece, "endpoints": [{"addresses": ["10.1.1.1"], "conditions": {"ready": False}}]})
    await until(lambda: made.reason("v1.a.test") == "MissingEndpoints")
    await made.put(
        SLICES, {**piece, "metadata": {**piece["metadata"], "name": "q"}, "endpoints": [{"addresses": ["10.1.1.2"]}]}
    )  # type: ignore[dict-item]
    await until(lambda: made.reason("v1.a.test") == "Passed")
    assert made.fetcher.asked[0][0] == "10.0.0.9"
    assert made.directory.services["v1.a.test"].available
    lines = made.metrics.registry.expose().decode()
    assert 'aggregator_unavailable_apiservice{name="v1.a.test"} 0' in lines
    assert 'aggregator_unavailable_apiservice_total{name="v1.a.test",reason="MissingEndpoints"} 1' in lines


async def test_a_failed_probe_is_asked_again_and_the_first_success_counts(world: Make) -> None:
    made = await world()
    await made.service("s")
    made.fetcher.answers["/apis/b.test/v1"] = UpstreamError("connection refused")
    await made.register("b.test")
    await until(lambda: made.reason("v1.b.test") == "FailedDiscoveryCheck")
    text = (condition(made.object("v1.b.test") or {}) or {})["message"]
    assert text.startswith("failing or missing response from https://host:443/apis/b.test/v1: ")
    made.fetcher.answers["/apis/b.test/v1"] = 302
    made.fetcher.answers["/apis/b.test/v1"] = {}
    await until(lambda: made.reason("v1.b.test") == "Passed")
    assert ("v1.b.test", True) in made.checks


async def test_thresholds_hold_a_change_back(world: Make) -> None:
    made = await world(Policy("/healthz", period=0.01, failures=3))
    await made.service("s")
    made.fetcher.answers["/healthz"] = {}
    await made.register("c.test")
    await until(lambda: made.reason("v1.c.test") == "Passed")
    made.fetcher.answers["/healthz"] = 500
    before = len(made.fetcher.asked)
    await until(lambda: made.reason("v1.c.test") == "FailedDiscoveryCheck")
    assert len(made.fetcher.asked) - before >= 3 * ATTEMPTS, "one or two failures change nothing"


def test_the_transition_moves_with_the_status_only() -> None:
    tree: Tree = {
        "status": {
            "conditions": [
                {"type": "X"},
                {"type": "Available", "status": "False", "reason": "A", "message": "", "lastTransitionTime": "t0"},
            ]
        }
    }
    new = with_finding(tree, Finding("False", "B", "m"))
    assert new is not None
    assert new["conditions"][1]["lastTransitionTime"] == "t0"
    assert new["conditions"][0] == {"type": "X"}
    assert with_finding({"status": new}, Finding("False", "B", "m")) is None
    other = with_finding({"status": new}, Finding("True", "B", "m"))
    assert other is not None
    assert other["conditions"][1]["lastTransitionTime"] != "t0"


async def test_registered_ones_are_kept_as_their_label_says(world: Make) -> None:
    made = await world()
    store = made.stores[APISERVICES]
    stray = {"group": "old.test", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
    await made.put(APISERVICES, {"metadata": {"name": "v1.old.test", "labels": {LABEL: "true"}}, "spec": stray})
    made.registrations.builtin({"": ("v1",), "apps": ("v1",), "apiregistration.k8s.io": ("v1",)})
    made.registrations.register_local("cr.test", "v1")
    assert made.registrations.missing() == ["v1.", "v1.apps", "v1.cr.test"]
    await made.registrations.start()
    assert made.registrations.missing() == []
    assert made.object("v1.old.test") is None
    assert made.object("v1.apiregistration.k8s.io") is None
    core = made.object("v1.")
    assert core is not None
    assert core["spec"] == {"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1}
    assert core["metadata"]["labels"] == {LABEL: "onstart"}
    assert made.reason("v1.") == "Local"
    for name in ("v1.cr.test", "v1.apps"):
        await store.delete(store.get("", name))
    await until(lambda: made.object("v1.cr.test"))
    assert made.object("v1.apps") is None, "made once"
    made.registrations.withdraw_local("cr.test", "v1")
    await until(lambda: made.object("v1.cr.test") is None)


async def test_documents_are_joined_and_kept_when_a_backend_goes(world: Make) -> None:
    made = await world()
    definitions = builtin()
    live = LiveDocuments(DiscoveryDocuments(definitions), definitions)
    view = DiscoveryView(live, made.directory, made.published)

    def versions(group: str) -> dict[str, Any]:
        items = view(live).aggregated_groups.tree["items"]
        return {v["version"]: v for item in items if item["metadata"]["name"] == group for v in item["versions"]}

    thing = {
        "resource": "things",
        "scope": "Namespaced",
        "singularResource": "thing",
        "verbs": ["get"],
        "responseKind": {"group": "d.test", "version": "v1", "kind": "Thing"},
    }
    made.fetcher.answers["/apis/d.test/v1"] = {}
    made.fetcher.answers["/apis"] = {
        "items": [{"metadata": {"name": "d.test"}, "versions": [{"version": "v1", "resources": [thing]}]}]
    }
    await made.service("s")
    await made.register("d.test")
    await until(lambda: versions("d.test").get("v1", {}).get("freshness") == "Current")
    assert versions("d.test")["v1"]["resources"] == [thing]
    assert [g["name"] for g in view(live).group_list.tree["groups"]] == ["apiregistration.k8s.io", "d.test"]
    store = made.stores[SERVICES]
    await store.delete(store.get("n", "s"))
    await until(lambda: versions("d.test")["v1"]["freshness"] == "Stale")
    assert versions("d.test")["v1"]["resources"] == [thing], "what was known stays"
    # A liar: nothing of it gets in, nobody else is touched.
    made.fetcher.answers["/apis"] = b'{"items": 7}'
    made.fetcher.answers["/apis/e.test/v1"] = {"resources": "x"}
    await made.service("t")
    await made.register("e.test", service="t")
    await until(lambda: made.reason("v1.e.test") == "Passed")
    await until(lambda: ("host", "/apis", "system:kube-aggregator") in made.fetcher.asked[-4:])
    assert versions("e.test")["v1"] == {"version": "v1", "freshness": "Stale"}
    assert "v1" in versions("apps")
    store = made.stores[APISERVICES]
    await store.delete(store.get("", "v1.d.test"))
    await until(lambda: not versions("d.test"))
    assert view(live).group("d.test") is None


async def test_what_is_about_to_be_registered_is_listed_and_forgotten(world: Make) -> None:
    made = await world()
    directory = made.directory
    told: list[object] = []
    directory.listen(lambda before, now: told.append((before, now)))
    before = directory.generation
    directory.expect("soon.test", "v1", 1000, 100)
    assert [service.version for service in directory.group("soon.test")] == ["v1"]
    assert directory.generation > before
    directory.forget("soon.test", "v1")
    assert "soon.test" not in directory.groups
    assert told == []
    made.registrations.settle("soon.test", {"v1"}, set())
    await made.registrations.start()
    await until(lambda: "v1.soon.test" in directory.services)
    made.registrations.settle("soon.test", set(), {"v1"})
    assert "soon.test" not in directory.groups
    made.registrations.settle("soon.test", {"v1"}, set())
    assert "soon.test" in directory.groups
    made.registrations.settle("soon.test", set(), {"v1"})
    await until(lambda: made.object("v1.soon.test") is None)
    assert "soon.test" not in directory.groups
    await made.registrations.stop()

"""Where Services lead, in each of the ways, and that a change counts from the next question on."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.registry.services import ServiceError, Way
from tests.fixtures.admission import World
from tests.fixtures.webhooks import resolver

Tree = dict[str, Any]
PORTS = [{"name": "https", "port": 443, "targetPort": 8443}, {"name": "other", "port": 80}]


async def slice_of(world: World, service: str, number: int, ready: list[str], unready: tuple[str, ...] = ()) -> Tree:
    endpoints: list[Tree] = [{"addresses": [host], "conditions": {"ready": True}} for host in ready]
    endpoints += [{"addresses": [host], "conditions": {"ready": False}} for host in unready]
    return await world.add(
        "endpointslices", f"{service}-{number}", "ns", group="discovery.k8s.io",
        labels={"kubernetes.io/service-name": service}, addressType="IPv4",
        ports=[{"name": "https", "port": 8444}], endpoints=endpoints,
    )  # fmt: skip


async def test_ready_endpoints_before_the_cluster_address(world: World) -> None:
    known = resolver(world)
    await world.add("services", "s", "ns", spec={"clusterIP": "10.0.0.7", "ports": PORTS})
    assert known.places("ns", "s", 443) == [("10.0.0.7", 443)]
    subset = {
        "addresses": [{"ip": "10.1.0.1"}],
        "notReadyAddresses": [{"ip": "10.1.0.9"}],
        "ports": [{"name": "https", "port": 8443}],
    }
    await world.add("endpoints", "s", "ns", subsets=[subset])
    assert known.places("ns", "s", 443) == [("10.1.0.1", 8443)]
    await slice_of(world, "s", 1, ["10.1.0.2"], unready=("10.1.0.3",))
    assert known.places("ns", "s", 443) == [("10.1.0.2", 8444)]
    assert known.places("ns", "s", 80) == [("10.0.0.7", 80)]


async def test_the_ways_differ(world: World) -> None:
    cluster, endpoints = resolver(world, Way.CLUSTER), resolver(world, Way.ENDPOINTS)
    await world.add("services", "s", "ns", spec={"clusterIP": "10.0.0.7", "ports": PORTS})
    with pytest.raises(ServiceError, match='no endpoints available for service "s"'):
        endpoints.places("ns", "s", 443)
    await slice_of(world, "s", 1, ["10.1.0.2"])
    assert endpoints.places("ns", "s", 443) == [("10.1.0.2", 8444)]
    assert cluster.places("ns", "s", 443) == [("10.0.0.7", 443)]


async def test_requests_are_spread_over_all_endpoints(world: World) -> None:
    known = resolver(world, Way.ENDPOINTS)
    await world.add("services", "s", "ns", spec={"clusterIP": "10.0.0.7", "ports": PORTS})
    hosts = [f"10.1.0.{number}" for number in range(8)]
    await slice_of(world, "s", 1, hosts[:5])
    await slice_of(world, "s", 2, hosts[5:])
    asked = [known.places("ns", "s", 443) for _ in range(400)]
    assert {places[0][0] for places in asked} == set(hosts)
    assert all(len(set(places)) == 3 for places in asked)


async def test_a_change_counts_at_once_and_is_told(world: World) -> None:
    known = resolver(world, Way.ENDPOINTS)
    told: list[tuple[str, str]] = []
    known.services.listen(lambda namespace, name: told.append((namespace, name)))
    service = await world.add("services", "s", "ns", spec={"clusterIP": "10.0.0.7", "ports": PORTS})
    await world.add("services", "t", "ns", spec={"clusterIP": "10.0.0.8", "ports": PORTS})
    tree = await slice_of(world, "s", 1, ["10.1.0.1"])
    assert known.places("ns", "s", 443) == [("10.1.0.1", 8444)]
    assert told == [("ns", "s")], "of what was there already"
    tree["endpoints"][0]["addresses"] = ["10.1.0.2"]
    tree = await world.change("endpointslices", tree, "discovery.k8s.io")
    assert known.places("ns", "s", 443) == [("10.1.0.2", 8444)]
    tree["metadata"]["labels"]["kubernetes.io/service-name"] = "t"
    await world.change("endpointslices", tree, "discovery.k8s.io")
    assert known.places("ns", "t", 443) == [("10.1.0.2", 8444)]
    with pytest.raises(ServiceError):
        known.places("ns", "s", 443)
    service["spec"] = {"type": "ExternalName", "externalName": "h.example.test"}
    await world.change("services", service)
    assert known.places("ns", "s", 443) == [("h.example.test", 443)]
    assert set(told) == {("ns", "s"), ("ns", "t")}
    store = world.store("endpointslices", "discovery.k8s.io")
    await store.delete(store.get("ns", "s-1"))
    with pytest.raises(ServiceError):
        known.places("ns", "t", 443)
    known.services.close()


async def test_services_that_lead_nowhere(world: World) -> None:
    known = resolver(world)
    await world.add("services", "out", "ns", spec={"type": "ExternalName", "externalName": "h.example.test"})
    assert known.places("ns", "out", 9443) == [("h.example.test", 9443)]
    await world.add("services", "headless", "ns", spec={"clusterIP": "None", "ports": [{"port": 443}]})
    await world.add("services", "odd", "ns", spec={"type": "Odd"})
    for name, port, text in (
        ("none", 443, 'service "none" not found'),
        ("headless", 443, 'no endpoints available for service "headless"'),
        ("headless", 80, 'no service port 80 found for service "headless"'),
        ("odd", 443, 'unsupported service type "Odd"'),
    ):
        with pytest.raises(ServiceError, match=text):
            known.places("ns", name, port)


async def test_this_server_is_a_service_too(world: World) -> None:
    known = resolver(world, Way.ENDPOINTS)
    known.services.own_port = lambda: 6443
    assert known.places("default", "kubernetes", 443) == [("127.0.0.1", 6443)]

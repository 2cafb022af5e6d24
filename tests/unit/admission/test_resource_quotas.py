"""ResourceQuota: what is counted, what is refused, and that nothing is counted twice or lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.admission.amounts import amounts, texts
from fastapi_core.admission.chain import AdmissionChain
from fastapi_core.admission.quota import scopes
from fastapi_core.admission.quota.check import Limited
from fastapi_core.admission.quota.plugin import ResourceQuota
from fastapi_core.admission.quota.usage import Evaluator, evaluator
from fastapi_core.errors import APIError
from fastapi_core.registry.store import ResourceStore
from tests.fixtures.admission import World, handled, pod, request, validate

Tree = dict[str, Any]


async def quota(world: World, name: str = "q", used: Tree | None = None, spec: Tree | None = None, **hard: str) -> None:
    limits = {key.replace("__", ".").replace("_", "/"): value for key, value in hard.items()}
    status = {"hard": limits, "used": dict.fromkeys(limits, "0") if used is None else used}
    await world.add("resourcequotas", name, "ns", spec={"hard": limits, **(spec or {})}, status=status)


def used(world: World, name: str = "q") -> Tree:
    tree = world.store("resourcequotas").get("ns", name).tree()
    return dict(tree["status"]["used"])


def plugin(world: World, *limited: Limited) -> ResourceQuota:
    return ResourceQuota(world.see("resourcequotas"), limited)


async def refused(chosen: ResourceQuota, *arguments: Any, **more: Any) -> str:
    with pytest.raises(APIError) as raised:
        await validate(chosen, request(*arguments, **more))
    assert raised.value.code == 403
    return raised.value.message.partition(" is forbidden: ")[2]


def computing(cpu: str, name: str = "c") -> Tree:
    return {"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}}


async def test_objects_are_counted_by_both_names(world: World) -> None:
    await quota(world, configmaps="5", count_configmaps="2")
    await quota(world, "other", count_leases__coordination__k8s__io="1")
    chosen = plugin(world)
    for _ in range(2):
        await validate(chosen, request("configmaps", {"metadata": {}}))
    text = await refused(chosen, "configmaps", {"metadata": {}})
    assert text == (
        "exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=2, limited: count/configmaps=2"
    )
    assert used(world) == {"configmaps": "2", "count/configmaps": "2"}
    await validate(chosen, request("leases", {"metadata": {}}, group="coordination.k8s.io"))
    assert used(world, "other") == {"count/leases.coordination.k8s.io": "1"}
    await validate(chosen, request("secrets", {"metadata": {}}))
    await validate(chosen, request("configmaps", {"metadata": {}}, namespace="elsewhere"))


async def test_a_dry_run_is_judged_and_not_counted(world: World) -> None:
    await quota(world, configmaps="1")
    chosen = plugin(world)
    await validate(chosen, request("configmaps", {"metadata": {}}, dry_run=True))
    assert used(world) == {"configmaps": "0"}
    await validate(chosen, request("configmaps", {"metadata": {}}))
    assert "exceeded quota" in await refused(chosen, "configmaps", {"metadata": {}}, dry_run=True)


async def test_what_pods_compute_with(world: World) -> None:
    await quota(world, requests__cpu="1", pods="9", **{"requests.example.com/gpu": "1"})
    chosen = plugin(world)
    gpu = {"name": "g", "image": "i", "resources": {"requests": {"cpu": "1m", "example.com/gpu": "1"}}}
    await validate(chosen, request("pods", pod(containers=[computing("400m"), gpu])))
    assert used(world) == {"pods": "1", "requests.cpu": "401m", "requests.example.com/gpu": "1"}
    text = await refused(chosen, "pods", pod(containers=[computing("600m")]))
    assert text == "exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=401m, limited: requests.cpu=1"
    text = await refused(chosen, "pods", pod(initContainers=[computing("1m", "i")]))
    assert text == "failed quota: q: must specify requests.cpu for: c"
    whole = pod(resources={"requests": {"cpu": "100m"}})
    await validate(chosen, request("pods", whole))
    old, new = pod(containers=[computing("100m")]), pod(containers=[computing("300m")])
    for tree in (old, new):
        tree["metadata"]["resourceVersion"] = "1"
    await validate(chosen, request("pods", new, operation="UPDATE", subresource="resize", old=old))
    assert used(world)["requests.cpu"] == "701m"
    assert not handled(chosen, request("pods", new, operation="UPDATE", old=old))


async def test_finished_pods_use_no_computing() -> None:
    counted = evaluator("", "pods")
    done = {**pod(containers=[computing("1")]), "status": {"phase": "Succeeded"}}
    assert texts(counted.usage(done)) == {"count/pods": "1"}
    late = pod()
    late["metadata"] |= {"deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    assert texts(counted.usage(late)) == {"count/pods": "1"}


async def test_services_and_claims(world: World) -> None:
    gold = "gold.storageclass.storage.k8s.io/requests.storage"
    await quota(world, services__nodeports="3", services__loadbalancers="1", **{gold: "3Gi"})
    chosen = plugin(world)

    def service(kind: str, ports: int = 2, **spec: Any) -> Tree:
        listed = [{"port": number} for number in range(1, ports + 1)]
        return {"metadata": {"name": "x", "resourceVersion": "1"}, "spec": {"type": kind, "ports": listed, **spec}}

    await validate(chosen, request("services", service("LoadBalancer", allocateLoadBalancerNodePorts=False)))
    await validate(chosen, request("services", service("NodePort")))
    assert used(world) == {gold: "0", "services.loadbalancers": "1", "services.nodeports": "2"}
    update = {"operation": "UPDATE", "old": service("NodePort", 2)}
    await validate(chosen, request("services", service("NodePort", 3), **update))
    text = await refused(chosen, "services", service("NodePort", 4), **update)
    assert text.startswith("exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=3")

    def claim(size: str, name: str = "gold") -> Tree:
        spec = {"storageClassName": name, "resources": {"requests": {"storage": size}}}
        return {"metadata": {"name": "x", "resourceVersion": "1"}, "spec": spec}

    await validate(chosen, request("persistentvolumeclaims", claim("2Gi")))
    await validate(chosen, request("persistentvolumeclaims", claim("9Gi", "silver")))
    grown = {"operation": "UPDATE", "old": claim("2Gi")}
    await validate(chosen, request("persistentvolumeclaims", claim("3Gi"), **grown))
    assert used(world)[gold] == "3Gi"
    assert "exceeded quota" in await refused(chosen, "persistentvolumeclaims", claim("5Gi"), **grown)


async def test_claims_for_devices() -> None:
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "gpu", "count": 2}},
        {"name": "b", "exactly": {"deviceClassName": "nic", "allocationMode": "All"}},
        {
            "name": "c",
            "firstAvailable": [{"deviceClassName": "gpu", "count": 3}, {"deviceClassName": "gpu", "count": 1}],
        },
    ]
    tree = {"metadata": {}, "spec": {"devices": {"requests": requests}}}
    assert texts(evaluator("resource.k8s.io", "resourceclaims").usage(tree)) == {
        "count/resourceclaims.resource.k8s.io": "1",
        "gpu.deviceclass.resource.k8s.io/devices": "5",
        "nic.deviceclass.resource.k8s.io/devices": "32",
    }


def scoped(name: str, operator: str = "Exists", *values: str) -> Tree:
    return {"scopeName": name, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("selector", "tree", "inside"),
    [
        (scoped("Terminating"), pod(activeDeadlineSeconds=0), True),
        (scoped("Terminating"), pod(), False),
        (scoped("NotTerminating"), pod(), True),
        (scoped("BestEffort"), pod(), True),
        (scoped("NotBestEffort"), pod(containers=[computing("1")]), True),
        (scoped("PriorityClass"), pod(), False),
        (scoped("PriorityClass", "In", "a", "b"), pod(priorityClassName="b"), True),
        (scoped("PriorityClass", "NotIn", "a"), pod(priorityClassName="a"), False),
        (scoped("PriorityClass", "NotIn", "a"), pod(), True),
        (scoped("PriorityClass", "DoesNotExist"), pod(), True),
        (scoped("CrossNamespacePodAffinity"), pod(), False),
        (
            scoped("CrossNamespacePodAffinity"),
            pod(
                affinity={
                    "podAntiAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 1, "podAffinityTerm": {"topologyKey": "z", "namespaces": ["other"]}}
                        ]
                    }
                }
            ),
            True,
        ),
    ],
)
def test_scopes_of_pods(selector: Tree, tree: Tree, inside: bool) -> None:
    assert scopes.pod_in_scope(selector, tree) is inside


def test_scopes_of_claims() -> None:
    claim = {"spec": {"volumeAttributesClassName": "new"}, "status": {"currentVolumeAttributesClassName": "old"}}
    assert scopes.claim_in_scope(scoped("VolumeAttributesClass", "In", "old"), claim)
    assert not scopes.claim_in_scope(scoped("VolumeAttributesClass", "In", "none"), claim)
    assert not scopes.claim_in_scope(scoped("PriorityClass"), claim)


async def test_only_quotas_whose_scope_fits_count(world: World) -> None:
    await quota(world, "best", spec={"scopes": ["BestEffort"]}, pods="0")
    selector = {"matchExpressions": [scoped("PriorityClass", "In", "high")]}
    await quota(world, "high", spec={"scopeSelector": selector}, pods="1")
    chosen = plugin(world)
    assert "exceeded quota: best" in await refused(chosen, "pods", pod())
    await validate(chosen, request("pods", pod(containers=[computing("1")])))
    await validate(chosen, request("pods", pod(containers=[computing("1")], priorityClassName="high")))
    assert (used(world, "best"), used(world, "high")) == ({"pods": "0"}, {"pods": "1"})


async def test_usage_nobody_has_counted_yet(world: World) -> None:
    await quota(world, used={}, configmaps="5")
    text = await refused(plugin(world), "configmaps", {"metadata": {}})
    assert text == "status unknown for quota: q, resources: configmaps"


async def test_what_may_be_used_only_under_a_quota(world: World) -> None:
    rule = Limited("", "pods", ("cpu",), (scoped("PriorityClass", "In", "high"),))
    chosen = plugin(world, rule)
    await validate(chosen, request("pods", pod()))
    text = await refused(chosen, "pods", pod(containers=[computing("1")]))
    assert text == "insufficient quota to consume: cpu,requests.cpu"
    with pytest.raises(APIError, match="insufficient quota to match these scopes") as raised:
        await validate(chosen, request("pods", pod(priorityClassName="high")))
    assert raised.value.code == 500
    selector = {"matchExpressions": [scoped("PriorityClass", "In", "high")]}
    await quota(world, "high", spec={"scopeSelector": selector}, pods="9")
    await validate(chosen, request("pods", pod(priorityClassName="high")))


# Races


async def create(chosen: ResourceQuota, number: int) -> str:
    try:
        await validate(chosen, request("configmaps", {"metadata": {"name": f"c-{number}"}}))
    except APIError:
        return "refused"
    return "let in"


async def test_no_more_than_the_quota_at_once(world: World) -> None:
    await quota(world, configmaps="100")
    chosen = plugin(world)
    outcomes = await asyncio.gather(*(create(chosen, number) for number in range(200)))
    assert outcomes.count("let in") == 100
    assert used(world) == {"configmaps": "100"}


async def test_others_who_change_the_quota_meanwhile(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two servers share a store: each reads, the other writes first."""
    await quota(world, "a", configmaps="10")
    await quota(world, "b", configmaps="3")
    store = world.store("resourcequotas")
    plain = ResourceStore.update
    stolen: list[str] = []

    async def update(self: ResourceStore, current: Any, tree: Tree) -> Any:
        if current.name == "b" and len(stolen) < 3:
            stolen.append(current.name)
            other = current.tree()
            other["status"]["used"]["configmaps"] = str(int(other["status"]["used"]["configmaps"]) + 1)
            await plain(self, current, other)
        return await plain(self, current, tree)

    monkeypatch.setattr(ResourceStore, "update", update)
    text = await refused(plugin(world), "configmaps", {"metadata": {}})
    assert text.startswith("exceeded quota: b")
    assert (used(world, "a"), used(world, "b")) == ({"configmaps": "0"}, {"configmaps": "3"})
    assert store is world.store("resourcequotas")


async def test_what_is_not_written_is_given_back(world: World) -> None:
    await quota(world, configmaps="2")
    chosen = plugin(world)
    attributes = request("configmaps", {"metadata": {}})
    await validate(chosen, attributes)
    assert used(world) == {"configmaps": "1"}
    await AdmissionChain([]).revert(attributes)
    assert used(world) == {"configmaps": "0"}


async def test_who_stops_waiting_uses_nothing(world: World) -> None:
    await quota(world, configmaps="2")
    chosen = plugin(world)
    task = asyncio.create_task(validate(chosen, request("configmaps", {"metadata": {}})))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    while chosen._workers:
        await asyncio.sleep(0.001)
    assert used(world) == {"configmaps": "0"}


async def test_usage_is_owned_by_the_server(world: World) -> None:
    await quota(world, configmaps="2")
    store = world.store("resourcequotas")
    tree = store.get("ns", "q").tree()
    tree["metadata"]["managedFields"] = [
        {
            "manager": "m",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {".": {}, "f:hard": {".": {}, "f:configmaps": {}}}},
        }
    ]
    await world.change("resourcequotas", tree)
    await validate(plugin(world), request("configmaps", {"metadata": {}}))
    entries = store.get("ns", "q").tree()["metadata"]["managedFields"]
    assert [(e["manager"], e.get("subresource", "")) for e in entries] == [("m", ""), ("kube-apiserver", "status")]


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=12), st.integers(0, 6))
def test_usage_adds_up(steps: list[tuple[int, bool]], limit: int) -> None:
    """However creates and failures follow each other, what is used is what was let in and kept."""

    async def run() -> None:
        world = World()
        await world.storage.open()
        await world.cacher.open()
        try:
            await quota(world, configmaps=str(limit))
            chosen = plugin(world)
            kept = 0
            for together, keep in steps:
                tried = [request("configmaps", {"metadata": {}}) for _ in range(together)]
                outcomes = await asyncio.gather(*(validate(chosen, a) for a in tried), return_exceptions=True)
                for attributes, outcome in zip(tried, outcomes, strict=True):
                    if outcome is None and keep:
                        kept += 1
                    elif outcome is None:
                        await AdmissionChain([]).revert(attributes)
                assert int(used(world)["configmaps"]) == kept <= limit
        finally:
            await world.cacher.close()
            await world.storage.close()

    asyncio.run(run())


def test_every_resource_can_be_counted() -> None:
    assert Evaluator("example.com", "widgets").names == {"count/widgets.example.com"}
    assert Evaluator("", "secrets").names == {"count/secrets", "secrets"}
    assert amounts({"a": "1"})["a"].value == 1

"""Priority, tolerations, images, topology: what plugins make of pods."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.admission import tolerations
from fastapi_core.admission.plugins.classes import RuntimeClass
from fastapi_core.admission.plugins.namespaced_pods import PodNodeSelector, PodTolerationRestriction, selector_map
from fastapi_core.admission.plugins.nodes import NodeDeclaredFeatureValidator, PodResizeValidator, TaintNodesByCondition
from fastapi_core.admission.plugins.pods import (
    AlwaysPullImages,
    DefaultTolerationSeconds,
    ExtendedResourceToleration,
    LimitPodHardAntiAffinityTopology,
    PodTopologyLabels,
    Priority,
)
from fastapi_core.errors import APIError
from tests.fixtures.admission import World, admit, pod, request, validate

Tree = dict[str, Any]


async def test_priority_comes_from_the_class(world: World) -> None:
    plugin = Priority(world.see("priorityclasses", "scheduling.k8s.io"))
    spec = (await admit(plugin, request("pods", pod())))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    group = {"group": "scheduling.k8s.io"}
    await world.add("priorityclasses", "high", value=10, preemptionPolicy="Never", **group)
    await world.add("priorityclasses", "usual", value=5, globalDefault=True, **group)
    await world.add("priorityclasses", "low", value=3, globalDefault=True, **group)
    spec = (await admit(plugin, request("pods", pod(priorityClassName="high"))))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (10, "Never")
    spec = (await admit(plugin, request("pods", pod())))["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("low", 3)
    for given_, text in (
        ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
        ({"priority": 7}, r"the integer value of priority \(7\) must not be provided in pod spec"),
        ({"preemptionPolicy": "Never"}, r"the string value of PreemptionPolicy \(Never\) must not be provided"),
    ):
        with pytest.raises(APIError, match=text):
            await admit(plugin, request("pods", pod(**given_)))
    kept = request("pods", pod(), operation="UPDATE", old=pod(priority=4, preemptionPolicy="Never"))
    assert (await admit(plugin, kept))["spec"]["priority"] == 4


async def test_there_is_one_default_priority_class(world: World) -> None:
    plugin = Priority(world.see("priorityclasses", "scheduling.k8s.io"))

    def marked(name: str, operation: str = "CREATE") -> Any:
        tree = {"metadata": {"name": name}, "globalDefault": True}
        return request("priorityclasses", tree, group="scheduling.k8s.io", operation=operation, name=name)

    await validate(plugin, marked("a"))
    await world.add("priorityclasses", "a", group="scheduling.k8s.io", globalDefault=True)
    await validate(plugin, marked("a", "UPDATE"))
    with pytest.raises(APIError, match=r"PriorityClass a is already marked as default\. Only one default can exist"):
        await validate(plugin, marked("b"))


async def test_seconds_on_a_lost_node() -> None:
    plugin = DefaultTolerationSeconds(7, 8)
    found = (await admit(plugin, request("pods", pod())))["spec"]["tolerations"]
    assert [(t["key"].rpartition("/")[2], t["tolerationSeconds"]) for t in found] == [
        ("not-ready", 7),
        ("unreachable", 8),
    ]
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    found = (await admit(plugin, request("pods", pod(tolerations=[own]))))["spec"]["tolerations"]
    assert [t["key"].rpartition("/")[2] for t in found] == ["not-ready", "unreachable"]
    everything = {"operator": "Exists"}
    assert (await admit(plugin, request("pods", pod(tolerations=[everything]))))["spec"]["tolerations"] == [everything]


async def test_images_are_always_pulled() -> None:
    plugin = AlwaysPullImages()
    lazy = {"name": "c", "image": "i", "imagePullPolicy": "Never"}
    volume = {"name": "v", "image": {"reference": "r", "pullPolicy": "IfNotPresent"}}
    with pytest.raises(APIError) as raised:
        await validate(plugin, request("pods", pod(containers=[lazy], volumes=[volume])))
    assert raised.value.message.endswith(
        'forbidden: [spec.containers[0].imagePullPolicy: Unsupported value: "Never": supported values: "Always", '
        'spec.volumes[0].image.pullPolicy: Unsupported value: "IfNotPresent": supported values: "Always"]'
    )
    tree = await admit(plugin, request("pods", pod(containers=[dict(lazy)], volumes=[volume])))
    assert tree["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    assert tree["spec"]["volumes"][0]["image"]["pullPolicy"] == "Always"
    old = pod(containers=[lazy])
    tree = await admit(plugin, request("pods", pod(containers=[dict(lazy)]), operation="UPDATE", old=old))
    assert tree["spec"]["containers"][0]["imagePullPolicy"] == "Never"


async def test_anti_affinity_to_a_zone() -> None:
    def apart(key: str) -> Tree:
        term = {"topologyKey": key}
        return pod(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})

    plugin = LimitPodHardAntiAffinityTopology()
    await validate(plugin, request("pods", apart("kubernetes.io/hostname")))
    text = "has TopologyKey zone but only key kubernetes.io/hostname is allowed"
    with pytest.raises(APIError, match=text):
        await validate(plugin, request("pods", apart("zone")))


async def test_devices_are_tolerated() -> None:
    resources = {"requests": {"example.com/gpu": "1", "cpu": "1", "kubernetes.io/x": "1"}}
    asked = pod(containers=[{"name": "c", "image": "i", "resources": resources}])
    tree = await admit(ExtendedResourceToleration(), request("pods", asked))
    assert tree["spec"]["tolerations"] == [{"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


async def test_topology_labels_of_the_node(world: World) -> None:
    zone, region = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
    await world.add("nodes", "n", labels={zone: "z", region: "r", "other": "o"})
    plugin = PodTopologyLabels(world.see("nodes"))
    binding = {"metadata": {"name": "x"}, "target": {"kind": "Node", "name": "n"}}
    tree = await admit(plugin, request("pods", binding, subresource="binding"))
    assert tree["metadata"]["labels"] == {region: "r", zone: "z"}
    tree = await admit(plugin, request("pods", pod(nodeName="n", labels={zone: "mine"})))
    assert tree["metadata"]["labels"] == {region: "r", zone: "mine"}
    tree = await admit(plugin, request("pods", pod(nodeName="gone")))
    assert "labels" not in tree["metadata"]


async def test_runtime_classes(world: World) -> None:
    plugin = RuntimeClass(world.see("runtimeclasses", "node.k8s.io"))
    toleration = {"key": "s", "operator": "Exists"}
    scheduling = {"nodeSelector": {"vm": "yes"}, "tolerations": [toleration]}
    overhead = {"podFixed": {"cpu": "250m"}}
    more = {"handler": "h", "overhead": overhead, "scheduling": scheduling}
    await world.add("runtimeclasses", "vm", group="node.k8s.io", **more)
    spec = (await admit(plugin, request("pods", pod(runtimeClassName="vm", nodeSelector={"a": "b"}))))["spec"]
    assert (spec["overhead"], spec["nodeSelector"]) == ({"cpu": "250m"}, {"a": "b", "vm": "yes"})
    assert spec["tolerations"] == [toleration]
    await validate(plugin, request("pods", {"metadata": {}, "spec": spec}))
    mismatch = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    for spec, text in (
        ({"runtimeClassName": "vm", "overhead": {"cpu": "1"}}, mismatch),
        ({"runtimeClassName": "vm", "nodeSelector": {"vm": "no"}}, r"scheduling.nodeSelector\[vm\] = yes; pod.spec"),
        ({"runtimeClassName": "none"}, 'pod rejected: RuntimeClass "none" not found'),
    ):
        with pytest.raises(APIError, match=text):
            await admit(plugin, request("pods", pod(**spec)))
    with pytest.raises(APIError, match="Pod Overhead set without corresponding RuntimeClass defined Overhead"):
        await validate(plugin, request("pods", pod(overhead={"cpu": "1"})))


async def test_new_nodes_are_tainted() -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    plugin = TaintNodesByCondition()
    tree = await admit(plugin, request("nodes", {"metadata": {"name": "n"}}))
    assert tree["spec"]["taints"] == [taint]
    assert (await admit(plugin, request("nodes", tree)))["spec"]["taints"] == [taint]


async def test_resizing_beyond_the_node(world: World) -> None:
    plugin = PodResizeValidator(world.see("nodes"))
    status = {"allocatable": {"cpu": "2", "memory": "1Gi"}}
    await world.add("nodes", "lin", labels={"kubernetes.io/os": "linux"}, status=status)
    await world.add("nodes", "win", labels={"kubernetes.io/os": "windows"}, status=status)

    def resized(node: str, cpu: str) -> Any:
        resources = {"requests": {"cpu": cpu, "memory": "2Gi" if cpu == "9" else "1Mi"}}
        new = pod(nodeName=node, containers=[{"name": "c", "image": "i", "resources": resources}])
        new["metadata"]["generation"] = 2
        return request("pods", new, operation="UPDATE", subresource="resize", old=pod(nodeName=node))

    await validate(plugin, resized("lin", "2"))
    with pytest.raises(APIError) as raised:
        await validate(plugin, resized("lin", "9"))
    assert raised.value.message.endswith(
        "Node didn't have enough allocatable resources: cpu, requested: 9000, allocatable: 2000; memory, requested: "
        "2147483648, allocatable: 1073741824"
    )
    assert (raised.value.details or {})["causes"] == [{"reason": "NodeCapacity"}]
    with pytest.raises(APIError, match='only supported on linux nodes, node "win" is "windows"'):
        await validate(plugin, resized("win", "1"))
    with pytest.raises(APIError, match='node "gone" not found'):
        await validate(plugin, resized("gone", "1"))


async def test_a_node_declares_what_it_can_change(world: World) -> None:
    plugin = NodeDeclaredFeatureValidator(world.see("nodes"))
    await world.add("nodes", "old")
    await world.add("nodes", "new", status={"declaredFeatures": ["GuaranteedQoSPodCPUResize"]})

    def changed(node: str, cpu: str) -> Any:
        def of(amount: str) -> Tree:
            equal = {"cpu": amount, "memory": "1Gi"}
            resources = {"requests": equal, "limits": equal}
            return pod(nodeName=node, containers=[{"name": "c", "image": "i", "resources": resources}])

        new = of(cpu)
        new["metadata"]["generation"] = 2
        return request("pods", new, operation="UPDATE", subresource="resize", old=of("1"))

    await validate(plugin, changed("new", "2"))
    await validate(plugin, changed("old", "1"))
    with pytest.raises(APIError, match='features GuaranteedQoSPodCPUResize which are not available on node "old"'):
        await validate(plugin, changed("old", "2"))


# What namespaces ask of their pods


async def test_node_selectors_of_namespaces(world: World) -> None:
    await world.add("namespaces", "ns", annotations={"scheduler.alpha.kubernetes.io/node-selector": "env=prod, a=b"})
    await world.add("namespaces", "plain")
    listed = {"clusterDefaultNodeSelector": "pool=shared", "plain": "pool=shared,extra=1"}
    plugin = PodNodeSelector(world.see("namespaces"), listed)
    spec = (await admit(plugin, request("pods", pod(nodeSelector={"x": "y"}))))["spec"]
    assert spec["nodeSelector"] == {"a": "b", "env": "prod", "x": "y"}
    with pytest.raises(APIError, match="pod node label selector conflicts with its namespace node label selector"):
        await admit(plugin, request("pods", pod(nodeSelector={"env": "dev"})))
    spec = (await admit(plugin, request("pods", pod(), namespace="plain")))["spec"]
    assert spec["nodeSelector"] == {"pool": "shared"}
    with pytest.raises(APIError, match="selector labels conflict with its namespace whitelist"):
        await validate(plugin, request("pods", pod(nodeSelector={"pool": "shared", "x": "y"}), namespace="plain"))
    with pytest.raises(ValueError, match="invalid selector"):
        selector_map("a=b,c")


async def test_tolerations_of_namespaces(world: World) -> None:
    prefix = "scheduler.alpha.kubernetes.io/"
    notes = {
        prefix + "defaultTolerations": '[{"key":"a","operator":"Exists"}]',
        prefix + "tolerationsWhitelist": '[{"key":"a","operator":"Exists"},{"key":"b","operator":"Exists"}]',
    }
    await world.add("namespaces", "ns", annotations=notes)
    await world.add("namespaces", "broken", annotations={prefix + "defaultTolerations": "{"})
    plugin = PodTolerationRestriction(world.see("namespaces"))
    tree = await admit(plugin, request("pods", pod(tolerations=[{"key": "b", "value": "1"}])))
    assert tree["spec"]["tolerations"] == [{"key": "b", "value": "1"}, {"key": "a", "operator": "Exists"}]
    with pytest.raises(APIError) as raised:
        await admit(plugin, request("pods", pod(tolerations=[{"key": "c", "operator": "Exists"}])))
    assert raised.value.code == 500
    with pytest.raises(APIError):
        await admit(plugin, request("pods", pod(), namespace="broken"))


members = st.fixed_dictionaries(
    {},
    optional={
        "key": st.sampled_from(["a", "b"]),
        "operator": st.sampled_from(["Exists", "Equal"]),
        "value": st.sampled_from(["1", "2"]),
        "effect": st.sampled_from(["NoSchedule", "NoExecute"]),
        "tolerationSeconds": st.sampled_from([1, 2]),
    },
)


@settings(max_examples=150)
@given(st.lists(members, max_size=4), st.lists(members, max_size=4))
def test_merging_keeps_what_is_tolerated(first: list[Tree], second: list[Tree]) -> None:
    merged = tolerations.merge(first, second)
    assert all(any(tolerations.covers(kept, t) for kept in merged) for t in [*first, *second])
    assert all(kept in [*first, *second] for kept in merged)
    assert tolerations.merge(merged, []) == merged


def plainly_merged(first: list[Tree], second: list[Tree]) -> list[Tree]:
    every = [*first, *second]
    merged: list[Tree] = []
    for index, one in enumerate(every):
        if any(tolerations.covers(kept, one) for kept in merged):
            continue
        if any(later != one and tolerations.covers(later, one) for later in every[index + 1 :]):
            continue
        merged.append(one)
    return merged


ONE_TOLERATION = st.fixed_dictionaries(
    {},
    optional={
        "key": st.sampled_from(["a", "b"]),
        "operator": st.sampled_from(["", "Equal", "Exists", "Lt"]),
        "value": st.sampled_from(["x", "y"]),
        "effect": st.sampled_from(["", "NoSchedule", "NoExecute"]),
        "tolerationSeconds": st.integers(-1, 2),
    },
)


@given(st.lists(ONE_TOLERATION, max_size=8), st.lists(ONE_TOLERATION, max_size=8))
def test_merging_is_what_comparing_all_pairs_gives(first: list[Tree], second: list[Tree]) -> None:
    assert tolerations.merge(first, second) == plainly_merged(first, second)


def test_merging_many_is_no_quadratic_work() -> None:
    many = [{"key": f"k{n}", "operator": "Exists", "effect": "NoSchedule"} for n in range(20_000)]
    compared = 0

    def counted(wide: Tree, narrow: Tree) -> bool:
        nonlocal compared
        compared += 1
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tolerations, "covers", counted)
        assert tolerations.merge(many, many) == many
    assert compared == 0

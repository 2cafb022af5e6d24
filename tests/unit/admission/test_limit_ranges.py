"""LimitRanger: what is given to containers, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.admission.amounts import amounts, pod_amounts, quality, texts
from fastapi_core.admission.plugins.limits import LimitRanger
from fastapi_core.errors import APIError
from tests.fixtures.admission import World, admit, handled, pod, request, validate

Tree = dict[str, Any]


def container(name: str = "c", **resources: Tree) -> Tree:
    return {"name": name, "image": "i", "resources": resources}


async def limited(world: World, *limits: Tree) -> LimitRanger:
    await world.add("limitranges", "l", "ns", spec={"limits": list(limits)})
    return LimitRanger(world.see("limitranges"))


async def refusal(plugin: LimitRanger, plural: str, tree: Tree, **more: Any) -> str:
    with pytest.raises(APIError) as raised:
        await validate(plugin, request(plural, tree, **more))
    assert raised.value.code == 403
    return raised.value.message.partition(" is forbidden: ")[2]


async def test_containers_get_what_they_do_not_ask_for(world: World) -> None:
    limit = {"type": "Container", "default": {"cpu": "2", "memory": "2Gi"}, "defaultRequest": {"cpu": "1"}}
    plugin = await limited(world, limit)
    asked = pod(containers=[container("a", requests={"cpu": "500m"}), container("b")], initContainers=[container("i")])
    tree = await admit(plugin, request("pods", asked))
    a, b = tree["spec"]["containers"]
    assert a["resources"] == {"requests": {"cpu": "500m"}, "limits": {"cpu": "2", "memory": "2Gi"}}
    assert b["resources"] == {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "2Gi"}}
    assert tree["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu, memory limit for container a; cpu request for "
        "container b; cpu, memory limit for container b; cpu request for init container i; cpu, memory limit for init "
        "container i"
    }


async def test_bounds_of_containers(world: World) -> None:
    limit = {"type": "Container", "min": {"cpu": "1"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "1500m"}}
    plugin = await limited(world, limit)
    tree = pod(containers=[container(requests={"cpu": "1"}, limits={"cpu": "1500m"})])
    await validate(plugin, request("pods", tree))
    assert await refusal(plugin, "pods", pod()) == (
        "[minimum cpu usage per Container is 1.  No request is specified, maximum cpu usage per Container is 2.  No limit "
        "is specified, cpu max limit to request ratio per Container is 1500m, but no request is specified or request is 0]"
    )
    tree = pod(containers=[container(requests={"cpu": "1"}, limits={"cpu": "2"})])
    ratio = "cpu max limit to request ratio per Container is 1500m, but provided ratio is 2.000000"
    assert await refusal(plugin, "pods", tree) == ratio
    tree = pod(containers=[container(requests={"cpu": "1"}, limits={"cpu": "900m"})])
    assert "minimum cpu usage per Container is 1, but limit is 900m" in await refusal(plugin, "pods", tree)
    tree = pod(containers=[container(requests={"cpu": "3"}, limits={"cpu": "2"})])
    assert await refusal(plugin, "pods", tree) == "maximum cpu usage per Container is 2, but request is 3"


async def test_bounds_of_whole_pods(world: World) -> None:
    plugin = await limited(world, {"type": "Pod", "max": {"memory": "1Gi"}, "min": {"cpu": "100m"}})
    one = container("a", requests={"cpu": "60m", "memory": "600Mi"}, limits={"memory": "600Mi"})
    two = container("b", requests={"cpu": "60m", "memory": "600Mi"}, limits={"memory": "600Mi"})
    await validate(
        plugin,
        request(
            "pods",
            pod(
                containers=[{**one, "resources": one["resources"]}],
                initContainers=[container("i", requests={"cpu": "150m"})],
            ),
        ),
    )
    text = await refusal(plugin, "pods", pod(containers=[one, two]))
    assert text == "maximum memory usage per Pod is 1Gi, but limit is 1200Mi"


async def test_bounds_of_claims(world: World) -> None:
    plugin = await limited(
        world, {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}
    )

    def claim(size: str) -> Tree:
        return {"metadata": {"name": "x"}, "spec": {"resources": {"requests": {"storage": size}}}}

    await validate(plugin, request("persistentvolumeclaims", claim("2Gi")))
    text = await refusal(plugin, "persistentvolumeclaims", claim("3Gi"), operation="UPDATE", old=claim("1Gi"))
    assert text == "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"
    text = await refusal(plugin, "persistentvolumeclaims", claim("1Mi"))
    assert text == "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"
    deleted = {**claim("1Gi"), "metadata": {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    await validate(plugin, request("persistentvolumeclaims", claim("3Gi"), operation="UPDATE", old=deleted))


async def test_what_is_none_of_its_business(world: World) -> None:
    plugin = LimitRanger(world.see("limitranges"))
    assert not handled(plugin, request("pods", pod(), operation="UPDATE"))
    assert handled(plugin, request("pods", pod(), operation="UPDATE", subresource="resize"))
    assert not handled(plugin, request("configmaps", {}))


def test_what_a_pod_needs() -> None:
    spec = {
        "containers": [container("a", requests={"cpu": "1", "memory": "1Gi"}), container("b", requests={"cpu": "1"})],
        "initContainers": [
            {**container("s", requests={"cpu": "1"}), "restartPolicy": "Always"},
            container("i", requests={"cpu": "3", "memory": "512Mi"}),
        ],
        "overhead": {"cpu": "250m", "memory": "10Mi"},
    }
    assert texts(pod_amounts(spec, "requests", overhead=False)) == {"cpu": "4", "memory": "1Gi"}
    assert texts(pod_amounts(spec, "requests", overhead=True)) == {"cpu": "4250m", "memory": "1034Mi"}
    whole = {**spec, "resources": {"requests": {"cpu": "9"}}}
    assert texts(pod_amounts(whole, "requests", overhead=False)) == {"cpu": "9", "memory": "1Gi"}
    assert amounts(None) == {}


def test_quality_of_service() -> None:
    equal = {"cpu": "1", "memory": "1Gi"}
    assert quality({"containers": [container()]}) == "BestEffort"
    assert quality({"containers": [container(requests={"cpu": "1"})]}) == "Burstable"
    assert quality({"containers": [container(requests=equal, limits=equal)]}) == "Guaranteed"
    assert quality({"containers": [container(limits=equal)]}) == "Guaranteed"
    assert quality({"containers": [container(requests=equal, limits=equal), container("b")]}) == "Burstable"
    assert quality({"containers": [container()], "resources": {"requests": equal, "limits": equal}}) == "Guaranteed"

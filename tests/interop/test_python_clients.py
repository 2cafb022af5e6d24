"""The Python clients people use: create, list, watch, patch, delete with each."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from fastapi_core.testing.server import RunningServer

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore")]

BODY: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"labels": {"app": "x"}},
    "data": {"a": "1"},
}


def named(name: str) -> dict[str, Any]:
    return {**BODY, "metadata": {**BODY["metadata"], "name": name}}


def test_official_client(server: RunningServer, namespace: str) -> None:
    kubernetes = pytest.importorskip("kubernetes")
    client = kubernetes.config.new_client_from_config(str(server.kubeconfig))
    core = kubernetes.client.CoreV1Api(client)
    created = core.create_namespaced_config_map(namespace, named("c"))
    assert created.metadata.uid
    listed = core.list_namespaced_config_map(namespace, label_selector="app=x")
    assert [item.metadata.name for item in listed.items] == ["c"]
    seen: list[tuple[str, dict[str, str]]] = []
    streaming = threading.Event()

    def watch() -> None:
        watcher = kubernetes.watch.Watch()
        streaming.set()
        stream = watcher.stream(
            core.list_namespaced_config_map,
            namespace,
            resource_version=listed.metadata.resource_version,
            timeout_seconds=20,
        )
        for event in stream:
            seen.append((event["type"], event["object"].data))
            if len(seen) == 2:
                watcher.stop()

    thread = threading.Thread(target=watch)
    thread.start()
    assert streaming.wait(10)
    assert core.patch_namespaced_config_map("c", namespace, {"data": {"a": "2"}}).data == {"a": "2"}
    core.delete_namespaced_config_map("c", namespace)
    thread.join(30)
    assert seen == [("MODIFIED", {"a": "2"}), ("DELETED", {"a": "2"})]
    with pytest.raises(kubernetes.client.ApiException) as missing:
        core.read_namespaced_config_map("c", namespace)
    assert missing.value.status == 404
    client.close()


async def test_kubernetes_asyncio(server: RunningServer, namespace: str) -> None:
    kubernetes_asyncio = pytest.importorskip("kubernetes_asyncio")
    await kubernetes_asyncio.config.load_kube_config(str(server.kubeconfig))
    async with kubernetes_asyncio.client.ApiClient() as client:
        core = kubernetes_asyncio.client.CoreV1Api(client)
        await core.create_namespaced_config_map(namespace, named("c"))
        listed = await core.list_namespaced_config_map(namespace)
        assert [item.metadata.name for item in listed.items] == ["c"]

        async def watch() -> list[str]:
            types: list[str] = []
            async with kubernetes_asyncio.watch.Watch().stream(
                core.list_namespaced_config_map,
                namespace,
                resource_version=listed.metadata.resource_version,
                timeout_seconds=20,
            ) as stream:
                async for event in stream:
                    types.append(event["type"])
                    if len(types) == 2:
                        break
            return types

        watching = asyncio.create_task(watch())
        await core.patch_namespaced_config_map("c", namespace, {"data": {"a": "2"}})
        await core.delete_namespaced_config_map("c", namespace)
        assert await asyncio.wait_for(watching, 30) == ["MODIFIED", "DELETED"]


def test_lightkube(server: RunningServer, namespace: str) -> None:
    lightkube = pytest.importorskip("lightkube")
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap

    config = lightkube.KubeConfig.from_file(str(server.kubeconfig))
    client = lightkube.Client(config=config, namespace=namespace)
    client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace=namespace, labels={"app": "x"}), data={"a": "1"}))
    listed = client.list(ConfigMap, labels={"app": "x"})
    assert [item.metadata.name for item in listed] == ["c"]
    version = client.get(ConfigMap, "c").metadata.resourceVersion
    client.patch(ConfigMap, "c", {"data": {"a": "2"}})
    client.delete(ConfigMap, "c")
    types = []
    for kind, _ in client.watch(ConfigMap, resource_version=version, server_timeout=20):
        types.append(kind)
        if len(types) == 2:
            break
    assert types == ["MODIFIED", "DELETED"]


async def test_kr8s(server: RunningServer, namespace: str) -> None:
    kr8s = pytest.importorskip("kr8s")
    from kr8s.asyncio.objects import ConfigMap

    client = await kr8s.asyncio.api(kubeconfig=str(server.kubeconfig))
    item = await ConfigMap({**named("c"), "metadata": {**named("c")["metadata"], "namespace": namespace}}, api=client)
    await item.create()
    found = [o async for o in client.get("configmaps", namespace=namespace)]
    assert [o.name for o in found] == ["c"]

    async def watch() -> str:
        async for kind, _ in client.watch("configmaps", namespace=namespace):
            if kind == "MODIFIED":
                return str(kind)
        return ""

    watching = asyncio.create_task(watch())
    await item.patch({"data": {"a": "2"}})
    number = 0
    while not watching.done():
        number += 1
        await item.patch({"metadata": {"annotations": {"n": str(number)}}})
        await asyncio.wait([watching], timeout=0.2)
    assert watching.result() == "MODIFIED"
    await item.delete()
    assert not await item.exists()

"""ServiceAccount: which account a pod runs as, its token, and secrets it may use."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fastapi_core.admission.plugins.accounts import MIRROR, MOUNT_PATH, ServiceAccount
from fastapi_core.errors import APIError
from tests.fixtures.admission import World, admit, handled, pod, request, validate

Tree = dict[str, Any]
ENFORCED = {"kubernetes.io/enforce-mountable-secrets": "true"}


def plugin(world: World) -> ServiceAccount:
    return ServiceAccount(world.see("serviceaccounts"), patience=0.05)


async def both(world: World, tree: Tree, **more: Any) -> None:
    attributes = request("pods", tree, **more)
    await admit(plugin(world), attributes)
    await validate(plugin(world), attributes)


async def refused(world: World, tree: Tree, **more: Any) -> str:
    with pytest.raises(APIError) as raised:
        await both(world, tree, **more)
    assert raised.value.code == 403
    return raised.value.message.partition(" is forbidden: ")[2]


async def test_every_container_mounts_a_token_of_the_default_account(world: World) -> None:
    await world.add("serviceaccounts", "default", "ns", imagePullSecrets=[{"name": "pull"}])
    own = {"name": "mine", "mountPath": MOUNT_PATH}
    containers = [{"name": "a", "image": "i"}, {"name": "b", "image": "i", "volumeMounts": [own]}]
    tree = await admit(plugin(world), request("pods", pod(containers=containers, initContainers=[{"name": "i"}])))
    spec = tree["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    sources = volume["projected"]["sources"]
    assert [next(iter(source)) for source in sources] == ["serviceAccountToken", "configMap", "downwardAPI"]
    mount = {"name": volume["name"], "readOnly": True, "mountPath": MOUNT_PATH}
    assert [c.get("volumeMounts") for c in spec["containers"]] == [[mount], [own]]
    assert spec["initContainers"][0]["volumeMounts"] == [mount]
    again = await admit(plugin(world), request("pods", tree))
    assert again["spec"]["volumes"] == [volume]


@pytest.mark.parametrize(
    ("account", "spec", "mounted"),
    [
        ({}, {}, True),
        ({"automountServiceAccountToken": False}, {}, False),
        ({"automountServiceAccountToken": False}, {"automountServiceAccountToken": True}, True),
        ({}, {"automountServiceAccountToken": False}, False),
    ],
)
async def test_pod_and_account_decide_whether_it_is_mounted(
    world: World, account: Tree, spec: Tree, mounted: bool
) -> None:
    await world.add("serviceaccounts", "default", "ns", **account)
    tree = await admit(plugin(world), request("pods", pod(**spec)))
    assert bool(tree["spec"].get("volumes")) is mounted


async def test_an_account_that_does_not_exist(world: World) -> None:
    text = await refused(world, pod(serviceAccountName="robot"))
    assert text == 'error looking up service account ns/robot: serviceaccount "robot" not found'
    text = await refused(world, pod())
    assert text == 'error looking up service account ns/default: serviceaccount "default" not found'


async def test_pods_wait_for_the_default_account(world: World) -> None:
    attributes = request("pods", pod())
    waiting = asyncio.create_task(admit(ServiceAccount(world.see("serviceaccounts"), patience=30), attributes))
    await asyncio.sleep(0)
    await world.add("serviceaccounts", "default", "other")
    await world.add("serviceaccounts", "default", "ns")
    assert (await waiting)["spec"]["serviceAccountName"] == "default"


async def test_mirror_pods_use_nothing_of_the_api(world: World) -> None:
    mirror = {MIRROR: "hash"}
    tree = await admit(plugin(world), request("pods", pod(annotations=mirror)))
    assert "serviceAccountName" not in tree["spec"]
    text = await refused(world, pod(annotations=mirror, serviceAccountName="default"))
    assert text == "a mirror pod may not reference service accounts"
    secret = {"name": "v", "secret": {"secretName": "s"}}
    assert await refused(world, pod(annotations=mirror, volumes=[secret])) == "a mirror pod may not reference secrets"
    token = {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
    text = await refused(world, pod(annotations=mirror, volumes=[token]))
    assert text == "a mirror pod may not use ServiceAccountToken volume projections"


async def test_secrets_an_account_does_not_name(world: World) -> None:
    await world.add("serviceaccounts", "lim", "ns", annotations=ENFORCED, secrets=[{"name": "ok"}])
    await world.add("serviceaccounts", "default", "ns")
    tail = "is not allowed because service account lim does not reference that secret"

    def lim(**spec: Any) -> Tree:
        return pod(serviceAccountName="lim", automountServiceAccountToken=False, **spec)

    def using(kind: str, **container: Any) -> Tree:
        return {kind: [{"name": "c", "image": "i", **container}]}

    good = {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "ok", "key": "k"}}}]}
    bad = {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "bad", "key": "k"}}}]}
    whole = {"envFrom": [{"secretRef": {"name": "bad"}}]}
    await admit(plugin(world), request("pods", lim(**using("containers", **good))))
    text = await refused(world, lim(**using("containers", **bad)))
    assert text == f'container c with envVar A referencing secret.secretName="bad" {tail}'
    text = await refused(world, lim(**using("initContainers", **whole)))
    assert text == f'init container c with envFrom referencing secret.secretName="bad" {tail}'
    new = lim(**using("ephemeralContainers", **bad))
    text = await refused(world, new, operation="UPDATE", subresource="ephemeralcontainers", old=lim())
    assert text == f'ephemeral container c with envVar A referencing secret.secretName="bad" {tail}'
    text = await refused(world, lim(imagePullSecrets=[{"name": "x"}]))
    assert (
        text
        == 'imagePullSecrets[0].name="x" is not allowed because service account lim does not reference that '
        + ("imagePullSecret")
    )
    await admit(plugin(world), request("pods", pod(**using("containers", **bad))))


def test_what_it_looks_at() -> None:
    idle = ServiceAccount.__new__(ServiceAccount)
    assert not handled(idle, request("pods", pod(), operation="UPDATE"))
    assert not handled(idle, request("pods", None, subresource="binding"))

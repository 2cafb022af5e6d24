"""NodeRestriction: what a kubelet may write."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.admission.plugins.node_restriction import NodeRestriction, forbidden_labels, node_of
from fastapi_core.admission.questions import Questions
from fastapi_core.errors import APIError
from fastapi_core.request.context import User
from tests.fixtures.admission import Rights, World, admit, pod, request

Tree = dict[str, Any]
NODE = User("system:node:n1", groups=("system:nodes",))
MIRROR = {"kubernetes.io/config.mirror": "h"}


def plugin(world: World, rights: Rights | None = None) -> NodeRestriction:
    return NodeRestriction(world.see("pods"), world.see("nodes"), Questions(rights or Rights()))


async def refused(world: World, *arguments: Any, **more: Any) -> str:
    with pytest.raises(APIError) as raised:
        await admit(plugin(world), request(*arguments, user=NODE, **more))
    assert raised.value.code == 403
    return raised.value.message.partition(" is forbidden: ")[2]


def test_who_is_a_node() -> None:
    assert node_of(NODE) == "n1"
    assert node_of(User("system:node:n1")) is None
    assert node_of(User("alice", groups=("system:nodes",))) is None


async def test_others_are_left_alone(world: World) -> None:
    await admit(plugin(world), request("pods", pod()))
    nameless = User("system:node:", groups=("system:nodes",))
    with pytest.raises(APIError, match='could not determine node from user "system:node:"'):
        await admit(plugin(world), request("pods", pod(), user=nameless))


async def test_mirror_pods_only(world: World) -> None:
    uid = (await world.add("nodes", "n1"))["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": True}

    def mirror(owners: list[Tree], **spec: Any) -> Tree:
        tree = pod(annotations=MIRROR, nodeName="n1", **spec)
        tree["metadata"]["ownerReferences"] = owners
        return tree

    await admit(plugin(world), request("pods", mirror([owner]), user=NODE))
    assert "can only create mirror pods" in await refused(world, "pods", pod(nodeName="n1"))
    assert "with spec.nodeName set to itself" in await refused(world, "pods", pod(annotations=MIRROR, nodeName="n2"))
    assert "a single owner reference" in await refused(world, "pods", mirror([owner, owner]))
    assert "with an owner reference" in await refused(world, "pods", mirror([]))
    assert "a controller owner reference" in await refused(world, "pods", mirror([{**owner, "controller": False}]))
    blocking = {**owner, "blockOwnerDeletion": True}
    assert "must not set blockOwnerDeletion" in await refused(world, "pods", mirror([blocking]))
    assert "UID mismatch" in await refused(world, "pods", mirror([{**owner, "uid": "other"}]))
    for spec, what in (
        ({"serviceAccountName": "a"}, "a service account"),
        ({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, "secrets"),
        ({"imagePullSecrets": [{"name": "s"}]}, "secrets"),
        ({"volumes": [{"name": "v", "configMap": {"name": "c"}}]}, "configmaps"),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, "persistentvolumeclaims"),
        ({"resourceClaims": [{"name": "r"}]}, "resourceclaims"),
    ):
        text = f'node "n1" can not create pods that reference {what}'
        assert await refused(world, "pods", mirror([owner], **spec)) == text


async def test_pods_on_the_node(world: World) -> None:
    mine, other = pod(nodeName="n1"), pod(nodeName="n2")
    status = {"operation": "UPDATE", "subresource": "status"}
    await admit(plugin(world), request("pods", mine, old=mine, user=NODE, **status))
    assert "can only update pod status" in await refused(world, "pods", other, old=other, **status)
    labelled = pod(nodeName="n1", labels={"a": "b"})
    assert "cannot update labels" in await refused(world, "pods", labelled, old=mine, **status)
    claims = {**mine, "status": {"resourceClaimStatuses": [{"name": "c"}]}}
    assert "cannot update resource claim" in await refused(world, "pods", claims, old=mine, **status)
    await admit(plugin(world), request("pods", None, operation="DELETE", old=mine, user=NODE))
    assert "can only delete pods" in await refused(world, "pods", None, operation="DELETE", old=other)
    assert "unexpected operation" in await refused(world, "pods", mine, operation="UPDATE", old=mine)
    assert "only 'status' and 'eviction' are allowed" in await refused(world, "pods", {}, subresource="binding")
    spec = {"nodeName": "n2", "containers": [{"name": "c", "image": "i"}]}
    await world.add("pods", "x", "ns", spec=spec)
    assert "can only evict pods" in await refused(world, "pods", {}, subresource="eviction")


async def test_its_own_node(world: World) -> None:
    def node(name: str = "n1", labels: Tree | None = None, **spec: Any) -> Tree:
        return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}

    await admit(plugin(world), request("nodes", node(), user=NODE, name="n1"))
    text = await refused(world, "nodes", node("n2"), name="n2")
    assert text == 'node "n1" is not allowed to modify node "n2"'
    bad = {"node-restriction.kubernetes.io/x": "1", "kubernetes.io/os": "linux"}
    text = await refused(world, "nodes", node(labels=bad), name="n1")
    assert text == 'node "n1" is not allowed to set the following labels: node-restriction.kubernetes.io/x'
    update = {"operation": "UPDATE", "name": "n1"}
    text = await refused(world, "nodes", node(), old=node(labels=bad), **update)
    assert text == "is not allowed to modify labels: node-restriction.kubernetes.io/x"
    taint = [{"key": "k", "effect": "NoSchedule"}]
    assert "modify taints" in await refused(world, "nodes", node(), old=node(taints=taint), **update)
    assert "non-nil configSource" in await refused(world, "nodes", node(configSource={}), old=node(), **update)
    owned = node()
    owned["metadata"]["ownerReferences"] = [{"kind": "Node", "name": "n2"}]
    assert "modify ownerReferences" in await refused(world, "nodes", owned, old=node(), **update)


def test_labels_of_a_kubelet() -> None:
    free = {"example.com/x": "1", "plain": "1", "node.kubernetes.io/any": "1", "sub.kubelet.kubernetes.io/x": "1"}
    assert forbidden_labels(free, {}) == []
    held = {"k8s.io/x": "1", "a.node-restriction.kubernetes.io/x": "1", "beta.kubernetes.io/odd": "1"}
    assert forbidden_labels(held, {}) == sorted(held)
    assert forbidden_labels(held, held) == []


async def test_tokens_of_pods_on_the_node(world: World) -> None:
    token = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "p", "audience": "vault"}}]}}
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}], "volumes": [token]}
    uid = (await world.add("pods", "p", "ns", spec=spec))["metadata"]["uid"]

    def asked(bound: Tree | None, *audiences: str) -> Tree:
        return {"metadata": {}, "spec": {"boundObjectRef": bound, "audiences": list(audiences)}}

    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid}
    create = {"subresource": "token", "name": "robot"}
    await admit(plugin(world), request("serviceaccounts", asked(reference, "vault"), user=NODE, **create))
    assert "not bound to a pod" in await refused(world, "serviceaccounts", asked(None), **create)
    assert "without a uid" in await refused(world, "serviceaccounts", asked({**reference, "uid": ""}), **create)
    assert "does not match the UID" in await refused(
        world, "serviceaccounts", asked({**reference, "uid": "u"}), **create
    )
    text = await refused(world, "serviceaccounts", asked(reference, "other"), **create)
    assert text == 'audience "other" not found in pod spec volume'
    assert "0 or 1 audiences" in await refused(world, "serviceaccounts", asked(reference, "a", "b"), **create)
    rights = Rights(("request-serviceaccounts-token-audience", "other", "robot"))
    attributes = request("serviceaccounts", asked(reference, "other"), user=NODE, **create)
    await admit(plugin(world, rights), attributes)


async def test_leases_slices_and_claims(world: World) -> None:
    lease = {"group": "coordination.k8s.io", "namespace": "kube-node-lease", "name": "n1"}
    await admit(plugin(world), request("leases", {"metadata": {"name": "n1"}}, user=NODE, **lease))
    text = await refused(world, "leases", {"metadata": {"name": "n2"}}, **lease)
    assert text == "can only access node lease with the same name as the requesting node"
    elsewhere = {**lease, "namespace": "default"}
    assert "system namespace" in await refused(world, "leases", {"metadata": {"name": "n1"}}, **elsewhere)
    csi = {"group": "storage.k8s.io", "name": "n2"}
    assert "CSINode with the same name" in await refused(world, "csinodes", {"metadata": {"name": "n2"}}, **csi)
    devices = {"group": "resource.k8s.io"}
    foreign = {"metadata": {}, "spec": {"nodeName": "n2"}}
    assert "can only create ResourceSlice" in await refused(world, "resourceslices", foreign, **devices)
    text = await refused(world, "resourceslices", None, operation="DELETE", old=foreign, **devices)
    assert "can only delete ResourceSlice" in text
    assert await refused(world, "persistentvolumeclaims", {"metadata": {}}) == "may only update PVC status"
    claim = {"metadata": {"name": "c"}, "spec": {}, "status": {"capacity": {"storage": "1Gi"}}}
    update = {"operation": "UPDATE", "subresource": "status"}
    bigger = {**claim, "status": {"capacity": {"storage": "2Gi"}}}
    await admit(plugin(world), request("persistentvolumeclaims", bigger, old=claim, user=NODE, **update))
    lost = {**claim, "status": {"phase": "Lost"}}
    assert "fields other than status" in await refused(world, "persistentvolumeclaims", lost, old=claim, **update)

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from fastapi_core.authz.base import Decision, Verdict
from fastapi_core.authz.node import NodeAuthorizer
from fastapi_core.authz.node_graph import NodeGraph, persistent_secrets
from fastapi_core.request.context import User
from tests.fixtures.policies import Policies, asked

PODS, VOLUMES = "/registry/pods/", "/registry/persistentvolumes/"
ATTACHMENTS, SLICES = "/registry/volumeattachments/", "/registry/resourceslices/"
NODE = User("system:node:n1", groups=("system:nodes",))
UNRELATED = "no relationship found between node 'n1' and this object"

SPEC: dict[str, Any] = {
    "nodeName": "n1",
    "serviceAccountName": "robot",
    "imagePullSecrets": [{"name": "pull"}],
    "containers": [
        {
            "envFrom": [{"secretRef": {"name": "env-from"}}, {"configMapRef": {"name": "env-from"}}],
            "env": [
                {"valueFrom": {"secretKeyRef": {"name": "env"}}},
                {"valueFrom": {"configMapKeyRef": {"name": "env"}}},
                {"name": "plain", "value": "x"},
            ],
        }
    ],
    "initContainers": [{"envFrom": [{"secretRef": {"name": "init"}}]}],
    "volumes": [
        {"name": "a", "secret": {"secretName": "volume"}},
        {"name": "b", "configMap": {"name": "volume"}},
        {
            "name": "c",
            "projected": {"sources": [{"secret": {"name": "projected"}}, {"configMap": {"name": "projected"}}]},
        },
        {"name": "d", "persistentVolumeClaim": {"claimName": "claim"}},
        {"name": "e", "ephemeral": {}},
        {"name": "f", "csi": {"nodePublishSecretRef": {"name": "publish"}}},
        {"name": "g", "emptyDir": {}},
    ],
    "resourceClaims": [{"name": "x", "resourceClaimName": "given"}, {"name": "y", "resourceClaimTemplateName": "t"}],
}
STATUS = {
    "resourceClaimStatuses": [{"name": "y", "resourceClaimName": "made"}],
    "extendedResourceClaimStatus": {"resourceClaimName": "extended"},
}


@pytest_asyncio.fixture
async def store() -> AsyncIterator[Policies]:
    found = await Policies().open()
    await found.put(PODS, "ns", "p", spec=SPEC, status=STATUS)
    await found.put(PODS, "ns", "q", spec={"nodeName": "n2", "volumes": [{"secret": {"secretName": "theirs"}}]})
    await found.put(PODS, "ns", "unassigned", spec={"volumes": [{"secret": {"secretName": "nobody-s"}}]})
    csi = {"csi": {"nodeStageSecretRef": {"name": "stage", "namespace": "other"}}}
    await found.put(VOLUMES, "", "pv", spec={"claimRef": {"namespace": "ns", "name": "claim"}, **csi})
    await found.put(VOLUMES, "", "free", spec=csi)
    await found.put(ATTACHMENTS, "", "mine", spec={"nodeName": "n1"})
    await found.put(ATTACHMENTS, "", "theirs", spec={"nodeName": "n2"})
    await found.put(SLICES, "", "mine", spec={"nodeName": "n1"})
    yield found
    await found.close()


def authorizer(store: Policies) -> NodeAuthorizer:
    return NodeAuthorizer(
        NodeGraph(*(store.cacher.resource(prefix) for prefix in (PODS, VOLUMES, ATTACHMENTS, SLICES)))
    )


@pytest.mark.parametrize(
    ("resource", "names"),
    [
        ("secrets", "pull env-from env init volume projected publish"),
        ("configmaps", "env-from env volume projected"),
        ("persistentvolumeclaims", "claim p-e"),
        ("serviceaccounts", "robot"),
    ],
)
async def test_a_node_gets_what_its_pods_refer_to(store: Policies, resource: str, names: str) -> None:
    judge = authorizer(store).authorize
    for name in names.split():
        found = judge(asked(NODE, "get", resource, namespace="ns", name=name))
        assert (found.decision, found.lasting) == (Decision.ALLOW, False), name
        assert judge(asked(NODE, "get", resource, namespace="other", name=name)).decision is Decision.NO_OPINION
    for name in ("theirs", "nobody-s", "x"):
        found = judge(asked(NODE, "get", resource, namespace="ns", name=name))
        assert found == Verdict(Decision.NO_OPINION, UNRELATED, lasting=False)


async def test_what_is_related_by_other_ways(store: Policies) -> None:
    judge = authorizer(store).authorize

    def may(resource: str, name: str, namespace: str = "", group: str = "", verb: str = "get") -> bool:
        question = asked(NODE, verb, resource, name=name, namespace=namespace, api_group=group)
        return judge(question).decision is Decision.ALLOW

    for name in ("given", "made", "extended"):
        assert may("resourceclaims", name, "ns", "resource.k8s.io")
    assert may("persistentvolumes", "pv")
    assert not may("persistentvolumes", "free")
    assert may("secrets", "stage", "other")
    assert may("secrets", "stage", "other", verb="watch")
    assert not may("secrets", "stage", "ns")
    assert may("volumeattachments", "mine", group="storage.k8s.io")
    assert not may("volumeattachments", "theirs", group="storage.k8s.io")
    assert may("resourceslices", "mine", group="resource.k8s.io", verb="delete")
    assert not may("resourceslices", "other", group="resource.k8s.io")
    assert may("pods", "p", "ns")
    assert not may("pods", "q", "ns")


async def test_the_graph_follows_pods_and_volumes(store: Policies) -> None:
    judge = authorizer(store).authorize
    question = asked(NODE, "get", "secrets", namespace="ns", name="volume")
    behind = asked(NODE, "get", "secrets", namespace="other", name="stage")
    assert judge(question).decision is judge(behind).decision is Decision.ALLOW
    await store.put(VOLUMES, "", "pv", spec={"claimRef": {"namespace": "ns", "name": "another"}})
    assert judge(behind).decision is Decision.NO_OPINION
    mirror = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    await store.put(PODS, "ns", "p", spec=SPEC, metadata=mirror)
    assert judge(question).decision is Decision.NO_OPINION
    assert judge(asked(NODE, "get", "pods", namespace="ns", name="p")).decision is Decision.ALLOW
    await store.put(PODS, "ns", "late", spec=SPEC)
    assert judge(question).decision is Decision.ALLOW
    await store.remove(PODS, "ns", "late")
    assert judge(question).decision is Decision.NO_OPINION


LEASES = "coordination.k8s.io"


@pytest.mark.parametrize(
    ("verb", "resource", "more", "reason"),
    [
        ("list", "pods", {}, "can only list/watch pods with spec.nodeName field selector"),
        ("list", "pods", {"field_selector": "spec.nodeName=n2"}, "can only list/watch pods with spec.nodeName field selector"),
        ("list", "pods", {"field_selector": "spec.nodeName!=n1"}, "can only list/watch pods with spec.nodeName field selector"),
        ("list", "pods", {"field_selector": "spec.nodeName=n1"}, None),
        ("delete", "pods", {"name": "any"}, None),
        ("create", "pods", {"subresource": "eviction"}, None),
        ("get", "pods", {"subresource": "exec", "name": "p"}, ""),
        ("list", "secrets", {"namespace": "ns"}, "No Object name found"),
        ("list", "secrets", {}, "can only read namespaced object of this type"),
        ("update", "configmaps", {"namespace": "ns"}, "can only read resources of this type"),
        ("list", "persistentvolumeclaims", {"namespace": "ns"}, "can only get individual resources of this type"),
        ("get", "persistentvolumeclaims", {"subresource": "status"}, "can only get/update/patch this type"),
        ("create", "serviceaccounts", {"subresource": "token"}, "can only create tokens for individual service accounts"),
        ("create", "serviceaccounts", {"subresource": "x", "name": "y"}, "can only create token subresource of serviceaccount"),
        ("get", "nodes", {"name": "n1"}, None),
        ("get", "nodes", {"name": "n2"}, "node 'n1' cannot read 'n2', only its own Node object"),
        ("watch", "nodes", {}, "node 'n1' cannot read all nodes, only its own Node object"),
        ("delete", "nodes", {"name": "n1"}, ""),
        ("patch", "nodes", {"name": "n1", "subresource": "status"}, None),
        ("list", "leases", {"api_group": LEASES}, "can only get, create, update, patch, or delete a node lease"),
        ("get", "leases", {"api_group": LEASES, "namespace": "x"}, 'can only access leases in the "kube-node-lease" system namespace'),
        (
            "get", "leases", {"api_group": LEASES, "namespace": "kube-node-lease", "name": "n2"},
            "can only access node lease with the same name as the requesting node",
        ),
        ("create", "leases", {"api_group": LEASES, "namespace": "kube-node-lease"}, None),
        ("list", "csinodes", {"api_group": "storage.k8s.io"}, "can only get, create, update, patch, or delete a CSINode"),
        (
            "get", "csinodes", {"api_group": "storage.k8s.io", "name": "n2"},
            "can only access CSINode with the same name as the requesting node",
        ),
        (
            "list", "resourceslices", {"api_group": "resource.k8s.io"},
            "can only list/watch/deletecollection resourceslices with nodeName field selector",
        ),
        ("list", "resourceslices", {"api_group": "resource.k8s.io", "field_selector": "spec.nodeName=n1"}, None),
        ("list", "services", {}, None),
        ("create", "events", {"namespace": "x"}, None),
        ("delete", "services", {"name": "x"}, ""),
    ],
)  # fmt: skip
async def test_rules_that_depend_on_the_request_alone_last(
    store: Policies, verb: str, resource: str, more: dict[str, str], reason: str | None
) -> None:
    found = authorizer(store).authorize(asked(NODE, verb, resource, **more))
    expected = Verdict(Decision.ALLOW) if reason is None else Verdict(Decision.NO_OPINION, reason)
    assert found == expected


async def test_only_nodes_are_judged(store: Policies) -> None:
    judge = authorizer(store)
    question = {"resource": "nodes", "name": "n1"}
    assert judge.authorize(asked(User("system:node:n1"), "get", **question)) == Verdict(Decision.NO_OPINION)
    nameless = User("system:node:", groups=("system:nodes",))
    unknown = 'unknown node for user "system:node:"'
    assert judge.authorize(asked(nameless, "get", **question)) == Verdict(Decision.NO_OPINION, unknown)
    assert judge.grants(NODE, "ns").error == "node authorizer does not support user rule resolution"
    assert not judge.grants(User("alice"), "ns").incomplete


def test_secrets_of_volumes() -> None:
    claim = {"claimRef": {"namespace": "ns", "name": "c"}}
    assert persistent_secrets({**claim, "azureFile": {"secretName": "a"}}) == {("ns", "a")}
    assert persistent_secrets({**claim, "azureFile": {"secretName": "a", "secretNamespace": "x"}}) == {("x", "a")}
    assert persistent_secrets({**claim, "rbd": {"secretRef": {"name": "r"}}}) == {("ns", "r")}
    assert persistent_secrets({**claim, "rbd": {"secretRef": {"name": "r", "namespace": "x"}}}) == {("x", "r")}
    controller = {"controllerPublishSecretRef": {"name": "c", "namespace": "x"}}
    assert persistent_secrets({**claim, "csi": controller}) == set()

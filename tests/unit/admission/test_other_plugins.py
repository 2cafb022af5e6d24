"""Namespaces, storage, ingress, certificates, owners, events, images, services."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.admission.plugins.certificates import (
    CertificateApproval,
    CertificateSigning,
    ClusterTrustBundleAttest,
)
from fastapi_core.admission.plugins.classes import DefaultIngressClass
from fastapi_core.admission.plugins.events import EventRateLimit, Limit
from fastapi_core.admission.plugins.images import ImagePolicy, ImagePolicyWebhook
from fastapi_core.admission.plugins.namespaces import NamespaceAutoProvision, NamespaceExists, NamespaceLifecycle
from fastapi_core.admission.plugins.owners import OwnerReferencesPermissionEnforcement
from fastapi_core.admission.plugins.simple import AlwaysAdmit, AlwaysDeny, DenyServiceExternalIPs
from fastapi_core.admission.plugins.storage import (
    DefaultStorageClass,
    PersistentVolumeClaimResize,
    StorageObjectInUseProtection,
)
from fastapi_core.admission.questions import Questions
from fastapi_core.errors import APIError
from tests.fixtures.admission import Rights, World, admit, definition, handled, pod, request, validate

Tree = dict[str, Any]
DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


def named(**members: Any) -> Tree:
    return {"metadata": {"name": "x"}, **members}


# Namespaces


async def test_nothing_is_created_where_nothing_lasts(world: World) -> None:
    plugin = NamespaceLifecycle(world.see("namespaces"))
    await world.add("namespaces", "ns")
    await world.add("namespaces", "going", status={"phase": "Terminating"})
    await admit(plugin, request("configmaps", named()))
    with pytest.raises(APIError) as raised:
        await admit(plugin, request("configmaps", named(), namespace="none"))
    assert (raised.value.code, raised.value.message) == (404, 'namespaces "none" not found')
    with pytest.raises(APIError) as raised:
        await admit(plugin, request("configmaps", named(), namespace="going"))
    assert raised.value.message == (
        'configmaps "x" is forbidden: unable to create new content in namespace going because it is being terminated'
    )
    assert (raised.value.details or {})["causes"][0]["reason"] == "NamespaceTerminating"
    await admit(plugin, request("configmaps", named(), namespace="going", operation="UPDATE", old=named()))
    assert not handled(plugin, request("configmaps", None, operation="DELETE"))
    assert not handled(plugin, request("nodes", named()))
    review = request("localsubjectaccessreviews", named(), group="authorization.k8s.io")
    assert not handled(plugin, review)


async def test_namespaces_that_stay(world: World) -> None:
    plugin = NamespaceLifecycle(world.see("namespaces"))
    for name in ("default", "kube-system", "kube-public"):
        with pytest.raises(APIError, match="this namespace may not be deleted"):
            await admit(plugin, request("namespaces", None, operation="DELETE", name=name, old=named()))
    await admit(plugin, request("namespaces", None, operation="DELETE", name="other", old=named()))
    assert not handled(plugin, request("namespaces", named()))


async def test_a_deleted_namespace_is_looked_up_in_the_store(world: World) -> None:
    asked: list[str] = []
    now = [0.0]
    seen = world.see("namespaces")
    plugin = NamespaceLifecycle(seen, clock=lambda: now[0])
    await world.add("namespaces", "ns")

    def fresh() -> Any:
        asked.append("fresh")

    seen.fresh = fresh  # type: ignore[method-assign]
    await admit(plugin, request("configmaps", named()))
    assert asked == []
    await admit(plugin, request("namespaces", None, operation="DELETE", name="ns", old=named()))
    await admit(plugin, request("configmaps", named()))
    assert asked == ["fresh"]
    now[0] = 31.0
    await admit(plugin, request("configmaps", named()))
    assert asked == ["fresh"]


async def test_namespaces_are_made_or_missed(world: World) -> None:
    made: list[str] = []

    async def provide(name: str) -> None:
        made.append(name)

    plugin = NamespaceAutoProvision(world.see("namespaces"), provide)
    await admit(plugin, request("configmaps", named()))
    await admit(plugin, request("configmaps", named(), dry_run=True))
    assert made == ["ns"]
    exists = NamespaceExists(world.see("namespaces"))
    with pytest.raises(APIError, match='namespaces "ns" not found'):
        await validate(exists, request("configmaps", named(), operation="UPDATE", old=named()))
    await world.add("namespaces", "ns")
    await validate(exists, request("configmaps", named()))
    await admit(plugin, request("configmaps", named()))
    assert made == ["ns"]


# Classes and storage


async def test_the_newest_default_storage_class(world: World) -> None:
    plugin = DefaultStorageClass(world.see("storageclasses", "storage.k8s.io"))
    group = {"group": "storage.k8s.io", "provisioner": "p"}
    tree = await admit(plugin, request("persistentvolumeclaims", named(spec={})))
    assert "storageClassName" not in tree["spec"]
    await world.add("storageclasses", "old", annotations=DEFAULT, **group)
    for name in ("b", "a"):
        await world.add("storageclasses", name, annotations=DEFAULT, creationTimestamp="2026-02-01T00:00:00Z", **group)
    tree = await admit(plugin, request("persistentvolumeclaims", named(spec={})))
    assert tree["spec"]["storageClassName"] == "a"
    tree = await admit(plugin, request("persistentvolumeclaims", named(spec={"storageClassName": ""})))
    assert tree["spec"]["storageClassName"] == ""
    marked = {"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "x"}}, "spec": {}}
    assert "storageClassName" not in (await admit(plugin, request("persistentvolumeclaims", marked)))["spec"]


async def test_the_default_ingress_class(world: World) -> None:
    plugin = DefaultIngressClass(world.see("ingressclasses", "networking.k8s.io"))
    group = {"group": "networking.k8s.io"}
    notes = {"ingressclass.kubernetes.io/is-default-class": "true"}
    await world.add("ingressclasses", "c", annotations=notes, spec={"controller": "e/c"}, **group)
    tree = await admit(plugin, request("ingresses", named(spec={}), **group))
    assert tree["spec"]["ingressClassName"] == "c"


async def test_what_is_in_use_stays() -> None:
    plugin = StorageObjectInUseProtection()
    tree = await admit(plugin, request("persistentvolumeclaims", {"metadata": {"finalizers": ["mine"]}}))
    assert tree["metadata"]["finalizers"] == ["mine", "kubernetes.io/pvc-protection"]
    tree = await admit(plugin, request("persistentvolumes", {"metadata": {}}))
    assert tree["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
    tree = await admit(plugin, request("volumeattributesclasses", {"metadata": {}}, group="storage.k8s.io"))
    assert tree["metadata"]["finalizers"] == ["kubernetes.io/vac-protection"]


async def test_claims_grow_where_their_class_can(world: World) -> None:
    plugin = PersistentVolumeClaimResize(world.see("storageclasses", "storage.k8s.io"))
    group = {"group": "storage.k8s.io", "provisioner": "p"}
    await world.add("storageclasses", "yes", allowVolumeExpansion=True, **group)
    await world.add("storageclasses", "no", **group)

    def grown(name: str, size: str = "2Gi", phase: str = "Bound") -> Any:
        def claim(amount: str) -> Tree:
            spec = {"storageClassName": name, "resources": {"requests": {"storage": amount}}}
            return named(spec=spec, status={"phase": phase})

        return request("persistentvolumeclaims", claim(size), operation="UPDATE", old=claim("1Gi"))

    await validate(plugin, grown("yes"))
    await validate(plugin, grown("no", "1Gi"))
    with pytest.raises(APIError, match="only dynamically provisioned pvc can be resized"):
        await validate(plugin, grown("no"))
    with pytest.raises(APIError, match="Only bound persistent volume claims can be expanded"):
        await validate(plugin, grown("yes", phase="Pending"))


# Who may do what


@pytest.mark.parametrize("name", ["example.com/signer", "example.com/*"])
async def test_rights_over_signers(name: str) -> None:
    spec = {"signerName": "example.com/signer"}
    group = {"group": "certificates.k8s.io"}
    new, old = named(spec=spec, status={"certificate": "YQ=="}), named(spec=spec)
    bundles = {**group, "old": None}
    cases: list[tuple[Any, str, Any]] = [
        (CertificateApproval, "approve", request("certificatesigningrequests", new, operation="UPDATE",
                                                 subresource="approval", old=old, **group)),
        (CertificateSigning, "sign", request("certificatesigningrequests", new, operation="UPDATE",
                                             subresource="status", old=old, **group)),
        (ClusterTrustBundleAttest, "attest", request("certificatesigningrequests", new, **bundles)),
    ]  # fmt: skip
    for plugin, verb, attributes in cases:
        allowed = Questions(Rights((verb, "signers", name)))
        pending = plugin(allowed).validate(attributes)
        await pending
        with pytest.raises(APIError) as raised:
            await plugin(Questions(Rights())).validate(attributes)
        assert raised.value.code == 403
        assert raised.value.message.endswith(' signerName "example.com/signer"')


async def test_a_status_that_signs_nothing_asks_nobody() -> None:
    spec = {"signerName": "a/b"}
    rights = Rights()
    same = named(spec=spec, status={"conditions": [{"type": "Approved"}]})
    attributes = request("certificatesigningrequests", same, group="certificates.k8s.io", operation="UPDATE",
                         subresource="status", old=same)  # fmt: skip
    await validate(CertificateSigning(Questions(rights)), attributes)
    assert rights.asked == []


async def test_rights_over_owners() -> None:
    def find(group: str, version: str, kind: str) -> list[Any]:
        return [definition("replicasets", "apps")] if kind == "ReplicaSet" else []

    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u"}
    free = {"metadata": {"name": "x", "ownerReferences": [owner]}}
    held = {"metadata": {"name": "x", "ownerReferences": [{**owner, "blockOwnerDeletion": True}]}}
    nothing = OwnerReferencesPermissionEnforcement(Questions(Rights()), find)
    await validate(nothing, request("pods", free))
    await validate(nothing, request("pods", held, operation="UPDATE", old=held))
    with pytest.raises(APIError) as raised:
        await validate(nothing, request("pods", free, operation="UPDATE", old=named()))
    assert raised.value.message == (
        'pods "x" is forbidden: cannot set an ownerRef on a resource you can\'t delete: not listed, <nil>'
    )
    with pytest.raises(APIError, match="refers to a resource you can't set finalizers on: not listed, <nil>"):
        await validate(nothing, request("pods", held))
    rights = Rights(("delete", "pods", "x"), ("update", "replicasets/finalizers", "rs"))
    able = OwnerReferencesPermissionEnforcement(Questions(rights), find)
    await validate(able, request("pods", held, operation="UPDATE", old=free))
    unknown = {"metadata": {"ownerReferences": [{**owner, "kind": "Odd", "blockOwnerDeletion": True}]}}
    with pytest.raises(APIError, match="cannot find RESTMapping for APIVersion apps/v1 Kind Odd"):
        await validate(able, request("pods", unknown))
    assert not handled(able, request("pods", held, operation="UPDATE", subresource="status", old=free))


# Events, images, services


async def test_events_are_limited_by_kind() -> None:
    now = [0.0]
    limits = [Limit("Server", 10, 3), Limit("Namespace", 1, 2), Limit("SourceAndObject", 1, 1, buckets=1)]
    plugin = EventRateLimit(limits, clock=lambda: now[0])

    def event(component: str, **more: Any) -> Any:
        return request("events", named(source={"component": component}, involvedObject={"name": "p"}), **more)

    await validate(plugin, event("a"))
    await validate(plugin, event("b"))
    await validate(plugin, event("c", dry_run=True))
    with pytest.raises(APIError) as raised:
        await validate(plugin, event("b"))
    assert (raised.value.code, raised.value.reason) == (429, "TooManyRequests")
    assert raised.value.message == (
        "Too many requests: limit reached on type Namespace for key ns,limit reached on type SourceAndObject for key bp"
    )
    now[0] = 1.0
    await validate(plugin, event("b"))
    assert not handled(plugin, request("events", named(), group="events.k8s.io"))


class Reviewer:
    """Another server: answers in turn, the last one for ever."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.bodies: list[bytes] = []

    async def __call__(self, body: bytes) -> tuple[int, bytes]:
        self.bodies.append(body)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]


async def no_pause(seconds: float) -> None:
    return None


def reviewed(reviewer: Reviewer, *, allow: bool = False, now: list[float] | None = None) -> ImagePolicyWebhook:
    clock = now or [0.0]
    policy = ImagePolicy("k", 300.0, 30.0, 0.5, allow)
    return ImagePolicyWebhook(policy, reviewer, clock=lambda: clock[0], pause=no_pause)


async def test_another_server_judges_images() -> None:
    now = [0.0]
    reviewer = Reviewer((500, b""), (200, b'{"status":{"allowed":true,"auditAnnotations":{"k":"v"}}}'))
    plugin = reviewed(reviewer, now=now)
    attributes = request("pods", pod(annotations={"a.image-policy.k8s.io/x": "1", "other": "2"}))
    await validate(plugin, attributes)
    await validate(plugin, request("pods", pod(annotations={"a.image-policy.k8s.io/x": "1"})))
    assert len(reviewer.bodies) == 2
    assert b'"annotations":{"a.image-policy.k8s.io/x":"1"}' in reviewer.bodies[0]
    assert attributes.context.annotations == {"imagepolicywebhook.image-policy.k8s.io/k": "v"}
    now[0] = 301.0
    await validate(plugin, request("pods", pod(annotations={"a.image-policy.k8s.io/x": "1"})))
    assert len(reviewer.bodies) == 3
    no = reviewed(Reviewer((200, b'{"status":{"allowed":false,"reason":"bad"}}')))
    with pytest.raises(APIError, match="denied one or more images: bad"):
        await validate(no, request("pods", pod()))


@pytest.mark.parametrize("answer", [OSError("refused"), (404, b""), (200, b"junk"), (200, b"[]"), (503, b"")])
async def test_a_reviewer_that_fails(answer: Any) -> None:
    with pytest.raises(APIError) as raised:
        await validate(reviewed(Reviewer(answer)), request("pods", pod()))
    assert raised.value.code == 403
    attributes = request("pods", pod())
    await validate(reviewed(Reviewer(answer), allow=True), attributes)
    assert attributes.context.annotations == {"imagepolicywebhook.image-policy.k8s.io/failed-open": "true"}


async def test_external_addresses_of_services() -> None:
    plugin = DenyServiceExternalIPs()
    two, one = named(spec={"externalIPs": ["1.1.1.1", "2.2.2.2"]}), named(spec={"externalIPs": ["1.1.1.1"]})
    await validate(plugin, request("services", one, operation="UPDATE", old=two))
    with pytest.raises(APIError, match=r"Use of external IPs is denied by admission control\."):
        await validate(plugin, request("services", two, operation="UPDATE", old=one))


async def test_everything_and_nothing() -> None:
    await admit(AlwaysAdmit(), request("pods", pod()))
    with pytest.raises(APIError, match="admission control is denying all modifications"):
        await admit(AlwaysDeny(), request("pods", pod()))

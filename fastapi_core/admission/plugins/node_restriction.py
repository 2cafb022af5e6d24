"""NodeRestriction: a kubelet changes its own node and what belongs to the pods on it, and nothing else."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from fastapi_core.admission.chain import CREATE, DELETE, UPDATE, Attributes, Plugin
from fastapi_core.admission.objects import Objects, annotations_of
from fastapi_core.admission.plugins.accounts import MIRROR, configmap_names, secret_names
from fastapi_core.admission.questions import Questions
from fastapi_core.admission.refusals import forbidden
from fastapi_core.errors import APIError, not_found
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.request.context import User

PREFIX, GROUP = "system:node:", "system:nodes"
LEASES = "kube-node-lease"
AUDIENCE_VERB = "request-serviceaccounts-token-audience"
_SIGNERS = frozenset({"kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"})
_RESTRICTED = "node-restriction.kubernetes.io"
_KUBELET_LABELS = frozenset(
    {
        "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
        "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type", "kubernetes.io/os", "kubernetes.io/arch",
        "beta.kubernetes.io/os", "beta.kubernetes.io/arch", "node.kubernetes.io/windows-build",
    }
)  # fmt: skip
_KUBELET_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")


def node_of(user: User) -> str | None:
    """The name of the node a user is, None for others."""
    if not user.name.startswith(PREFIX) or GROUP not in user.groups:
        return None
    return user.name[len(PREFIX) :]


class NodeRestriction(Plugin):
    name = "NodeRestriction"

    def __init__(self, pods: Objects, nodes: Objects, questions: Questions) -> None:
        self._pods = pods
        self._nodes = nodes
        self._questions = questions
        self._rules: dict[tuple[str, str], Callable[[str, Attributes], Awaitable[None] | None]] = {
            ("", "pods"): self._pod,
            ("", "nodes"): _node,
            ("", "persistentvolumeclaims"): _claim,
            ("", "serviceaccounts"): self._token,
            ("coordination.k8s.io", "leases"): _lease,
            ("storage.k8s.io", "csinodes"): _csi_node,
            ("resource.k8s.io", "resourceslices"): _slice,
            ("certificates.k8s.io", "certificatesigningrequests"): _signing_request,
        }

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return operation in (CREATE, UPDATE, DELETE) and (definition.group, definition.plural) in self._rules

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        node = node_of(attributes.context.user)
        if node is None:
            return None
        if not node:
            raise forbidden(attributes, f'could not determine node from user "{attributes.context.user.name}"')
        definition = attributes.definition
        return self._rules[definition.group, definition.plural](node, attributes)

    # Pods

    def _pod(self, node: str, attributes: Attributes) -> None:
        subresource, operation = attributes.subresource, attributes.operation
        if subresource == "status":
            _pod_status(node, attributes)
        elif subresource == "eviction":
            pod = self._existing(attributes, attributes.name)
            if (pod.get("spec") or {}).get("nodeName") != node:
                text = f"node {node} can only evict pods with spec.nodeName set to itself"
                raise forbidden(attributes, text)
        elif subresource:
            text = f"unexpected pod subresource \"{subresource}\", only 'status' and 'eviction' are allowed"
            raise forbidden(attributes, text)
        elif operation == CREATE:
            self._mirror(node, attributes)
        elif operation == DELETE:
            pod = attributes.old or self._existing(attributes, attributes.name)
            if (pod.get("spec") or {}).get("nodeName") != node:
                raise forbidden(attributes, f'node "{node}" can only delete pods with spec.nodeName set to itself')
        else:
            text = f'unexpected operation "{operation}", node "{node}" can only create and delete mirror pods'
            raise forbidden(attributes, text)

    def _existing(self, attributes: Attributes, name: str) -> Tree:
        pod = self._pods.get(attributes.namespace, name)
        if pod is None:
            raise not_found("pods", "", name)
        return pod

    def _mirror(self, node: str, attributes: Attributes) -> None:
        """The picture of a static pod: on this node, owned by it, using nothing of the API."""
        pod = attributes.object or {}
        spec = pod.get("spec") or {}

        def refuse(text: str) -> APIError:
            return forbidden(attributes, f'node "{node}" {text}')

        if MIRROR not in annotations_of(pod):
            text = f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods'
            raise forbidden(attributes, text)
        if spec.get("nodeName") != node:
            raise refuse("can only create pods with spec.nodeName set to itself")
        owners = pod["metadata"].get("ownerReferences") or []
        if len(owners) > 1:
            raise refuse("can only create pods with a single owner reference set to itself")
        owner = owners[0] if owners else {}
        if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
            raise refuse("can only create pods with an owner reference set to itself")
        if not owner.get("controller"):
            raise refuse("can only create pods with a controller owner reference set to itself")
        if owner.get("blockOwnerDeletion"):
            raise refuse("must not set blockOwnerDeletion on an owner reference")
        found = self._nodes.get("", node)
        if found is None:
            raise not_found("nodes", "", node)
        uid = found["metadata"].get("uid")
        if owner.get("uid") != uid:
            raise forbidden(attributes, f"node {node} UID mismatch: expected {owner.get('uid', '')} got {uid}")
        for what in _references(spec):
            raise refuse(f"can not create pods that reference {what}")

    # Tokens

    def _token(self, node: str, attributes: Attributes) -> Awaitable[None] | None:
        if attributes.operation != CREATE or attributes.subresource != "token":
            return None
        spec = (attributes.object or {}).get("spec") or {}
        bound = spec.get("boundObjectRef") or {}
        if bound.get("apiVersion") != "v1" or bound.get("kind") != "Pod" or not bound.get("name"):
            raise forbidden(attributes, "node requested token not bound to a pod")
        if not bound.get("uid"):
            raise forbidden(attributes, "node requested token with a pod binding without a uid")
        pod = self._existing(attributes, bound["name"])
        if pod["metadata"].get("uid") != bound["uid"]:
            text = f"the UID in the bound object reference ({bound['uid']}) does not match the UID in record."
            raise forbidden(attributes, f"{text} The object might have been deleted and then recreated")
        if (pod.get("spec") or {}).get("nodeName") != node:
            raise forbidden(attributes, "node requested token bound to a pod scheduled on a different node")
        audiences: list[str] = spec.get("audiences") or []
        if len(audiences) > 1:
            raise forbidden(attributes, "node may only request 0 or 1 audiences")
        audience = audiences[0] if audiences else ""
        return None if audience in _audiences(pod) else self._audience(attributes, audience)

    async def _audience(self, attributes: Attributes, audience: str) -> None:
        """An audience the pod does not mount a token for takes a right of its own."""
        reply = await self._questions.ask(
            attributes,
            AUDIENCE_VERB,
            group="",
            version="",
            resource=audience,
            namespace=attributes.namespace,
            name=attributes.name,
        )
        if not reply.allowed:
            raise forbidden(attributes, f'audience "{audience}" not found in pod spec volume')


def _audiences(pod: Tree) -> set[str]:
    """Audiences of the tokens a pod mounts; "" for the server's own."""
    return {
        source["serviceAccountToken"].get("audience") or ""
        for volume in (pod.get("spec") or {}).get("volumes") or ()
        for source in (volume.get("projected") or {}).get("sources") or ()
        if source.get("serviceAccountToken") is not None
    }


def _references(spec: Tree) -> Iterable[str]:
    """Kinds of objects a pod refers to."""
    if spec.get("serviceAccountName"):
        yield "a service account"
    if any(True for _ in secret_names(spec)):
        yield "secrets"
    if any(True for _ in configmap_names(spec)):
        yield "configmaps"
    volumes = spec.get("volumes") or ()
    sources = [source for volume in volumes for source in (volume.get("projected") or {}).get("sources") or ()]
    if any(source.get("clusterTrustBundle") is not None for source in sources):
        yield "clustertrustbundles"
    if any(volume.get("persistentVolumeClaim") is not None for volume in volumes):
        yield "persistentvolumeclaims"
    if spec.get("resourceClaims"):
        yield "resourceclaims"


def _pod_status(node: str, attributes: Attributes) -> None:
    if attributes.operation != UPDATE:
        raise forbidden(attributes, f'unexpected operation "{attributes.operation}"')
    new, old = attributes.object or {}, attributes.old or {}
    if (old.get("spec") or {}).get("nodeName") != node:
        text = f'node "{node}" can only update pod status for pods with spec.nodeName set to itself'
        raise forbidden(attributes, text)
    if (new["metadata"].get("labels") or {}) != (old["metadata"].get("labels") or {}):
        raise forbidden(attributes, f'node "{node}" cannot update labels through pod status')
    states = [(tree.get("status") or {}) for tree in (new, old)]
    if len({str(state.get("resourceClaimStatuses") or []) for state in states}) > 1:
        raise forbidden(attributes, f'node "{node}" cannot update resource claim statues')
    if len({str(state.get("extendedResourceClaimStatus")) for state in states}) > 1:
        raise forbidden(attributes, f'node "{node}" cannot update extended resource claim status')


# Nodes


def _node(node: str, attributes: Attributes) -> None:
    if attributes.name != node and (attributes.operation != CREATE or _own_name(attributes) != node):
        asked = attributes.name or _own_name(attributes)
        raise forbidden(attributes, f'node "{node}" is not allowed to modify node "{asked}"')
    tree, old = attributes.object, attributes.old
    if tree is None:
        return
    spec = tree.get("spec") or {}
    labels: Mapping[str, str] = tree["metadata"].get("labels") or {}
    if attributes.operation == CREATE:
        if spec.get("configSource") is not None:
            text = f'node "{node}" is not allowed to create pods with a non-nil configSource'
            raise forbidden(attributes, text)
        wrong = forbidden_labels(labels, {})
        if wrong:
            text = f'node "{node}" is not allowed to set the following labels: {", ".join(wrong)}'
            raise forbidden(attributes, text)
    elif attributes.operation == UPDATE and old is not None:
        before = old.get("spec") or {}
        source = spec.get("configSource")
        if source is not None and source != before.get("configSource"):
            text = f'node "{node}" is not allowed to update configSource to a new non-nil configSource'
            raise forbidden(attributes, text)
        if (spec.get("taints") or []) != (before.get("taints") or []):
            raise forbidden(attributes, f'node "{node}" is not allowed to modify taints')
        owners = [tree["metadata"].get("ownerReferences") or [], old["metadata"].get("ownerReferences") or []]
        if owners[0] != owners[1]:
            raise forbidden(attributes, f'node "{node}" is not allowed to modify ownerReferences')
        wrong = forbidden_labels(labels, old["metadata"].get("labels") or {})
        if wrong:
            raise forbidden(attributes, f"is not allowed to modify labels: {', '.join(wrong)}")


def forbidden_labels(new: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    """Labels that differ and are not a kubelet's to set: they steer workloads."""
    changed = {key for key in {*new, *old} if new.get(key) != old.get(key)}
    return sorted(key for key in changed if not _kubelet_may(key))


def _kubelet_may(key: str) -> bool:
    domain, slash, _ = key.partition("/")
    if not slash:
        return True
    if _within(domain, _RESTRICTED):
        return False
    if not (_within(domain, "kubernetes.io") or _within(domain, "k8s.io")):
        return True
    return key in _KUBELET_LABELS or any(_within(domain, known) for known in _KUBELET_DOMAINS)


def _within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith("." + parent)


# Others


def _own_name(attributes: Attributes) -> str:
    name: str = (attributes.object or {}).get("metadata", {}).get("name") or ""
    return name


def _claim(node: str, attributes: Attributes) -> None:
    if attributes.subresource != "status":
        raise forbidden(attributes, "may only update PVC status")
    if attributes.operation != UPDATE:
        raise forbidden(attributes, f'unexpected operation "{attributes.operation}"')
    if _without_sizes(attributes.object or {}) != _without_sizes(attributes.old or {}):
        text = f'node "{node}" is not allowed to update fields other than status.capacity and status.conditions'
        raise forbidden(attributes, text)


def _without_sizes(claim: Tree) -> Tree:
    """A claim but for what a kubelet reports."""
    reported = ("capacity", "conditions", "allocatedResourceStatuses", "allocatedResources")
    status = {k: v for k, v in (claim.get("status") or {}).items() if k not in reported and v not in (None, {}, [])}
    kept = {k: v for k, v in claim["metadata"].items() if k not in ("resourceVersion", "managedFields")}
    rest: dict[str, Any] = {k: v for k, v in claim.items() if k not in ("status", "metadata")}
    return {**rest, "metadata": kept, "status": status}


def _lease(node: str, attributes: Attributes) -> None:
    if attributes.namespace != LEASES:
        raise forbidden(attributes, f'can only access leases in the "{LEASES}" system namespace')
    if (_own_name(attributes) if attributes.operation == CREATE else attributes.name) != node:
        raise forbidden(attributes, "can only access node lease with the same name as the requesting node")


def _csi_node(node: str, attributes: Attributes) -> None:
    if (_own_name(attributes) if attributes.operation == CREATE else attributes.name) != node:
        raise forbidden(attributes, "can only access CSINode with the same name as the requesting node")


def _slice(node: str, attributes: Attributes) -> None:
    tree = attributes.object if attributes.operation == CREATE else attributes.old
    if attributes.operation == UPDATE or ((tree or {}).get("spec") or {}).get("nodeName") == node:
        return
    verb = "create" if attributes.operation == CREATE else "delete"
    raise forbidden(attributes, f"can only {verb} ResourceSlice with the same NodeName as the requesting node")


def _signing_request(node: str, attributes: Attributes) -> None:
    spec = (attributes.object or {}).get("spec") or {}
    if attributes.operation != CREATE or attributes.subresource or spec.get("signerName") not in _SIGNERS:
        return
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        request = x509.load_pem_x509_csr(base64.b64decode(spec.get("request") or ""))
    except (ValueError, binascii.Error) as error:
        raise forbidden(attributes, f"unable to parse csr: {error}") from None
    names = [str(found.value) for found in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if names != [PREFIX + node]:
        raise forbidden(attributes, f"can only create a node CSR with CN={PREFIX}{node}")

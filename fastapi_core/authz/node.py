"""Node authorization: a kubelet may do to its own node, and read of others, what its pods need.

Concerns users `system:node:NAME` in the group `system:nodes`. Where the objects of a request are not enough (who may
create or change what), admission (NodeRestriction) has the last word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi_core.authz.base import ALLOWED, NO_OPINION, NOTHING, Attributes, Decision, Grants, Verdict
from fastapi_core.authz.node_graph import ACCOUNTS, CLAIMS, CONFIG_MAPS, RESOURCE_CLAIMS, SECRETS, VOLUMES
from fastapi_core.authz.policies import node_rules
from fastapi_core.authz.rules import RuleSet
from fastapi_core.errors import go_quote
from fastapi_core.meta.selectors import SelectorError, parse_fields
from fastapi_core.request.context import User

if TYPE_CHECKING:
    from fastapi_core.authz.node_graph import NodeGraph

PREFIX, GROUP = "system:node:", "system:nodes"
LEASES_NAMESPACE = "kube-node-lease"
_OWN_VERBS = frozenset({"get", "create", "update", "patch", "delete"})
_READS = frozenset({"get", "list", "watch"})
_PASSING_ALLOWED = ALLOWED._replace(lasting=False)


def node_of(user: User) -> str | None:
    """The node a user is, perhaps without a name; None for other users."""
    if user.name.startswith(PREFIX) and GROUP in user.groups:
        return user.name[len(PREFIX) :]
    return None


def _no(reason: str) -> Verdict:
    return Verdict(Decision.NO_OPINION, reason)


class NodeAuthorizer:
    """Verdicts that rest on the pods of the moment do not last, so that pods need not change `generation`."""

    generation = 0

    def __init__(self, graph: NodeGraph) -> None:
        self._graph = graph
        self._rules: RuleSet | None = None
        self._judges = {
            ("", SECRETS): self._read,
            ("", CONFIG_MAPS): self._read,
            ("", CLAIMS): self._claim,
            ("", VOLUMES): self._get,
            ("resource.k8s.io", RESOURCE_CLAIMS): self._get,
            ("storage.k8s.io", "volumeattachments"): self._get,
            ("", ACCOUNTS): self._account,
            ("coordination.k8s.io", "leases"): self._lease,
            ("storage.k8s.io", "csinodes"): self._csi_node,
            ("resource.k8s.io", "resourceslices"): self._slice,
            ("", "nodes"): self._node,
            ("", "pods"): self._pod,
        }

    def authorize(self, attributes: Attributes) -> Verdict:
        node = node_of(attributes.user)
        if node is None:
            return NO_OPINION
        if not node:
            return _no(f"unknown node for user {go_quote(attributes.user.name)}")
        if attributes.is_resource_request:
            judge = self._judges.get((attributes.api_group, attributes.resource))
            if judge is not None:
                return judge(node, attributes)
        if self._rules is None:
            self._rules = RuleSet(node_rules())
        return ALLOWED if self._rules.allows(attributes) else NO_OPINION

    def grants(self, user: User, namespace: str) -> Grants:
        if node_of(user) is None:
            return NOTHING
        return Grants([], [], True, "node authorizer does not support user rule resolution")

    # What is related to the node

    def _related(self, node: str, a: Attributes) -> Verdict:
        if not a.name:
            return _no("No Object name found")
        graph = self._graph
        if a.resource == "pods":
            found = graph.has_pod(node, a.namespace, a.name)
        elif a.resource == "volumeattachments":
            found = graph.has_attachment(node, a.name)
        elif a.resource == "resourceslices":
            found = graph.has_slice(node, a.name)
        else:
            found = graph.refers(node, a.resource, a.namespace, a.name)
        return _PASSING_ALLOWED if found else _unrelated(node)

    def _get(self, node: str, a: Attributes) -> Verdict:
        if a.verb != "get":
            return _no("can only get individual resources of this type")
        if a.subresource:
            return _no("cannot get subresource")
        return self._related(node, a)

    def _read(self, node: str, a: Attributes) -> Verdict:
        if a.verb not in _READS:
            return _no("can only read resources of this type")
        if a.subresource:
            return _no("cannot read subresource")
        if not a.namespace:
            return _no("can only read namespaced object of this type")
        return self._related(node, a)

    def _claim(self, node: str, a: Attributes) -> Verdict:
        if a.subresource != "status":
            return self._get(node, a)
        if a.verb not in ("update", "patch"):
            return _no("can only get/update/patch this type")
        return self._related(node, a)

    def _account(self, node: str, a: Attributes) -> Verdict:
        if a.verb == "get" and not a.subresource:
            return self._related(node, a)
        if a.verb != "create" or not a.name:
            return _no("can only create tokens for individual service accounts")
        if a.subresource != "token":
            return _no("can only create token subresource of serviceaccount")
        return self._related(node, a)

    # What carries the node's name

    def _lease(self, node: str, a: Attributes) -> Verdict:
        if a.verb not in _OWN_VERBS:
            return _no("can only get, create, update, patch, or delete a node lease")
        if a.namespace != LEASES_NAMESPACE:
            return _no(f"can only access leases in the {go_quote(LEASES_NAMESPACE)} system namespace")
        if a.verb != "create" and a.name != node:
            return _no("can only access node lease with the same name as the requesting node")
        return ALLOWED

    def _csi_node(self, node: str, a: Attributes) -> Verdict:
        if a.verb not in _OWN_VERBS:
            return _no("can only get, create, update, patch, or delete a CSINode")
        if a.subresource:
            return _no("cannot authorize CSINode subresources")
        if a.verb != "create" and a.name != node:
            return _no("can only access CSINode with the same name as the requesting node")
        return ALLOWED

    def _slice(self, node: str, a: Attributes) -> Verdict:
        if a.subresource:
            return _no("cannot authorize ResourceSlice subresources")
        if a.verb == "create":
            return ALLOWED
        if a.verb in ("get", "update", "patch", "delete"):
            return self._related(node, a)
        if a.verb in ("watch", "list", "deletecollection"):
            if _selects(a, "spec.nodeName", node):
                return ALLOWED
            return _no("can only list/watch/deletecollection resourceslices with nodeName field selector")
        return _no(
            "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, "
            "delete, deletecollection"
        )

    def _node(self, node: str, a: Attributes) -> Verdict:
        if a.subresource == "status":
            return ALLOWED if a.verb in ("update", "patch") else NO_OPINION
        if a.subresource:
            return NO_OPINION
        if a.verb in ("create", "update", "patch"):
            return ALLOWED
        if a.verb not in _READS:
            return NO_OPINION
        if a.name == node:
            return ALLOWED
        if not a.name:
            return _no(f"node '{node}' cannot read all nodes, only its own Node object")
        return _no(f"node '{node}' cannot read '{a.name}', only its own Node object")

    def _pod(self, node: str, a: Attributes) -> Verdict:
        if a.subresource == "status":
            return ALLOWED if a.verb in ("update", "patch") else NO_OPINION
        if a.subresource:
            return ALLOWED if (a.subresource, a.verb) == ("eviction", "create") else NO_OPINION
        if a.verb == "get":
            return self._get(node, a)
        if a.verb in ("list", "watch"):
            if _selects(a, "spec.nodeName", node):
                return ALLOWED
            if a.name:
                return self._related(node, a)
            return _no("can only list/watch pods with spec.nodeName field selector")
        return ALLOWED if a.verb in ("create", "delete") else NO_OPINION


def _unrelated(node: str) -> Verdict:
    reason = f"no relationship found between node '{node}' and this object"
    return Verdict(Decision.NO_OPINION, reason, lasting=False)


def _selects(a: Attributes, field: str, value: str) -> bool:
    """Whether a field selector takes nothing but objects with this value."""
    try:
        requirements = parse_fields(a.field_selector)
    except SelectorError:
        return False
    return any(r.field == field and r.operator == "=" and r.value == value for r in requirements)

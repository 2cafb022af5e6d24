"""Who may do what: the authorizers the options name, over the policy objects in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi_core.authn.base import MASTERS
from fastapi_core.authz import modes
from fastapi_core.authz.base import AlwaysAllow, AlwaysDeny, PrivilegedGroup
from fastapi_core.authz.node import NodeAuthorizer
from fastapi_core.authz.node_graph import NodeGraph
from fastapi_core.authz.reload import Exchangeable
from fastapi_core.authz.union import AuthorizerUnion

if TYPE_CHECKING:
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.authz.modes import AuthorizerConfig
    from fastapi_core.controlplane.resources import Resources
    from fastapi_core.options.authorization import Authorization
    from fastapi_core.options.complete import Completed
    from fastapi_core.options.options import Options

#: What nodes are related to: pods, volumes, attachments, resource slices.
_GRAPH = (
    "/registry/pods/",
    "/registry/persistentvolumes/",
    "/registry/volumeattachments/",
    "/registry/resourceslices/",
)


def authorizer(completed: Completed, resources: Resources) -> Authorizer:
    """The authorizers in the order of the options, the first opinion wins; exchanged when their file changes."""
    options = completed.options.authorization
    authority = _Authority(options, resources)
    if not options.authorization_config:
        return authority.make()
    found = Exchangeable(authority.make)
    completed.config.files.follow([options.authorization_config], found.exchange)
    return found


def uses_roles(options: Options) -> bool:
    """Whether roles and bindings count, so that the default ones have to be there."""
    return any(entry.type == modes.RBAC for entry in options.authorization.authorizers())


class _Authority:
    """Makes authorizers, and makes them again when the configuration has changed."""

    def __init__(self, options: Authorization, resources: Resources) -> None:
        self._options = options
        self._resources = resources
        stores = resources.stores
        self._node = NodeAuthorizer(NodeGraph(*(stores[prefix].cache for prefix in _GRAPH)))

    def make(self) -> Authorizer:
        # Administrators come first: no configuration shuts them out.
        return AuthorizerUnion([PrivilegedGroup(MASTERS), *map(self._one, self._options.authorizers())])

    def _one(self, entry: AuthorizerConfig) -> Authorizer:
        if entry.type == modes.NODE:
            return self._node
        if entry.type == modes.RBAC:
            # Read now: the first request should not have to wait for it.
            self._resources.roles.load()
            return self._resources.roles
        if entry.type == modes.ABAC:
            from fastapi_core.authz import abac

            return abac.load(self._options.authorization_policy_file)
        if entry.type == modes.WEBHOOK:
            from fastapi_core.authn.outbound import kept, load_kubeconfig
            from fastapi_core.authz.webhook import WebhookAuthorizer

            return WebhookAuthorizer(kept(load_kubeconfig(entry.kubeconfig)), entry.settings)
        return AlwaysAllow() if entry.type == modes.ALWAYS_ALLOW else AlwaysDeny()

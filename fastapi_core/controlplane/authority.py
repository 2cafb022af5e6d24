"""Who may do what: the authorizers the options name, over the policy objects in the store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fastapi_core.authn.base import MASTERS
from fastapi_core.authz import modes
from fastapi_core.authz.base import AlwaysAllow, AlwaysDeny, PrivilegedGroup
from fastapi_core.authz.node import NodeAuthorizer
from fastapi_core.authz.node_graph import NodeGraph
from fastapi_core.authz.reload import Exchangeable
from fastapi_core.authz.union import AuthorizerUnion
from fastapi_core.controlplane.keeper import Keeper
from fastapi_core.obs import logs

if TYPE_CHECKING:
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.authz.modes import AuthorizerConfig
    from fastapi_core.controlplane.resources import Resources
    from fastapi_core.options.authorization import Authorization
    from fastapi_core.options.complete import Completed
    from fastapi_core.options.options import Options

log = logs.get("authz")

#: Seconds between two looks at the configuration file.
_LOOK_SECONDS = 5.0
#: What nodes are related to: pods, volumes, attachments, resource slices.
_GRAPH = (
    "/registry/pods/",
    "/registry/persistentvolumes/",
    "/registry/volumeattachments/",
    "/registry/resourceslices/",
)


def authorizer(completed: Completed, resources: Resources) -> Authorizer:
    """The authorizers in the order of the options, the first opinion wins."""
    return _Authority(completed.options.authorization, resources).authorizer()


def follower(options: Options, found: Authorizer) -> Keeper | None:
    """What looks after the configuration while the server runs."""
    path = options.authorization.authorization_config
    if not path or not isinstance(found, Exchangeable):
        return None
    return Keeper("authorization-config", _Follower(path, found), _LOOK_SECONDS)


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

    def authorizer(self) -> Authorizer:
        return Exchangeable(self._union) if self._options.authorization_config else self._union()

    def _union(self) -> Authorizer:
        # Administrators come first: no configuration shuts them out.
        return AuthorizerUnion([PrivilegedGroup(MASTERS), *map(self._make, self._options.authorizers())])

    def _make(self, entry: AuthorizerConfig) -> Authorizer:
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
            from fastapi_core.authn.outbound import load_kubeconfig
            from fastapi_core.authz.webhook import WebhookAuthorizer

            return WebhookAuthorizer(load_kubeconfig(entry.kubeconfig), entry.settings)
        return AlwaysAllow() if entry.type == modes.ALWAYS_ALLOW else AlwaysDeny()


class _Follower:
    """Exchanges the authorizers when their file is another one than last time."""

    def __init__(self, path: str, authorizer: Exchangeable) -> None:
        self._path = path
        self._authorizer = authorizer
        self._seen = _stamp(path)

    async def __call__(self) -> None:
        now = _stamp(self._path)
        if now == self._seen:
            return
        self._seen = now
        try:
            self._authorizer.exchange()
        except (OSError, ValueError) as error:
            log.error("The authorization configuration cannot be used, the last good one stays in force", error)
        else:
            log.info("Authorization configuration taken", file=self._path)


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino

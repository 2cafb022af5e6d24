"""Who may do what: the authorizers the options name, over the policy objects in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi_core.authn.base import MASTERS
from fastapi_core.authz.base import AlwaysAllow, AlwaysDeny, PrivilegedGroup
from fastapi_core.authz.union import AuthorizerUnion
from fastapi_core.options import authorization as modes

if TYPE_CHECKING:
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.controlplane.resources import Resources
    from fastapi_core.options.complete import Completed
    from fastapi_core.options.options import Options


def authorizer(completed: Completed, resources: Resources) -> Authorizer:
    """The authorizers in the order of the options, the first opinion wins."""
    options = completed.options.authorization
    made: list[Authorizer] = [PrivilegedGroup(MASTERS)]
    for mode in options.authorization_mode:
        if mode == modes.ALWAYS_ALLOW:
            made.append(AlwaysAllow())
        elif mode == modes.ALWAYS_DENY:
            made.append(AlwaysDeny())
        elif mode == modes.RBAC:
            # Read now: the first request should not have to wait for it.
            resources.roles.load()
            made.append(resources.roles)
    return AuthorizerUnion(made)


def uses_roles(options: Options) -> bool:
    """Whether roles and bindings count, so that the default ones have to be there."""
    return modes.RBAC in options.authorization.authorization_mode

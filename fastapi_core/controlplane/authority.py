"""Who may do what: the authorizers the options name, over the policy objects in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.controlplane.resources import Resources
    from fastapi_core.options.complete import Completed


def authorizer(completed: Completed, resources: Resources) -> Authorizer:
    """The authorizers in the order of the options, the first opinion wins."""
    return completed.config.authorizer

"""Who may come in: the authenticators of the options, and those that look into the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi_core.authn.base import Authenticator
    from fastapi_core.controlplane.resources import Resources
    from fastapi_core.options.complete import Completed


def authenticator(completed: Completed, resources: Resources) -> Authenticator:
    """The union of all authenticators, in the reference's order."""
    return completed.config.authenticator

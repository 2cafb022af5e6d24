"""What subresources reach beyond the resource they belong to: other resources, the token signer, the kubelets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fastapi_core.registry.services import Services

if TYPE_CHECKING:
    from fastapi_core.authn.base import Audiences
    from fastapi_core.authn.issuer import TokenIssuer
    from fastapi_core.registry.store import ResourceStore
    from fastapi_core.rest.scope import Scope
    from fastapi_core.rest.token_review import Check
    from fastapi_core.rest.upstream import Upstreams

PODS, NODES = "/registry/pods/", "/registry/minions/"
SECRETS, BUDGETS = "/registry/secrets/", "/registry/poddisruptionbudgets/"


class Backends:
    """`stores` by key prefix; `scopes` by (group, plural), filled while the routes are made."""

    def __init__(self, stores: Mapping[str, ResourceStore], issuer: TokenIssuer, upstreams: Upstreams) -> None:
        self.stores = stores
        self.issuer = issuer
        self.upstreams = upstreams
        self.scopes: dict[tuple[str, str], Callable[[], Scope]] = {}
        self.reviewer: tuple[Check, Audiences] | None = None
        """Who judges the tokens of reviews, and the audiences of the API; set before the routes are made."""
        self.services = Services(stores)

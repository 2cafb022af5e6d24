"""May they: administrators and some paths at once, everything else as the core API answers to a SubjectAccessReview."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastapi_core.authn.base import MASTERS
from fastapi_core.authz.base import ALLOWED, NO_OPINION, Attributes, PrivilegedGroup, Verdict
from fastapi_core.authz.modes import Settings
from fastapi_core.authz.union import AuthorizerUnion

if TYPE_CHECKING:
    from fastapi_core.authn.outbound import Asked
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.extension.delegated.options import DelegatedOptions

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
TIMEOUT = 10.0
"""Seconds for a review, however often it is asked for."""


class AllowedPaths:
    """Everybody may do anything at these paths; one that ends in * stands for all that begin so."""

    generation = 0

    def __init__(self, paths: Sequence[str]) -> None:
        given = [path.removeprefix("/") for path in paths]
        self._exact = frozenset(path for path in given if not path.endswith("*"))
        self._prefixes = tuple(path[:-1] for path in given if path.endswith("*"))

    def authorize(self, attributes: Attributes) -> Verdict:
        if attributes.is_resource_request:
            return NO_OPINION
        path = attributes.path.removeprefix("/")
        return ALLOWED if path in self._exact or path.startswith(self._prefixes) else NO_OPINION


def authorizer(options: DelegatedOptions, reviews: Asked | None) -> Authorizer:
    """The reference's order. Without `reviews` nobody but administrators gets further than the paths."""
    found: list[Authorizer] = [PrivilegedGroup(MASTERS), AllowedPaths(options.authorization_always_allow_paths)]
    if reviews is not None:
        from fastapi_core.authz.webhook import WebhookAuthorizer

        settings = Settings(
            "v1",
            options.authorization_webhook_cache_authorized_ttl,
            options.authorization_webhook_cache_unauthorized_ttl,
            TIMEOUT,
            within=TIMEOUT,
        )
        found.append(WebhookAuthorizer(reviews, settings))
    return AuthorizerUnion(found)

"""Flags of delegated authentication and authorization (names and defaults of the reference's generic API servers)."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi_core.options.flags import BOOL, DURATION, STRING, STRINGS, flag


@dataclass(slots=True)
class DelegatedOptions:
    """How the API server in front is reached, and what is asked of it."""

    kubeconfig: str = flag(
        "kubeconfig", STRING, "", "Kubeconfig file of the API server in front; empty: as a pod, by its service account."
    )
    authentication_kubeconfig: str = flag(
        "authentication-kubeconfig", STRING, "", "Kubeconfig for TokenReviews and the authentication ConfigMap."
    )
    authorization_kubeconfig: str = flag("authorization-kubeconfig", STRING, "", "Kubeconfig for SubjectAccessReviews.")
    authentication_skip_lookup: bool = flag(
        "authentication-skip-lookup", BOOL, False, "Do not read the authentication ConfigMap."
    )
    authentication_tolerate_lookup_failure: bool = flag(
        "authentication-tolerate-lookup-failure", BOOL, False, "Serve although the ConfigMap cannot be read."
    )
    authentication_token_webhook_cache_ttl: float = flag(
        "authentication-token-webhook-cache-ttl", DURATION, 10.0, "Time an answer to a TokenReview is remembered."
    )
    client_ca_file: str = flag("client-ca-file", STRING, "", "PEM bundle of further CAs of client certificates.")
    authorization_always_allow_paths: tuple[str, ...] = flag(
        "authorization-always-allow-paths",
        STRINGS,
        ("/healthz", "/readyz", "/livez"),
        "Paths that everybody may read without being asked about.",
    )
    authorization_webhook_cache_authorized_ttl: float = flag(
        "authorization-webhook-cache-authorized-ttl", DURATION, 10.0, "Time an allowance is remembered."
    )
    authorization_webhook_cache_unauthorized_ttl: float = flag(
        "authorization-webhook-cache-unauthorized-ttl", DURATION, 10.0, "Time a refusal is remembered."
    )


def check(options: DelegatedOptions) -> list[str]:
    """Everything that is wrong, each line with the flag and the fix."""
    return []

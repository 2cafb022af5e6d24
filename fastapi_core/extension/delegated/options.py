"""Flags of delegated authentication and authorization (names and defaults of the reference's generic API servers)."""

from __future__ import annotations

import os
from dataclasses import dataclass

from fastapi_core.options.flags import BOOL, DURATION, STRING, STRINGS, flag


@dataclass(slots=True)
class DelegatedOptions:
    """How the API server in front is reached, and what is asked of it."""

    kubeconfig: str = flag(
        "kubeconfig",
        STRING,
        "",
        "Kubeconfig file of the API server in front; empty: $KUBECONFIG, or as a pod, by its service account.",
    )
    authentication_kubeconfig: str = flag(
        "authentication-kubeconfig", STRING, "", "Kubeconfig for TokenReviews and the authentication ConfigMap."
    )
    authorization_kubeconfig: str = flag("authorization-kubeconfig", STRING, "", "Kubeconfig for SubjectAccessReviews.")
    authentication_skip_lookup: bool = flag(
        "authentication-skip-lookup", BOOL, False, "Do not read the authentication ConfigMap."
    )
    authentication_tolerate_lookup_failure: bool = flag(
        "authentication-tolerate-lookup-failure",
        BOOL,
        False,
        "Serve although the ConfigMap cannot be read; until it can be, nobody is known by a certificate or through the "
        "front server.",
    )
    authentication_token_webhook_cache_ttl: float = flag(
        "authentication-token-webhook-cache-ttl", DURATION, 10.0, "Time an answer to a TokenReview is remembered."
    )
    api_audiences: tuple[str, ...] = flag(
        "api-audiences", STRINGS, (), "Audiences a bearer token must be for; empty: those of the API server in front."
    )
    anonymous_auth: bool = flag(
        "anonymous-auth", BOOL, True, "Requests without credentials are those of system:anonymous, not refused at once."
    )
    client_ca_file: str = flag(
        "client-ca-file",
        STRING,
        "",
        "PEM bundle with the CAs of client certificates, instead of those in the ConfigMap.",
    )
    requestheader_client_ca_file: str = flag(
        "requestheader-client-ca-file",
        STRING,
        "",
        "PEM bundle; a client certificate signed by it is a front proxy's. With it the other requestheader flags count, "
        "without it what stands in the ConfigMap.",
    )
    requestheader_allowed_names: tuple[str, ...] = flag(
        "requestheader-allowed-names", STRINGS, (), "CNs of front proxies; empty: every certificate of that bundle."
    )
    requestheader_username_headers: tuple[str, ...] = flag(
        "requestheader-username-headers", STRINGS, ("x-remote-user",), "Headers a front proxy names the user in."
    )
    requestheader_uid_headers: tuple[str, ...] = flag(
        "requestheader-uid-headers", STRINGS, (), "Headers with the user's uid, such as X-Remote-Uid."
    )
    requestheader_group_headers: tuple[str, ...] = flag(
        "requestheader-group-headers", STRINGS, ("x-remote-group",), "Headers with a group each."
    )
    requestheader_extra_headers_prefix: tuple[str, ...] = flag(
        "requestheader-extra-headers-prefix", STRINGS, ("x-remote-extra-",), "Prefixes of headers with more."
    )
    authorization_always_allow_paths: tuple[str, ...] = flag(
        "authorization-always-allow-paths",
        STRINGS,
        ("/healthz", "/readyz", "/livez"),
        "Paths that everybody may read without being asked about; a * at the end stands for everything below.",
    )
    authorization_webhook_cache_authorized_ttl: float = flag(
        "authorization-webhook-cache-authorized-ttl", DURATION, 10.0, "Time an allowance is remembered."
    )
    authorization_webhook_cache_unauthorized_ttl: float = flag(
        "authorization-webhook-cache-unauthorized-ttl", DURATION, 10.0, "Time a refusal is remembered."
    )

    @property
    def looks_up(self) -> tuple[bool, bool]:
        """Whether the ConfigMap says which CAs are those of clients, and which those of front proxies."""
        wanted = not self.authentication_skip_lookup
        return wanted and not self.client_ca_file, wanted and not self.requestheader_client_ca_file


def check(options: DelegatedOptions) -> list[str]:
    """Everything that is wrong, each line with the flag and the fix."""
    wrong = []
    for name, path in (
        ("kubeconfig", options.kubeconfig),
        ("authentication-kubeconfig", options.authentication_kubeconfig),
        ("authorization-kubeconfig", options.authorization_kubeconfig),
        ("client-ca-file", options.client_ca_file),
        ("requestheader-client-ca-file", options.requestheader_client_ca_file),
    ):
        if path and not os.access(path, os.R_OK):
            if os.path.exists(path):
                wrong.append(f"--{name}: {path!r} cannot be read, check its permissions")
            elif not name.endswith("kubeconfig"):
                # A kubeconfig is waited for: the API server may be about to write it.
                wrong.append(f"--{name}: {path!r} does not exist, check the path")
    for name, seconds in (
        ("authentication-token-webhook-cache-ttl", options.authentication_token_webhook_cache_ttl),
        ("authorization-webhook-cache-authorized-ttl", options.authorization_webhook_cache_authorized_ttl),
        ("authorization-webhook-cache-unauthorized-ttl", options.authorization_webhook_cache_unauthorized_ttl),
    ):
        if seconds < 0:
            wrong.append(f"--{name}: cannot be negative, use 0 to remember nothing")
    for path in options.authorization_always_allow_paths:
        if "*" in path[:-1]:
            wrong.append(f"--authorization-always-allow-paths: {path!r}: only one * at the end is understood")
    if options.requestheader_client_ca_file and not options.requestheader_username_headers:
        wrong.append("--requestheader-username-headers: is needed with --requestheader-client-ca-file")
    return wrong

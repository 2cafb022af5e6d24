"""What the server needs to act towards others: the signer of tokens, the way to kubelets and proxied services."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi_core.authn.issuer import TokenIssuer, kept_key
from fastapi_core.options.certificates import write
from fastapi_core.rest.upstream import KubeletAccess, Upstreams

if TYPE_CHECKING:
    from fastapi_core.options.complete import Completed
    from fastapi_core.options.groups import Kubelet

KEY_FILE = "sa.key"


def token_issuer(completed: Completed) -> TokenIssuer:
    """Signs with the key of the flag, or with one of our own beside the certificates."""
    options = completed.options.authentication
    given, own = options.service_account_signing_key_file, completed.pki.path(KEY_FILE)

    def read_key() -> bytes:
        if not given:
            return kept_key(own, write)
        with open(given, "rb") as file:
            return file.read()

    return TokenIssuer(
        read_key,
        issuer=completed.credentials.issuers[0],
        audiences=completed.credentials.audiences,
        longest=int(options.service_account_max_token_expiration),
        extend=options.service_account_extend_token_expiration,
    )


def upstreams(options: Kubelet) -> Upstreams:
    return Upstreams(
        KubeletAccess(
            options.kubelet_certificate_authority,
            options.kubelet_client_certificate,
            options.kubelet_client_key,
            options.kubelet_preferred_address_types,
            options.kubelet_timeout,
        )
    )

"""Flags of authentication: who may come in."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi_core.options.flags import BOOL, DURATION, STRING, STRING_ARRAY, STRINGS, flag


@dataclass(slots=True)
class Authentication:
    """Who may come in."""

    client_ca_file: str = flag(
        "client-ca-file", STRING, "", "PEM bundle; a client certificate signed by it is the user CN with the groups O."
    )
    token_auth_file: str = flag(
        "token-auth-file", STRING, "", 'CSV file of bearer tokens: token,user,uid,"group1,group2".'
    )
    anonymous_auth: bool = flag(
        "anonymous-auth", BOOL, True, "Let requests without credentials reach the health and version paths."
    )
    service_account_issuer: tuple[str, ...] = flag(
        "service-account-issuer", STRING_ARRAY, (), "Issuer of service account tokens; the first one given is used."
    )
    service_account_signing_key_file: str = flag(
        "service-account-signing-key-file", STRING, "", "PEM file of the key that signs tokens; empty: one is made."
    )
    service_account_max_token_expiration: float = flag(
        "service-account-max-token-expiration", DURATION, 0.0, "Longest life of a token; 0 for no limit."
    )
    service_account_extend_token_expiration: bool = flag(
        "service-account-extend-token-expiration", BOOL, True, "Let tokens that pods mount live on for a year."
    )
    api_audiences: tuple[str, ...] = flag(
        "api-audiences", STRINGS, (), "Audiences of tokens that name none; empty: the issuer."
    )


def check(group: Authentication) -> list[str]:
    """Everything that is wrong, each line with the flag and the fix."""
    return []

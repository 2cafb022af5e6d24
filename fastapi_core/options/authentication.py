"""Flags of authentication: who may come in."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import fields
from urllib.parse import urlsplit

from fastapi_core.options.flags import BOOL, DURATION, STRING, STRING_ARRAY, STRINGS, Kind, flag
from fastapi_core.records import dataclass

_WEBHOOK_VERSIONS = ("v1", "v1beta1")
_SIGNING = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")
_HOUR = 3600
#: One pair an occurrence, as it was given: commas belong to the value.
_PAIR = Kind("mapStringString", lambda text: (text,), repeats=True)


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
        "anonymous-auth", BOOL, True, "Requests without credentials are those of system:anonymous, not refused at once."
    )
    authentication_config: str = flag(
        "authentication-config", STRING, "", "AuthenticationConfiguration file: token issuers and anonymous access."
    )
    enable_bootstrap_token_auth: bool = flag(
        "enable-bootstrap-token-auth", BOOL, False, "Accept the bootstrap tokens in secrets of kube-system."
    )
    authentication_token_webhook_config_file: str = flag(
        "authentication-token-webhook-config-file", STRING, "", "Kubeconfig of the server that judges bearer tokens."
    )
    authentication_token_webhook_version: str = flag(
        "authentication-token-webhook-version", STRING, "v1beta1", "Version of TokenReview it speaks: v1 or v1beta1."
    )
    authentication_token_webhook_cache_ttl: float = flag(
        "authentication-token-webhook-cache-ttl", DURATION, 120.0, "Time its answers are remembered; 0 for none."
    )
    requestheader_client_ca_file: str = flag(
        "requestheader-client-ca-file", STRING, "", "PEM bundle; a client certificate signed by it is a front proxy's."
    )
    requestheader_allowed_names: tuple[str, ...] = flag(
        "requestheader-allowed-names", STRINGS, (), "CNs of front proxies; empty: every certificate of that bundle."
    )
    requestheader_username_headers: tuple[str, ...] = flag(
        "requestheader-username-headers", STRINGS, (), "Headers a front proxy names the user in, such as X-Remote-User."
    )
    requestheader_uid_headers: tuple[str, ...] = flag(
        "requestheader-uid-headers", STRINGS, (), "Headers with the user's uid, such as X-Remote-Uid."
    )
    requestheader_group_headers: tuple[str, ...] = flag(
        "requestheader-group-headers", STRINGS, (), "Headers with a group each, such as X-Remote-Group."
    )
    requestheader_extra_headers_prefix: tuple[str, ...] = flag(
        "requestheader-extra-headers-prefix", STRINGS, (), "Prefixes of headers with more, such as X-Remote-Extra-."
    )
    oidc_issuer_url: str = flag("oidc-issuer-url", STRING, "", "https URL of the issuer of OpenID Connect tokens.")
    oidc_client_id: str = flag("oidc-client-id", STRING, "", "Audience its tokens must have.")
    oidc_ca_file: str = flag("oidc-ca-file", STRING, "", "PEM bundle of the issuer's CA; empty: the system's.")
    oidc_username_claim: str = flag("oidc-username-claim", STRING, "sub", "Claim with the user's name.")
    oidc_username_prefix: str = flag(
        "oidc-username-prefix", STRING, "", "Put before the name; empty: ISSUER# unless the claim is email; - for none."
    )
    oidc_groups_claim: str = flag("oidc-groups-claim", STRING, "", "Claim with the user's groups.")
    oidc_groups_prefix: str = flag("oidc-groups-prefix", STRING, "", "Put before each group.")
    oidc_signing_algs: tuple[str, ...] = flag(
        "oidc-signing-algs", STRINGS, ("RS256",), "Signature algorithms accepted."
    )
    oidc_required_claim: tuple[str, ...] = flag(
        "oidc-required-claim", _PAIR, (), "claim=value that every token must have; may be repeated."
    )
    service_account_issuer: tuple[str, ...] = flag(
        "service-account-issuer", STRING_ARRAY, (), "Issuers whose service account tokens count; the first one signs."
    )
    service_account_key_file: tuple[str, ...] = flag(
        "service-account-key-file", STRING_ARRAY, (), "PEM files of keys that verify tokens, besides the signing key."
    )
    service_account_signing_key_file: str = flag(
        "service-account-signing-key-file", STRING, "", "PEM file of the key that signs tokens; empty: one is made."
    )
    service_account_lookup: bool = flag(
        "service-account-lookup", BOOL, True, "A token in a secret counts only as long as the secret is there."
    )
    service_account_jwks_uri: str = flag(
        "service-account-jwks-uri", STRING, "", "https URL of the key set in the discovery document; empty: our own."
    )
    service_account_max_token_expiration: float = flag(
        "service-account-max-token-expiration", DURATION, 0.0, "Longest life of a token; 0 for no limit."
    )
    service_account_extend_token_expiration: bool = flag(
        "service-account-extend-token-expiration", BOOL, True, "Let tokens that pods mount live on for a year."
    )
    api_audiences: tuple[str, ...] = flag(
        "api-audiences", STRINGS, (), "Audiences of this API, of tokens that name none; empty: the issuers."
    )


def check(group: Authentication) -> list[str]:
    """Everything that is wrong, each line with the flag and the fix."""
    return [*_check_oidc(group), *_check_accounts(group), *_check_rest(group), *_check_files(group)]


def required_claims(group: Authentication) -> dict[str, str]:
    """The claims of --oidc-required-claim; ValueError names the one that is no pair."""
    found = {}
    for text in group.oidc_required_claim:
        claim, equals, value = text.partition("=")
        if not claim or not equals:
            raise ValueError(text)
        found[claim.strip()] = value.strip()
    return found


def _check_oidc(group: Authentication) -> list[str]:
    wrong = []
    if bool(group.oidc_issuer_url) != bool(group.oidc_client_id):
        lacking = "oidc-client-id" if group.oidc_issuer_url else "oidc-issuer-url"
        wrong.append(f"--{lacking}: is needed too, oidc-issuer-url and oidc-client-id should be specified together")
    default = Authentication()
    given = [
        f.metadata["flag"]
        for f in fields(group)
        if f.name.startswith("oidc_") and getattr(group, f.name) != getattr(default, f.name)
    ]
    if group.authentication_config and given:
        text = "authentication-config file and oidc-* flags are mutually exclusive"
        wrong.append(f"--authentication-config: {text}, leave out --{given[0]}")
    elif given and not group.oidc_issuer_url and not group.oidc_client_id:
        wrong.append(f"--{given[0]}: needs --oidc-issuer-url and --oidc-client-id")
    if group.oidc_issuer_url and not _is_https(group.oidc_issuer_url):
        wrong.append(f"--oidc-issuer-url: {group.oidc_issuer_url!r} is not an https URL, use https://HOST/PATH")
    for algorithm in group.oidc_signing_algs:
        if algorithm not in _SIGNING:
            wrong.append(f"--oidc-signing-algs: {algorithm!r} is none of {', '.join(_SIGNING)}")
    try:
        required_claims(group)
    except ValueError as error:
        wrong.append(f"--oidc-required-claim: {str(error)!r} is no pair, write claim=value")
    return wrong


def _check_accounts(group: Authentication) -> list[str]:
    wrong = []
    for issuer in dict.fromkeys(group.service_account_issuer):
        if not issuer:
            wrong.append("--service-account-issuer: cannot be empty, use an https URL")
        elif ":" in issuer and not _is_url(issuer):
            text = "contained a ':' but was not a valid URL"
            wrong.append(f"--service-account-issuer: {issuer!r} {text}, use https://HOST/PATH")
        elif group.service_account_issuer.count(issuer) > 1:
            wrong.append(f"--service-account-issuer: {issuer!r} is given twice, give each issuer once")
    if group.service_account_jwks_uri and not _is_https(group.service_account_jwks_uri):
        uri = group.service_account_jwks_uri
        wrong.append(f"--service-account-jwks-uri: {uri!r} requires https scheme, use https://HOST/openid/v1/jwks")
    longest = group.service_account_max_token_expiration
    if longest and not _HOUR <= longest <= 1 << 32:
        text = "must be between 1 hour and 2^32 seconds, use for example 24h"
        wrong.append(f"--service-account-max-token-expiration: {text}")
    return wrong


def _check_rest(group: Authentication) -> list[str]:
    wrong = []
    version = group.authentication_token_webhook_version
    if version not in _WEBHOOK_VERSIONS:
        wrong.append(f"--authentication-token-webhook-version: {version!r} is none of {', '.join(_WEBHOOK_VERSIONS)}")
    if group.authentication_token_webhook_cache_ttl < 0:
        wrong.append("--authentication-token-webhook-cache-ttl: cannot be negative, use 0 to remember nothing")
    return wrong


def files(group: Authentication) -> Iterable[tuple[str, str]]:
    """(flag, path) of every file that is given."""
    yield from (
        ("authentication-config", group.authentication_config),
        ("authentication-token-webhook-config-file", group.authentication_token_webhook_config_file),
        ("requestheader-client-ca-file", group.requestheader_client_ca_file),
        ("oidc-ca-file", group.oidc_ca_file),
    )
    yield from (("service-account-key-file", path) for path in group.service_account_key_file)


def _check_files(group: Authentication) -> list[str]:
    wrong = []
    for name, path in files(group):
        if path and not os.access(path, os.R_OK):
            found = os.path.exists(path)
            reason = "cannot be read, check its permissions" if found else "does not exist, check the path"
            wrong.append(f"--{name}: {path!r} {reason}")
    return wrong


def _is_url(text: str) -> bool:
    try:
        _ = urlsplit(text).port
    except ValueError:
        return False
    return True


def _is_https(text: str) -> bool:
    return _is_url(text) and urlsplit(text).scheme == "https" and bool(urlsplit(text).hostname)

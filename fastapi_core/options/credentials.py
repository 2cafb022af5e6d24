"""From the flags of authentication to what proves an identity: files read, configurations decoded, everything checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi_core.authn.base import MASTERS, PUBLIC_PATHS, Anonymous, Authenticator, Union
from fastapi_core.authn.frontproxy import FrontProxy, HeaderNames, Outermost
from fastapi_core.authn.issuer import DEFAULT_ISSUER
from fastapi_core.authn.tokens import Bearer, StaticTokens, Tokens, WebSocketProtocol, load_token_file
from fastapi_core.authn.trust import Trust
from fastapi_core.authn.x509 import ClientCertificates
from fastapi_core.options.authentication import Authentication, required_claims
from fastapi_core.options.certificates import ADMIN, Pki
from fastapi_core.options.flags import OptionsError
from fastapi_core.records import dataclass
from fastapi_core.request.context import User

if TYPE_CHECKING:
    from fastapi_core.authn.base import TokenAuthenticator
    from fastapi_core.authn.config import AuthenticationConfig
    from fastapi_core.authn.outbound import Remote
    from fastapi_core.options.options import Options

T = TypeVar("T")


@dataclass(slots=True)
class Credentials:
    """What the options say about who may come in; all files in it have been read once."""

    flags: Authentication
    client_trust: Trust
    proxy_trust: Trust | None
    names: HeaderNames
    users: dict[str, User]
    config: AuthenticationConfig | None
    """Issuers somewhere else and anonymous access, of --authentication-config or the --oidc-* flags."""
    webhook: Remote | None
    authorized: bool
    """Somebody decides what who is known may do: unknown clients may then reach every path, too."""

    @property
    def issuers(self) -> tuple[str, ...]:
        """Of service account tokens."""
        return self.flags.service_account_issuer or (DEFAULT_ISSUER,)

    @property
    def audiences(self) -> tuple[str, ...]:
        """Of this API."""
        return self.flags.api_audiences or self.issuers

    def anonymous(self) -> Anonymous | None:
        """What unknown clients may reach. Where everybody known may do everything that is health and version."""
        everywhere = None if self.authorized else PUBLIC_PATHS
        given = self.config.anonymous if self.config is not None else None
        if given is not None:
            return Anonymous(given.paths or everywhere) if given.enabled else None
        return Anonymous(everywhere) if self.flags.anonymous_auth else None

    def static_tokens(self) -> StaticTokens:
        return StaticTokens(self.users)

    def union(self, kinds: Sequence[TokenAuthenticator]) -> tuple[Authenticator, Bearer, Tokens]:
        """Everything in the reference's order, around the given kinds of tokens."""
        tokens = Tokens(kinds, self.audiences)
        bearer = Bearer(tokens)
        ways: list[Authenticator] = []
        if self.proxy_trust is not None:
            ways.append(FrontProxy(self.proxy_trust, self.names, self.flags.requestheader_allowed_names))
        ways += [ClientCertificates(self.client_trust), bearer, WebSocketProtocol(tokens)]
        return Outermost(Union(ways, self.anonymous()), self.names), bearer, tokens


def load(options: Options, pki: Pki) -> Credentials:
    """Read what the flags name. Raises OptionsError with everything that is wrong."""
    flags = options.authentication
    wrong: list[str] = []

    def tried(name: str, path: str, make: Callable[[], T], default: T) -> T:
        try:
            return make()
        except OSError as error:
            wrong.append(f"--{name}: {path!r}: {error.strerror or error}")
        except ValueError as error:
            wrong.extend(f"--{name}: {path!r}: {line}" for line in str(error).splitlines())
        return default

    own = Trust((pki.ca,))
    cas = (pki.ca, flags.client_ca_file) if flags.client_ca_file else (pki.ca,)
    client = tried("client-ca-file", flags.client_ca_file, lambda: Trust(cas), own)
    path = flags.requestheader_client_ca_file
    proxy = tried("requestheader-client-ca-file", path, lambda: Trust((path,)), None) if path else None
    users = {pki.admin_token(): User(ADMIN, groups=(MASTERS,))}
    if flags.token_auth_file:
        nobody: dict[str, User] = {}
        users |= tried("token-auth-file", flags.token_auth_file, lambda: _token_file(flags.token_auth_file), nobody)
    config = None
    if flags.authentication_config:
        config = tried("authentication-config", flags.authentication_config, lambda: _configuration(flags), None)
        if config is not None and config.anonymous is not None and not flags.anonymous_auth:
            wrong.append("--anonymous-auth: is set in the file of --authentication-config already, leave the flag out")
    elif flags.oidc_issuer_url:
        config = tried("oidc-ca-file", flags.oidc_ca_file, lambda: _oidc(flags), None)
    webhook = None
    if flags.authentication_token_webhook_config_file:
        file = flags.authentication_token_webhook_config_file
        webhook = tried("authentication-token-webhook-config-file", file, lambda: _kubeconfig(file), None)
    tried("service-account-key-file", " ".join(flags.service_account_key_file), lambda: _key_files(flags), None)
    if wrong:
        raise OptionsError(wrong)
    names = HeaderNames.of(
        flags.requestheader_username_headers,
        flags.requestheader_uid_headers,
        flags.requestheader_group_headers,
        flags.requestheader_extra_headers_prefix,
    )
    return Credentials(flags, client, proxy, names, users, config, webhook, not options.authorization.open)


def _token_file(path: str) -> dict[str, User]:
    with open(path, encoding="utf-8") as file:
        return load_token_file(file.read())


def _configuration(flags: Authentication) -> AuthenticationConfig:
    from fastapi_core.authn import config

    with open(flags.authentication_config, "rb") as file:
        return config.load(file.read(), flags.service_account_issuer or (DEFAULT_ISSUER,))


def _oidc(flags: Authentication) -> AuthenticationConfig:
    """The flags as the file would say it."""
    from fastapi_core.authn.config import AuthenticationConfig, Issuer, JWTConfig, Mapped, Rule
    from fastapi_core.authn.trust import identities

    if flags.oidc_issuer_url in (flags.service_account_issuer or (DEFAULT_ISSUER,)):
        raise ValueError("--oidc-issuer-url is the issuer of service account tokens, their issuers must differ")
    authority = ""
    if flags.oidc_ca_file:
        with open(flags.oidc_ca_file, encoding="ascii") as file:
            authority = file.read()
        identities(authority.encode())
    prefix = flags.oidc_username_prefix
    if not prefix and flags.oidc_username_claim != "email":
        prefix = f"{flags.oidc_issuer_url}#"
    jwt = JWTConfig(
        Issuer(flags.oidc_issuer_url, (flags.oidc_client_id,), authority=authority),
        Mapped(flags.oidc_username_claim, "" if prefix == "-" else prefix),
        Mapped(flags.oidc_groups_claim, flags.oidc_groups_prefix),
        claim_rules=tuple(Rule(claim, value) for claim, value in required_claims(flags).items()),
    )
    return AuthenticationConfig((jwt,))


def _kubeconfig(path: str) -> Remote:
    from fastapi_core.authn.outbound import kept, load_kubeconfig

    return kept(load_kubeconfig(path))


def _key_files(flags: Authentication) -> Any:
    """Only to refuse broken files at the start; the keys are read again with the first token."""
    if flags.service_account_key_file:
        read_keys(flags.service_account_key_file)


def read_keys(paths: Sequence[str]) -> list[Any]:
    """The public keys of PEM files, in order. Raises OSError, ValueError."""
    from fastapi_core.authn import jws

    found: list[jws.PublicKey] = []
    for path in paths:
        with open(path, "rb") as file:
            found += jws.keys_of_pem(file.read())
    return found

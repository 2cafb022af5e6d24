"""Who may come in: the authenticators of the options, and those that look into the store."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from fastapi_core.authn.base import Audiences, Known, TokenAuthenticator, with_authenticated
from fastapi_core.authn.bootstrap import BootstrapTokens
from fastapi_core.authn.serviceaccounts import BoundTokens, Keys, LegacyTokens, Objects, Source
from fastapi_core.authn.tokens import bearer_token, decoded
from fastapi_core.controlplane.authentication_info import CONFIG_MAPS, AuthenticationInfo
from fastapi_core.controlplane.keeper import Keeper
from fastapi_core.controlplane.legacy_tokens import LegacyTokenUses
from fastapi_core.options.credentials import read_keys
from fastapi_core.request.context import ANONYMOUS
from fastapi_core.rest import openid
from fastapi_core.rest.backends import NODES, PODS, SECRETS

if TYPE_CHECKING:
    from fastapi_core.authn.config import AuthenticationConfig
    from fastapi_core.authn.issuers import ConfigFile, Issuers
    from fastapi_core.authn.jws import PublicKey
    from fastapi_core.controlplane.resources import Resources
    from fastapi_core.options.complete import Completed
    from fastapi_core.request.routing import Route
    from fastapi_core.server.generic import GenericServer

ACCOUNTS = "/registry/serviceaccounts/"


class Identity:
    """The union of all authenticators, in the reference's order, and what belongs to it: reviews, documents, reloads."""

    def __init__(self, completed: Completed, resources: Resources) -> None:
        known = self._known = completed.credentials
        flags = known.flags
        self._issuer = resources.backends.issuer
        self._completed = completed
        self._keys = Keys(self._read_keys)
        self._issuers: Issuers | None = None
        self._file: ConfigFile | None = None
        objects = _objects(resources)
        self._uses = LegacyTokenUses(resources.stores[SECRETS], completed.config.metrics)
        self._info = AuthenticationInfo(completed, resources.stores[CONFIG_MAPS])
        kinds: list[TokenAuthenticator] = [
            known.static_tokens(),
            LegacyTokens(
                self._keys, known.audiences, objects, lookup=flags.service_account_lookup, used=self._uses.used
            ),
            BoundTokens(known.issuers, self._keys, known.audiences, objects),
        ]
        if flags.enable_bootstrap_token_auth:
            kinds.append(BootstrapTokens(objects.secrets))
        if known.config is not None:
            kinds.append(self._configured())
        if known.webhook is not None:
            from fastapi_core.authn.webhook import WebhookTokens

            version, ttl = flags.authentication_token_webhook_version, flags.authentication_token_webhook_cache_ttl
            kinds.append(WebhookTokens(known.webhook, version, ttl, known.audiences))
        self._union, self._bearer, self._tokens = known.union(kinds)
        self.authenticate = self._union.authenticate
        self.audiences = known.audiences

    def review(self, token: str, audiences: Audiences | None, now: float) -> Known | Awaitable[Known | None] | None:
        """Judge the text behind `Bearer ` as it would be judged in a header."""
        word = bearer_token(b"Bearer " + token.encode("utf-8", "surrogateescape"))[0]
        if not word:
            return Known(ANONYMOUS, audiences or ()) if self._known.anonymous() is not None else None
        found = self._tokens.check(decoded(word), audiences, now)
        return _named(found) if found is None or isinstance(found, Known) else _named_later(found)

    def routes(self, server: GenericServer) -> list[Route]:
        """Discovery document and key set of the issuer of service account tokens."""
        given = self._known.flags.service_account_jwks_uri
        completed = self._completed

        def jwks_uri() -> str:
            return given or f"{completed.external_url(server.port)}{openid.KEYS}"

        return openid.routes(self._known.issuers[0], jwks_uri, lambda: self._keys.all)

    def attach(self, server: GenericServer) -> None:
        """What runs beside the requests: objects that tell of us, fetching keys, following the configuration file."""
        issuers, file = self._issuers, self._file
        info = Keeper("authentication-info", self._info.publish, 60.0)
        server.add_hook("start-cluster-authentication-info-controller", info.start)
        server.add_hook("start-legacy-token-tracking-controller", self._info.track_legacy_tokens)
        server.on_shutdown(info.stop, "authentication info")
        server.on_stop(self._uses.close, "uses of legacy tokens")
        for trust in (self._known.client_trust, self._known.proxy_trust):
            if trust is not None:
                server.config.files.follow(trust.paths, trust.reload)
                # Extension servers should hear of other authorities before a certificate of theirs is shown.
                server.config.files.follow(trust.paths, info.nudge)
        if issuers is None:
            return

        async def start() -> None:
            assert self._known.config is not None
            issuers.start(self._known.config)

        server.add_hook("start-token-issuers", start)
        server.on_stop(issuers.close, "token issuers")
        if file is not None:
            server.config.files.follow((file.path,), file.changed)
            server.on_stop(file.close, "authentication configuration")

    def _configured(self) -> Issuers:
        from fastapi_core.authn import config
        from fastapi_core.authn.issuers import ConfigFile, Issuers, remote_issuer
        from fastapi_core.authn.jws import ALGORITHMS

        flags = self._known.flags
        algorithms = sorted(ALGORITHMS) if flags.authentication_config else flags.oidc_signing_algs
        issuers = self._issuers = Issuers(lambda entry: remote_issuer(entry, algorithms), self._exchanged)
        if flags.authentication_config:
            disallowed = self._known.issuers
            self._file = ConfigFile(flags.authentication_config, lambda data: config.load(data, disallowed), issuers)
        return issuers

    def _exchanged(self, config: AuthenticationConfig) -> None:
        """Another configuration is in use: nothing an old issuer said counts any more."""
        self._bearer.forget()

    def _read_keys(self) -> Sequence[PublicKey]:
        """The keys of the flags, and always the one we sign with."""
        from fastapi_core.authn import jws

        given = read_keys(self._known.flags.service_account_key_file)
        return [*given, jws.PublicKey(self._issuer.key.public_key)]


def authenticator(completed: Completed, resources: Resources) -> Identity:
    """The union of all authenticators, in the reference's order."""
    return Identity(completed, resources)


def _objects(resources: Resources) -> Objects:
    def source(prefix: str, *, namespaced: bool = True) -> Source:
        return Source(resources.stores[prefix].cache.get, prefix, namespaced)

    return Objects(source(ACCOUNTS), source(SECRETS), source(PODS), source(NODES, namespaced=False))


def _named(known: Known | None) -> Known | None:
    if known is None:
        return None
    return Known(with_authenticated(known.user), known.audiences)


async def _named_later(pending: Awaitable[Known | None]) -> Known | None:
    return _named(await pending)
